"""What every learner shares: the rules of the exchange, and how its state is kept."""

import uuid
import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_budget, check_integer, first_bad_query
from evenhand.exchange.batch import Batch, Exposure
from evenhand.typing import Bools, Floats, Ints, compiled

FORMAT, VERSION = "evenhand-learner", 2
MAX_BATCH = 2**16  # queries of a batch that learns: bounds the memory

Seed = int | np.random.SeedSequence | np.random.Generator


class AlreadyTold(ValueError):  # noqa: N818 - says what happened, as Interrupted does
    """Rows of a batch were told before; nothing has changed.

    After a restart it is safe to ignore: the rewards had been taken in before the process ended.

    Examples
    --------
    >>> from evenhand.learners import EvenHand
    >>> learner = EvenHand(m=4, k=2, seed=1)
    >>> batch = learner.ask(1)
    >>> learner.tell(batch, [[0.5]])
    >>> try:
    ...     learner.tell(batch, [[0.5]])
    ... except AlreadyTold as error:
    ...     print(error)
    rows must be told once, got row 0 of batch 0 again
    """


class Draft(NamedTuple):
    """What a learner asks, before it is numbered and becomes a batch."""

    orders: Ints
    sizes: Ints
    exposure: Exposure
    notes: dict[str, Any]
    times: Ints | None = None  # given where nothing is to be learnt

    @classmethod
    def unlearnt(cls, sets: Ints, times: Ints, exposure: Exposure) -> "Draft":
        """Full sets from which nothing is learnt."""
        return cls(sets, np.full((len(sets), 1), sets.shape[1]), exposure, {}, times)


