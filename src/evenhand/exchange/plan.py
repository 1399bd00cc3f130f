"""One published policy: what it gives each arm, and how rows are drawn from it."""

import struct
import zlib
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Self

import numpy as np

from evenhand.designs import ConditionalPoisson, EnumeratedMaxEntropy, Mixture, Uniform
from evenhand.typing import Floats, Ints

HEADER = struct.Struct("<4sBIIqdd")  # mark, kind, m, k, number, two numbers of the kind's own
MARK = b"EHP1"
MaxEntropy = ConditionalPoisson | EnumeratedMaxEntropy


class Rows(NamedTuple):
    """Drawn rows.

    Attributes
    ----------
    orders
        (n, k) ordered sets, -1 behind the longest prefix.
    sizes
        (n, s) prefix lengths to query.
    weights
        (n, k) importance weights of the members, 0 behind the longest prefix.
    """

    orders: Ints
    sizes: Ints
    weights: Floats

    def pick(self, places: Ints | slice) -> "Rows":
        """Return the rows at these places."""
        return Rows(self.orders[places], self.sizes[places], self.weights[places])


class Plan(ABC):
    """A published policy. It never changes; rows follow from it and a stream alone.

    Rows are independent of each other, so that any of them chosen without looking keep the
    marginals and the weights of the plan.

    Attributes
    ----------
    number
        How many plans its learner had published before.
    arms
        (m,) ids of the arms, in the order of the columns.
    k
        The most arms in a set.
    marginals
        (m,) what a query gives each arm, scaled to sum to k.
    """

    kind: ClassVar[int]
    number: int
    arms: Ints
    k: int
    marginals: Floats

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw n rows: the same for the same plan and state of the generator."""

    @abstractmethod
    def _numbers(self) -> tuple[float, float, Floats]:
        """Two numbers and a vector that, with the header, are all of the plan."""

    @classmethod
    @abstractmethod
    def _made(cls, number: int, arms: Ints, k: int, x: float, y: float, vector: Floats) -> Self:
        """Make the plan of :meth:`_numbers`, refusing numbers that are none of a plan."""

    @property
    def m(self) -> int:
        """Number of arms."""
        return len(self.arms)

    def to_bytes(self) -> bytes:
        """All of the plan; plans of one learner have the same length."""
        x, y, vector = self._numbers()
        head = HEADER.pack(MARK, self.kind, self.m, self.k, self.number, x, y)
        body = head + self.arms.astype("<u4").tobytes() + vector.astype("<f8").tobytes()
        return body + zlib.crc32(body).to_bytes(4, "little")

    @staticmethod
    def from_bytes(data: bytes) -> "Plan":
        """Make the plan that gave these bytes.

        Examples
        --------
        >>> from evenhand.learners import EvenHand
        >>> plan = EvenHand(m=6, k=2, seed=1).publish()
        >>> twin = Plan.from_bytes(plan.to_bytes())
        >>> one, other = (p.draw(5, np.random.default_rng(1)) for p in (plan, twin))
        >>> bool((one.orders == other.orders).all())
        True
        """
        body = data[:-4]
        if len(body) < HEADER.size or zlib.crc32(body).to_bytes(4, "little") != data[-4:]:
            raise ValueError("data must come from Plan.to_bytes, but its checksum is wrong")
        mark, code, m, k, number, x, y = HEADER.unpack_from(body)
        kinds = {kind.kind: kind for kind in (SetPlan, PrefixPlan)}
        if mark != MARK or code not in kinds or not 1 <= k <= m or number < 0:
            raise ValueError("data must come from Plan.to_bytes, but its header is wrong")
        arms = np.frombuffer(body, "<u4", m, HEADER.size).astype(np.int64)
        vector = np.frombuffer(body, "<f8", offset=HEADER.size + 4 * m).astype(np.float64)
        return kinds[code]._made(number, arms, k, x, y, vector)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(number={self.number}, m={self.m}, k={self.k})"


class SetPlan(Plan):
    r"""Each row queries one set; its size r is drawn by fixed shares.

    The law over r-sets has marginals :math:`\frac rK \pi`: a share ``mixing`` of the sets is drawn
    uniformly, and the others so as to make up for it.
    """

    kind = 1

    def __init__(
        self, number: int, arms: Ints, k: int, marginals: Floats, sizes: Floats, mixing: float
    ) -> None:
        self.number, self.arms, self.k = number, arms, k
        self.marginals, self.sizes, self.mixing = marginals, sizes, mixing
        self.marginals.flags.writeable = False

    def law(self, r: int) -> Mixture[ConditionalPoisson] | Uniform:
        """Return the law over sets of r arms."""
        if self.mixing == 1.0:
            return Uniform(self.m, r)
        target = r / self.k * self.marginals
        rest = np.clip((target - self.mixing * r / self.m) / (1.0 - self.mixing), 0.0, 1.0)
        return Mixture(ConditionalPoisson.fit(rest), self.mixing)

    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw n rows: the same for the same plan and state of the generator."""
        sizes = rng.choice(self.k, n, p=self.sizes) + 1
        orders, weights = np.full((n, self.k), -1), np.zeros((n, self.k))
        for r in np.unique(sizes).tolist():
            rows, law = np.flatnonzero(sizes == r), self.law(r)
            sets = law.sample(len(rows), rng)
            orders[rows, :r], weights[rows, :r] = sets, law._weights(sets)
        return Rows(orders, sizes[:, None], weights)

    def _numbers(self) -> tuple[float, float, Floats]:
        return self.mixing, 0.0, np.concatenate([self.marginals, self.sizes])

    @classmethod
    def _made(cls, number: int, arms: Ints, k: int, x: float, y: float, vector: Floats) -> Self:
        m = len(arms)
        marginals, sizes = vector[:m], vector[m:]
        # the bounds that leave room for mixing, up to rounding
        low, high = x * k / m - 1e-9, 1.0 - x * (1.0 - k / m) + 1e-9
        good = sizes.shape == (k,) and bool((sizes >= 0.0).all()) and abs(sizes.sum() - 1) < 1e-9
        good = good and 0.0 <= x <= 1.0 and abs(marginals.sum() - k) < 1e-6 * k
        if not (good and bool(((marginals >= low) & (marginals <= high)).all())):
            raise ValueError("data must come from Plan.to_bytes, but its marginals are none")
        return cls(number, arms, k, marginals, sizes, x)


