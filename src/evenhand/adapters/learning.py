"""What data sources, features and members of an ensemble add to a scikit-learn model, as games.

A model is anything with ``fit``, ``predict`` and ``score``. Each value trains it once, which takes
its time: see :func:`evenhand.kshapley` for workers and a cache.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.games import SetFunction

Metric = Callable[[Any, Any], float]
Array = NDArray[Any]


def data_sources(
    model: Any,
    sources: Sequence[tuple[Any, Any]],
    test: tuple[Any, Any],
    *,
    empty: float = 0.0,
    metric: Metric | None = None,
    names: Iterable[str] | None = None,
) -> SetFunction:
    r"""Make the game of data sources: the score of a model trained on all data of a set of them.

    Parameters
    ----------
    model
        An unfitted model; a copy is trained for each set. Give it a ``random_state``.
    sources
        One (X, y) per source.
    test
        (X, y) that scores are computed on.
    empty
        Score without any data, such as that of guessing; values are scores less it.
    metric
        A function of the true and the predicted y; without it ``model.score``.
    names
        Names of the sources.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = [(X[i::10], y[i::10]) for i in range(5)]  # five sources, all much alike
    >>> game = data_sources(GaussianNB(), parts, (X[5::10], y[5::10]), empty=1 / 3)
    >>> game.value(np.array([[True, False, False, False, False], [True] * 5])).round(2)
    array([0.67, 0.67])
    """
    if len(sources) == 0:
        raise ValueError("sources must be a sequence of (X, y), got none")
    data = [(np.asarray(x), np.asarray(y)) for x, y in sources]
    trained = Trained(model, np.asarray(test[0]), np.asarray(test[1]), metric)
    return _game(Sources(trained, data, empty), len(data), names)


def features(
    model: Any,
    train: tuple[Any, Any],
    test: tuple[Any, Any],
    *,
    groups: Sequence[Sequence[int]] | None = None,
    empty: float = 0.0,
    metric: Metric | None = None,
    names: Iterable[str] | None = None,
) -> SetFunction:
    r"""Make the game of features: the score of a model that sees a set of the columns.

    Parameters
    ----------
    model, test, empty, metric, names
        As for :func:`data_sources`.
    train
        (X, y) that models are trained on; X is an array (n, d).
    groups
        Columns that come and go together, one group per arm; without it each column is an arm.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> game = features(GaussianNB(), (X[::2], y[::2]), (X[1::2], y[1::2]), empty=1 / 3)
    >>> import evenhand
    >>> int(evenhand.kshapley(game, k=2).argmax())  # the width of the petal
    3
    """
    x, y = np.asarray(train[0]), np.asarray(train[1])
    if x.ndim != 2:
        raise ValueError(f"train must hold X of shape (n, d), got {x.shape}")
    columns = [np.array([c]) for c in range(x.shape[1])]
    if groups is not None:
        columns = [np.asarray(group, dtype=np.int64) for group in groups]
    trained = Trained(model, np.asarray(test[0]), np.asarray(test[1]), metric)
    return _game(Features(trained, x, y, columns, empty), len(columns), names)


def ensemble_members(
    members: Sequence[Any],
    test: tuple[Any, Any],
    *,
    empty: float = 0.0,
    metric: Metric | None = None,
    names: Iterable[str] | None = None,
) -> SetFunction:
    r"""Make the game of the members of an ensemble: the score of the mean of their predictions.

    Members that know chances of classes (``predict_proba``) are averaged by these, others by what
    they predict. Predictions are made once: the game is fast.

    Parameters
    ----------
    members
        Fitted models, such as ``forest.estimators_``, all of one kind.
    test, empty, metric, names
        As for :func:`data_sources`; without a metric, accuracy of classes and the coefficient of
        determination of numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [GaussianNB().fit(X[i::7], y[i::7]) for i in range(5)]
    >>> ensemble_members(members, (X[6::7], y[6::7])).m
    5
    """
    x, y = np.asarray(test[0]), np.asarray(test[1])
    if len(members) == 0:
        raise ValueError("members must be a sequence of fitted models, got none")
    by_chance = all(hasattr(one, "predict_proba") for one in members)
    votes = [np.asarray(one.predict_proba(x) if by_chance else one.predict(x)) for one in members]
    if by_chance:
        classes = np.unique(np.concatenate([one.classes_ for one in members]))
        votes = [
            _spread(vote, one.classes_, classes) for vote, one in zip(votes, members, strict=True)
        ]
    score = metric or (accuracy if by_chance else determination)
    return _game(
        Members(np.array(votes), y, classes if by_chance else None, score, empty), len(votes), names
    )


@dataclass(frozen=True)
class Trained:
    """A model, test data and how predictions are scored."""

    model: Any
    x: Array
    y: Array
    metric: Metric | None

    def score(self, x: Array, y: Array, columns: Array | None = None) -> float:
        """Train a copy of the model and score it; one that sees a single class predicts that."""
        test = self.x if columns is None else self.x[:, columns]
        if getattr(self.model, "_estimator_type", None) == "classifier" or _classifies(self.model):
            seen = np.unique(y)
            if len(seen) == 1:
                predicted = np.full(len(self.y), seen[0])
                return float((self.metric or accuracy)(self.y, predicted))
        model = deepcopy(self.model).fit(x, y)
        if self.metric is None:
            return float(model.score(test, self.y))
        return float(self.metric(self.y, model.predict(test)))


@dataclass(frozen=True)
class Sources:
    """Score of a model trained on the data of a set of sources."""

    trained: Trained
    data: list[tuple[Array, Array]]
    empty: float

    def __call__(self, arms: frozenset[int]) -> float:
        """Value of one set."""
        chosen = [self.data[arm] for arm in sorted(arms)]
        x, y = (np.concatenate(part) for part in zip(*chosen, strict=True))
        return self.trained.score(x, y) - self.empty


@dataclass(frozen=True)
class Features:
    """Score of a model that sees the columns of a set of arms."""

    trained: Trained
    x: Array
    y: Array
    columns: list[Array]
    empty: float

    def __call__(self, arms: frozenset[int]) -> float:
        """Value of one set."""
        chosen = np.concatenate([self.columns[arm] for arm in sorted(arms)])
        return self.trained.score(self.x[:, chosen], self.y, chosen) - self.empty


@dataclass(frozen=True)
class Members:
    """Score of the mean prediction of a set of members."""

    votes: Array
    y: Array
    classes: Array | None
    metric: Metric
    empty: float

    def __call__(self, arms: frozenset[int]) -> float:
        """Value of one set."""
        mean = self.votes[sorted(arms)].mean(axis=0)
        predicted = mean if self.classes is None else self.classes[mean.argmax(axis=1)]
        return float(self.metric(self.y, predicted)) - self.empty


def accuracy(true: Array, predicted: Array) -> float:
    """Share of right answers."""
    return float(np.mean(np.asarray(true) == np.asarray(predicted)))


def determination(true: Array, predicted: Array) -> float:
    """Coefficient of determination, as scikit-learn's ``r2_score``."""
    apart = np.asarray(true) - np.asarray(predicted)
    around = np.asarray(true) - np.mean(true)
    return float(1.0 - (apart @ apart) / (around @ around))


def _classifies(model: Any) -> bool:
    """Whether a model predicts classes, as scikit-learn's tags say."""
    try:
        return bool(model.__sklearn_tags__().estimator_type == "classifier")
    except AttributeError:
        return hasattr(model, "predict_proba")


def _spread(votes: Array, own: ArrayLike, classes: Array) -> Array:
    """Chances of a member's own classes as chances of all."""
    full = np.zeros((len(votes), len(classes)))
    full[:, np.searchsorted(classes, own)] = votes
    return full


def _game(f: Any, m: int, names: Iterable[str] | None) -> SetFunction:
    game: Any = SetFunction.per_set(f, m)
    if names is not None:
        game.names = tuple(names)
        if len(game.names) != m:
            raise ValueError(f"names must be {m}, one per arm, got {len(game.names)}")
    return game