class Learner(ABC):
    """Asks for sets and is told their rewards.

    Attributes
    ----------
    m, k
        Arms and budget.
    horizon
        Queries the learner is made for; None if it needs none.
    queries
        Queries asked so far.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> from evenhand.learners import IWKSVFair
    >>> game, rng = NoisyOr([0.2, 0.4, 0.6, 0.8]), np.random.default_rng(2)
    >>> learner: Learner = IWKSVFair(m=4, k=2, horizon=20_000, gamma=0.8, seed=1)
    >>> while learner.queries < 20_000:
    ...     batch = learner.ask()
    ...     if batch.learns:
    ...         learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    >>> bool(np.all(np.abs(learner.merit - game.kshapley(2)) < 0.05))
    True
    """

    name: ClassVar[str]  # in experiment files
    trajectory: ClassVar[int] = 1  # bump when a release changes the random numbers
    kinds: ClassVar[dict[str, type["Learner"]]] = {}  # all learners by name, for loading
    notes: ClassVar[tuple[str, ...]] = ()  # names of what a receipt carries back

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Learner.kinds[cls.__name__] = cls

    def __init__(self, m: int, k: int, horizon: int | None, seed: Seed) -> None:
        self.m, self.k = check_budget(m, k)
        self.horizon = None if horizon is None else check_integer("horizon", horizon, 1)
        self.queries = 0
        self._rng = as_generator(seed)
        self._owner = uuid.uuid4().hex
        self._n_batches = 0
        self._open: dict[int, Bools] = {}  # rows of each batch that have not been told
        self._warned = False

    @property
    @abstractmethod
    def merit(self) -> Floats:
        """Estimated merits (m,): raw running means, nan where there are none."""

    @property
    @abstractmethod
    def marginals(self) -> Floats:
        """What the next query gives each arm (m,), scaled to sum to k."""

    def ask(self, limit: int = MAX_BATCH) -> Batch:
        """Return the next queries, at most ``limit`` of them, without waiting for any rewards.

        How the limit cuts the queries does not change the trajectory, as long as a round fits: k
        queries for IW-KSVFair, two for MURaS and GAP-E; with less they show full sets and learn
        nothing, and warn. (A phase from which nothing is learnt is counted at once where more than
        65536 queries are asked: the same law, other draws.)
        """
        limit = check_integer("limit", limit, 1)
        if self.horizon is not None:
            if self.queries >= self.horizon:
                raise ValueError(
                    f"the horizon of {self.horizon} queries is used up; "
                    "make a learner with a larger one"
                )
            limit = min(limit, self.horizon - self.queries)
        draft = self._ask(limit)
        n = len(draft.orders)
        learns = draft.times is None
        times = np.ones(n, np.int64) if draft.times is None else draft.times
        batch = Batch(
            orders=draft.orders,
            sizes=draft.sizes,
            times=times,
            exposure=draft.exposure,
            learns=learns,
            owner=self._owner,
            number=self._n_batches,
            index=np.arange(n),
            notes=draft.notes,
        )
        if learns:
            self._open[self._n_batches] = np.ones(n, np.bool_)
        self._n_batches += 1
        self.queries += batch.queries
        return batch

    def tell(self, batch: Batch, rewards: ArrayLike) -> None:
        """Take in the rewards (n, s) of a batch, or of some of its rows, in any order.

        nan closes an entry for good: the gains that need it are skipped. A refused call leaves
        the learner as it was.
        """
        if not isinstance(batch, Batch):
            raise TypeError(f"batch must be a Batch, got {type(batch).__name__}")
        if batch.owner != self._owner or batch.number >= self._n_batches:
            raise ValueError(
                f"batch must come from this learner's ask, got batch {batch.number} of learner "
                f"{batch.owner[:8]}, this is {self._owner[:8]}; tell it to the one that asked"
            )
        try:
            values = np.array(rewards, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                "rewards must be an (n, s) array of numbers, nan where missing"
            ) from None
        if values.shape != batch.sizes.shape:
            raise ValueError(f"rewards must have shape {batch.sizes.shape}, got {values.shape}")
        row, column = first_bad_reward(values, batch.sizes)
        if row >= 0:
            raise ValueError(
                "rewards must lie in [0, 1], "
                f"got rewards[{row}, {column}]={values[row, column]:g}; rescale them before tell"
            )
        if not batch.learns or len(batch.orders) == 0:
            return
        still_open = self._open.get(batch.number)
        if still_open is not None:
            self._check_receipt(batch, len(still_open))
        if still_open is None or not still_open[batch.index].all():
            told = batch.index if still_open is None else batch.index[~still_open[batch.index]]
            raise AlreadyTold(
                f"rows must be told once, got row {int(told[0])} of batch {batch.number} again"
            )
        self._tell(batch, values)
        still_open[batch.index] = False
        if not still_open.any():
            del self._open[batch.number]

    def _check_receipt(self, batch: Batch, n_asked: int) -> None:
        """Refuse a receipt that is not as ask returned it, or rows of such a one."""
        n, index = len(batch.orders), batch.index
        wrong = None
        if index.shape != (n,) or not distinct(index, n_asked):
            wrong = f"its rows are not distinct ones of 0..{n_asked - 1}"
        elif set(batch.notes) != set(self.notes):
            wrong = f"its notes are {sorted(batch.notes)} instead of {sorted(self.notes)}"
        elif any(len(values) != n for values in batch.notes.values()):
            wrong = "its notes are not one a row"
        elif first_bad_query(batch.orders, batch.sizes, self.m)[0] >= 0:
            wrong = "its sets are none"
        elif "arms" in batch.notes and not _within(batch.notes["arms"], -1, self.m - 1):
            wrong = f"its arms leave 0..{self.m - 1}"
        if wrong:
            raise ValueError(f"batch must be as ask returned it, but {wrong}")

    @abstractmethod
    def _ask(self, limit: int) -> Draft:
        """Return the next queries; ``limit`` is at least 1 and within the horizon."""

    @abstractmethod
    def _tell(self, batch: Batch, rewards: Floats) -> None:
        """Take in checked rewards."""

    def _warn_small_limit(self, limit: int, needed: int) -> None:
        """Say once that a limit below a round teaches nothing, unless the horizon ends there."""
        ends = self.horizon is not None and self.queries + limit >= self.horizon
        if not ends and not self._warned:
            self._warned = True
            warnings.warn(
                f"limit={limit} is below the {needed} queries of a round: "
                "asking full sets from which nothing is learnt",
                stacklevel=4,
            )

    # ---- state ----

    @abstractmethod
    def _config(self) -> dict[str, Any]:
        """Arguments of the constructor, apart from the seed, as JSON."""

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What the learner knows beyond its configuration, as JSON and as arrays."""

    @abstractmethod
    def _set_state(self, values: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`_state` returned."""

    def snapshot(self) -> dict[str, Any]:
        """All of the learner: JSON under every key but "arrays", which maps names to arrays."""
        values, arrays = self._state()
        for number, rows in self._open.items():
            arrays[f"open_{number}"] = rows.copy()
        return {
            "format": FORMAT,
            "version": VERSION,
            "learner": type(self).__name__,
            "config": self._config(),
            "owner": self._owner,
            "queries": self.queries,
            "n_batches": self._n_batches,
            "rng": _plain(self._rng.bit_generator.state),
            "state": values,
            "arrays": arrays,
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> Self:
        """Make the learner that gave a snapshot; it goes on bit for bit."""
        if (kind := kind_of(snapshot)) is not cls:
            raise ValueError(f"snapshot must be of {cls.__name__}, got one of {kind.__name__}")
        try:
            learner = cls._from_config(snapshot["config"])
            state = snapshot["rng"]
            bits = getattr(np.random, state["bit_generator"])()
            bits.state = state
            learner._rng = np.random.Generator(bits)
            learner._owner = str(snapshot["owner"])
            learner.queries = int(snapshot["queries"])
            learner._n_batches = int(snapshot["n_batches"])
            arrays = {name: np.array(array) for name, array in snapshot["arrays"].items()}
            learner._open = {
                int(name.removeprefix("open_")): arrays.pop(name)
                for name in sorted(arrays)
                if name.startswith("open_")
            }
            learner._check_state(arrays)
            learner._set_state(snapshot["state"], arrays)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise ValueError(
                f"snapshot must come from {cls.__name__}.snapshot, got a broken one: {error!r}"
            ) from None
        return learner

    def _check_state(self, arrays: dict[str, np.ndarray]) -> None:
        """Compare a snapshot's arrays with those of a fresh learner of the same configuration."""
        if self.queries < 0 or self._n_batches < 0 or self.queries > (self.horizon or np.inf):
            raise ValueError(f"queries={self.queries} of horizon={self.horizon}")
        for name, own in self._state()[1].items():
            other = arrays[name]
            if own.dtype != other.dtype or (name != "chosen" and own.shape != other.shape):
                raise ValueError(f"{name} has shape {other.shape} and dtype {other.dtype}")
        for name, array in arrays.items():
            if array.dtype == np.float64 and np.isnan(array).any():
                raise ValueError(f"{name} holds nan")

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        """Make a fresh learner from its configuration."""
        return cls(**config, seed=0)


def kind_of(snapshot: Any) -> type[Learner]:
    """Return the class of the learner that gave a snapshot, refusing what is none of ours."""
    if not isinstance(snapshot, dict) or snapshot.get("format") != FORMAT:
        raise ValueError(f"snapshot must be one of a learner (format {FORMAT!r}), got another")
    if snapshot.get("version") != VERSION:
        raise ValueError(
            f"snapshot must have version {VERSION}, got {snapshot.get('version')!r}; "
            "restore it with the release that made it"
        )
    name = snapshot.get("learner")
    if name not in Learner.kinds:
        raise ValueError(f"snapshot must be of one of {sorted(Learner.kinds)}, got {name!r}")
    return Learner.kinds[name]


@compiled
def first_bad_reward(rewards: Floats, sizes: Ints) -> tuple[int, int]:
    """First entry outside [0, 1] that is not nan, else -1; the empty set's is set to its 0."""
    n, s = rewards.shape
    for i in range(n):
        for j in range(s):
            if sizes[i, j] == 0:
                rewards[i, j] = 0.0
            elif rewards[i, j] < 0.0 or rewards[i, j] > 1.0:
                return i, j
    return -1, -1


@compiled
def distinct(index: Ints, n: int) -> bool:
    """Whether all entries are different and lie in 0..n-1."""
    seen = np.zeros(n, np.bool_)
    for i in index:
        if i < 0 or i >= n or seen[i]:
            return False
        seen[i] = True
    return True


def _within(values: Ints, low: int, high: int) -> bool:
    return not values.size or bool(low <= values.min() and values.max() <= high)


def as_generator(seed: Seed) -> np.random.Generator:
    """Return the generator of a seed; a generator is used as it is."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, np.random.SeedSequence):
        return np.random.default_rng(seed)
    return np.random.default_rng(check_integer("seed", seed, 0))


def _plain(state: Any) -> Any:
    """Return a bit generator's state with arrays as lists, fit for JSON."""
    if isinstance(state, dict):
        return {name: _plain(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.generic) else state
