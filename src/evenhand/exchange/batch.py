"""The unit of exchange: a batch of ordered sets, asked at some prefixes."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import as_integers
from evenhand.typing import Floats, Ints


class Marginals(NamedTuple):
    """A prefix of r arms holds each arm with probability r/K times its entry of q (sums to K).

    Examples
    --------
    >>> from evenhand.learners import URS
    >>> URS(m=4, k=2, seed=1).ask(10).exposure
    Marginals(q=array([0.5, 0.5, 0.5, 0.5]))
    """

    q: Floats


class Determined(NamedTuple):
    """History fixed the sets.

    Examples
    --------
    >>> from evenhand.learners import ETCG
    >>> ETCG(m=4, k=2, horizon=1000, seed=1).ask(10).exposure
    Determined()
    """


class Target(NamedTuple):
    """A row's longest prefix ends in a known arm; those before it are uniformly random.

    Examples
    --------
    >>> from evenhand.learners import GapE
    >>> sorted(GapE(m=4, k=2, horizon=1000, seed=1).ask(8).exposure.arms.tolist())
    [0, 1, 2, 3]
    """

    arms: Ints


Exposure = Marginals | Determined | Target


@dataclass(frozen=True, slots=True)
class Batch:
    """Queries asked by a learner, and the receipt with which their rewards are told.

    Attributes
    ----------
    orders
        (n, k) ordered sets; entries past the longest prefix asked are ignored.
    sizes
        (n, s) prefix lengths to query of each; length 0 is the empty set, worth 0, counted as a
        query but not to be pulled.
    times
        (n,) identical queries a row stands for, above 1 only where ``learns`` is false.
    exposure
        What the policy gave each arm when the batch was drawn.
    learns
        Whether rewards are wanted. If not, telling them is accepted and ignored.
    owner, number, index
        Whose batch it is, its number there, and the number of each of its rows.
    notes
        Row by row, what the learner needs back.

    Examples
    --------
    >>> import json
    >>> from evenhand.learners import IWKSVFair
    >>> learner = IWKSVFair(m=6, k=3, horizon=9000, gamma=1.0, seed=1)
    >>> batch = learner.ask()
    >>> for order, sizes in zip(batch.orders, batch.sizes):
    ...     print([order[:size].tolist() for size in sizes])
    [[1], [1, 0], [1, 0, 5]]
    >>> kept = json.dumps(batch.to_dict())  # until the rewards are known
    >>> learner.tell(Batch.from_dict(json.loads(kept)), [[0.2, 0.3, np.nan]])
    """

    orders: Ints
    sizes: Ints
    times: Ints
    exposure: Exposure
    learns: bool
    owner: str
    number: int
    index: Ints
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        """Number of queries the batch asks for."""
        rows = len(self.times) if self.learns else int(self.times.sum())
        return rows * self.sizes.shape[1]

    def rows(self, index: ArrayLike) -> "Batch":
        """Return the receipt for some rows, given by their places in this batch.

        Examples
        --------
        >>> from evenhand.learners import GapE
        >>> batch = GapE(m=4, k=2, horizon=1000, seed=1).ask(8)
        >>> len(batch.orders), len(batch.rows([0, 3]).orders)
        (4, 2)
        """
        places = as_integers("index", index)
        n = len(self.orders)
        if places.ndim != 1 or len(np.unique(places)) != len(places):
            raise ValueError(f"index must be a list of distinct rows, got {index!r}")
        if places.size and not (0 <= places.min() and places.max() < n):
            raise ValueError(f"index must hold rows in 0..{n - 1}, got {index!r}")
        exposure = self.exposure
        if isinstance(exposure, Target):
            exposure = Target(exposure.arms[places])
        return replace(
            self,
            orders=self.orders[places],
            sizes=self.sizes[places],
            times=self.times[places],
            exposure=exposure,
            index=self.index[places],
            notes={name: values[places] for name, values in self.notes.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, fit for JSON."""
        exposure = {name: value.tolist() for name, value in self.exposure._asdict().items()}
        return {
            "owner": self.owner,
            "number": self.number,
            "learns": self.learns,
            "orders": self.orders.tolist(),
            "sizes": self.sizes.tolist(),
            "times": self.times.tolist(),
            "index": self.index.tolist(),
            "exposure": {"kind": type(self.exposure).__name__, **exposure},
            "notes": {name: values.tolist() for name, values in self.notes.items()},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Batch":
        """Make the batch that gave this dictionary."""
        try:
            exposure = dict(data["exposure"])
            kinds = {kind.__name__: kind for kind in (Marginals, Determined, Target)}
            kind = kinds[exposure.pop("kind")]
            return cls(
                orders=_matrix(data["orders"]),
                sizes=_matrix(data["sizes"]),
                times=np.array(data["times"], np.int64),
                exposure=kind(**{name: np.array(value) for name, value in exposure.items()}),
                learns=bool(data["learns"]),
                owner=str(data["owner"]),
                number=int(data["number"]),
                index=np.array(data["index"], np.int64),
                notes={name: np.array(values) for name, values in data["notes"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"data must come from Batch.to_dict, got a broken one: {error!r}"
            ) from None


def _matrix(rows: list[list[int]]) -> Ints:
    """Rows of integers; no rows have no columns either."""
    return np.array(rows, np.int64).reshape(len(rows), -1 if rows else 0)