class PrefixPlan(Plan):
    """Each row queries all prefixes of one K-set in random order."""

    kind = 2

    def __init__(
        self, number: int, arms: Ints, mixture: Mixture[MaxEntropy], weighted: bool
    ) -> None:
        self.number, self.arms, self.mixture, self.weighted = number, arms, mixture, weighted
        self.k, self.marginals = mixture.k, mixture.marginals
        self.marginals.flags.writeable = False

    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw n rows: the same for the same plan and state of the generator."""
        orders = self.mixture.sample(n, rng)
        weights = self.mixture._weights(orders) if self.weighted else np.ones(orders.shape)
        sizes = np.empty((n, self.k), np.int64)
        sizes[:] = np.arange(1, self.k + 1)
        return Rows(orders, sizes, weights)

    def _numbers(self) -> tuple[float, float, Floats]:
        design = self.mixture.design
        code = self.weighted + 2 * isinstance(design, EnumeratedMaxEntropy)
        parts = [design.state()[name].reshape(-1) for name in _parts(code)]
        return self.mixture.eta, float(code), np.concatenate(parts)

    @classmethod
    def _made(cls, number: int, arms: Ints, k: int, x: float, y: float, vector: Floats) -> Self:
        m, parts = len(arms), _parts(int(y)) if y in (0.0, 1.0, 2.0, 3.0) else ()
        sizes = [1 if name == "log_normaliser" else m for name in parts]
        if not parts or len(vector) != sum(sizes):
            raise ValueError("data must come from Plan.to_bytes, but its design is none")
        values = np.split(vector, np.cumsum(sizes)[:-1])
        state = {
            name: value if len(value) > 1 or (m == 1 and name != "log_normaliser") else value[0]
            for name, value in zip(parts, values, strict=True)
        }
        design = (EnumeratedMaxEntropy if y >= 2.0 else ConditionalPoisson).from_state(state, k)
        return cls(number, arms, Mixture(design, x), bool(int(y) & 1))


def _parts(code: int) -> tuple[str, ...]:
    """Names of what a design's state holds, in the order in which a plan keeps them."""
    return ("log_weights",) if code & 2 else ("log_weights", "marginals", "log_normaliser")
