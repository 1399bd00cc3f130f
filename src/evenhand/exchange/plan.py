"""One published policy: what it gives each arm, and how rows are drawn from it."""

import struct
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.checks import ROUNDING
from evenhand.designs import ConditionalPoisson, EnumeratedMaxEntropy, Mixture, Uniform
from evenhand.designs.mixture import fill_singles
from evenhand.randomness.alias import build_alias
from evenhand.subsets.combinations import log_comb
from evenhand.typing import Floats, Ints, compiled

HEADER = struct.Struct("<4sBIIqdd")  # mark, kind, m, k, number, two numbers of the kind's own
MARK = b"EHP1"
# codes of plans; prefixes add 1 if weighted, 2 if their sets are listed
SETS, PREFIXES, FULL_SETS = 7, 2, 6
ALIKE = 1  # sets of all sizes having the same share of uniform ones, as they were first kept
LAWS_KEPT = 2**12  # arms up to which a plan keeps its laws: of many they would take much memory
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
        (n, k) importance weights of the members, 0 behind the longest prefix; those of a
        :class:`FullSetPlan` are (n, 1), of the sets themselves.
    """

    orders: Ints
    sizes: Ints
    weights: Floats

    def pick(self, places: Ints | slice) -> "Rows":
        """Return the rows at these places."""
        return Rows(self.orders[places], self.sizes[places], self.weights[places])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(ABC):
    """A published policy. It never changes; rows follow from it and a stream alone.

    Rows are independent of each other: any subset of them has the marginals and the weights of the
    plan, if the choice does not depend on which arms they contain.

    Attributes
    ----------
    number
        How many plans its learner had published before.
    arms
        (m,) ids of the arms, in the order of the columns.
    k
        The most arms in a set.
    marginals
        (m,) what a query gives each arm, scaled to sum to k: of all places in its sets an arm has
        this share over k.
    """

    number: int
    arms: Ints
    k: int
    marginals: Floats

    def __post_init__(self) -> None:
        self.arms.flags.writeable = self.marginals.flags.writeable = False

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw n rows: the same for the same plan and state of the generator."""

    def weigh(self, orders: Ints, sizes: Ints) -> Rows:
        """Return rows of this plan that were drawn elsewhere, with their weights."""
        raise TypeError(f"{type(self).__name__} cannot weigh rows that were drawn elsewhere")

    @abstractmethod
    def _numbers(self) -> tuple[int, float, float, bytes]:
        """The code of its kind, two numbers and vectors: with the arms, all of the plan."""

    @property
    def m(self) -> int:
        """Number of arms."""
        return len(self.arms)

    def to_bytes(self) -> bytes:
        """All of the plan; plans of one learner have the same length."""
        kind, x, y, vectors = self._numbers()
        head = HEADER.pack(MARK, kind, self.m, self.k, self.number, x, y)
        body = head + self.arms.astype("<u4").tobytes() + vectors
        return body + zlib.crc32(body).to_bytes(4, "little")

    @staticmethod
    def from_bytes(data: bytes) -> "Plan":
        """Make the plan that gave these bytes.

        Examples
        --------
        >>> from evenhand.learners import URS
        >>> plan = URS(m=6, k=2, seed=1).plan
        >>> twin = Plan.from_bytes(plan.to_bytes())
        >>> one, other = (p.draw(5, np.random.default_rng(1)) for p in (plan, twin))
        >>> bool((one.orders == other.orders).all())
        True
        """
        body = data[:-4]
        if len(body) < HEADER.size or zlib.crc32(body).to_bytes(4, "little") != data[-4:]:
            raise ValueError("data must come from Plan.to_bytes, but its checksum is wrong")
        mark, kind, m, k, number, x, y = HEADER.unpack_from(body)
        start = HEADER.size + 4 * m
        if mark != MARK or not 1 <= k <= m or number < 0 or len(body) < start:
            raise ValueError("data must come from Plan.to_bytes, but its header is wrong")
        arms = np.frombuffer(body, "<u4", m, HEADER.size).astype(np.int64)
        if kind == ALIKE:
            after = start + 8 * (m + k)
            body = body[:after] + _packed(np.full(k, x)) + body[after:]
        if kind in (SETS, ALIKE):
            return SetPlan.read(number, arms, k, y, body[start:])
        if kind == FULL_SETS:
            return FullSetPlan.read(number, arms, k, x, body[start:])
        return PrefixPlan.read(number, arms, k, kind, x, y, body[start:])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(number={self.number}, m={self.m}, k={self.k})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SetPlan(Plan):
    r"""Each row queries one set; its size r is drawn by the shares ``sizes``.

    Of the sets of each size a share is drawn uniformly, as ``uniform`` (k,) says, and the others by
    laws over r-sets of marginals :math:`\frac rK \rho`, :math:`\rho` being such that all sets
    together give each arm its marginal. Of all places uniform sets have the share ``mixing``.

    ``worth`` (m,) and ``gamma`` are the forecast of rewards that was in force when the plan was
    made; without one, ``worth`` is empty.
    """

    sizes: Floats
    uniform: Floats
    worth: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    gamma: float = 0.0
    # laws drawn from before: a learner draws from the same plan many times
    _laws: dict[int, Mixture[ConditionalPoisson] | Uniform] = field(default_factory=dict)
    mixing: float = field(init=False)

    def __post_init__(self) -> None:
        super(SetPlan, self).__post_init__()
        self.worth.flags.writeable = self.uniform.flags.writeable = False
        object.__setattr__(self, "mixing", places_uniform(self.sizes, self.uniform))

    def law(self, r: int) -> Mixture[ConditionalPoisson] | Uniform:
        """Return the law over sets of r arms."""
        law = self._laws.get(r)
        if law is None:
            rest = r / self.k * beside_uniform(self.marginals, self.k, self.mixing)
            law = mixed_law(rest, r, float(self.uniform[r - 1]))
            if self.m <= LAWS_KEPT:
                self._laws[r] = law
        return law

    @property
    def leaning(self) -> Floats:
        """How far sets of each size (k,) lean from an even share to the marginals, 1 on average."""
        if self.mixing == 1.0:
            return np.ones(self.k)
        return (1.0 - self.uniform) / (1.0 - self.mixing)

    def given(self, r: int) -> Floats:
        """What sets of r arms give each arm (m,), scaled to sum to k."""
        even = self.k / self.m
        return even + float(self.leaning[r - 1]) * (self.marginals - even)

    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw n rows: the same for the same plan and state of the generator."""
        numbers = rng.random(n)  # how large one is says a row's size, what follows from it the set
        sizes = _choose(self.sizes, numbers) + 1
        places, ends = by_size(sizes, self.k)
        orders, weights = np.empty((n, self.k), np.int64), np.empty((n, self.k))
        for r, (start, end) in enumerate(pairwise(ends.tolist()), start=1):
            rows = places[start:end]
            if r == 1:  # among single arms none is rarer than its marginal says: no law is needed
                fill_singles(build_alias(self.given(1)), rows, numbers, orders, weights)
            elif len(rows):
                self.law(r)._fill(rows, numbers, rng, orders, weights)
        return Rows(orders, sizes[:, None], weights)

    def weigh(self, orders: Ints, sizes: Ints) -> Rows:
        """Return rows of this plan that were drawn elsewhere, with their weights."""
        weights = np.zeros(orders.shape)
        for r in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes[:, 0] == r)
            weights[rows, :r] = self.law(r)._weights(np.ascontiguousarray(orders[rows, :r]))
        return Rows(orders, sizes, weights)

    def _numbers(self) -> tuple[int, float, float, bytes]:
        vectors = _packed(self.marginals, self.sizes, self.uniform)
        return SETS, 0.0, self.gamma, vectors + self.worth.astype("<f4").tobytes()

    @classmethod
    def read(cls, number: int, arms: Ints, k: int, gamma: float, data: bytes) -> Self:
        """Make the plan of these numbers, refusing what is none."""
        m, n = len(arms), len(arms) + 2 * k
        if len(data) not in (8 * n, 8 * n + 4 * m):
            raise ValueError("data must come from Plan.to_bytes, but its length is wrong")
        vectors = np.frombuffer(data, "<f8", n).astype(np.float64)
        marginals, sizes, uniform = np.split(vectors, [m, m + k])
        worth = np.frombuffer(data, "<f4", offset=8 * n).astype(np.float32)
        good = bool((sizes >= 0.0).all()) and abs(sizes.sum() - 1) < 1e-9
        good = good and bool(((uniform >= 0.0) & (uniform <= 1.0)).all())
        if not (good and leave_room(marginals, k, places_uniform(sizes, uniform))):
            raise ValueError("data must come from Plan.to_bytes, but its marginals are wrong")
        if not (np.isfinite(worth).all() and np.isfinite(gamma)):
            raise ValueError("data must come from Plan.to_bytes, but its forecast is wrong")
        return cls(number, arms, k, marginals, sizes, uniform, worth, gamma)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FullSetPlan(Plan):
    """Each row queries one set of exactly k arms, a share ``mixing`` of them drawn uniformly.

    The weight of a row is that of its set: its chance if all k-sets were equally likely, over its
    chance here.
    """

    mixing: float

    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw n rows: the same for the same plan and state of the generator."""
        return self.weigh(self._law().sample(n, rng), np.full((n, 1), self.k))

    def _law(self) -> Mixture[ConditionalPoisson] | Uniform:
        rest = beside_uniform(self.marginals, self.k, self.mixing)
        return mixed_law(rest, self.k, self.mixing)

    def weigh(self, orders: Ints, sizes: Ints) -> Rows:
        """Return rows of this plan that were drawn elsewhere, with their weights."""
        weights = np.exp(-self._law()._log_prob(orders) - log_comb(self.m, self.k))
        return Rows(orders, sizes, weights[:, None])

    def _numbers(self) -> tuple[int, float, float, bytes]:
        return FULL_SETS, self.mixing, 0.0, _packed(self.marginals)

    @classmethod
    def read(cls, number: int, arms: Ints, k: int, mixing: float, data: bytes) -> Self:
        """Make the plan of these numbers, refusing what is none."""
        if len(data) != 8 * len(arms):
            raise ValueError("data must come from Plan.to_bytes, but its length is wrong")
        marginals = np.frombuffer(data, "<f8").astype(np.float64)
        if not leave_room(marginals, k, mixing):
            raise ValueError("data must come from Plan.to_bytes, but its marginals are wrong")
        return cls(number, arms, k, marginals, mixing)


def _choose(shares: Floats, numbers: Floats) -> Ints:
    """Draw from a law by numbers in [0, 1), as numpy's ``choice`` does."""
    ends = shares.cumsum()
    ends /= ends[-1]
    if len(ends) > 32:
        return ends.searchsorted(numbers, side="right")
    chosen = np.zeros(len(numbers), np.uint8)
    for end in ends[:-1].tolist():  # where there are few, searching costs more than comparing all
        chosen += (numbers >= end).view(np.uint8)
    return chosen.astype(np.int64)


@compiled
def by_size(sizes: Ints, k: int) -> tuple[Ints, Ints]:
    """Numbers of the rows, by size, in turn; those of size r lie between ends r - 1 and r.

    Rows of one arm, most of them by default, are found first: to count them one by one in one
    place of memory, each waits for the one before.
    """
    ends, places = np.zeros(k + 1, np.int64), np.empty(len(sizes), np.int64)
    larger, many = np.empty(len(sizes), np.int64), 0
    for i in range(len(sizes)):
        places[i - many], larger[many] = i, i
        many += sizes[i] != 1
    ends[1] = len(sizes) - many
    for i in larger[:many]:
        ends[sizes[i]] += 1
    for r in range(1, k):
        ends[r + 1] += ends[r]
    for place in range(many - 1, -1, -1):
        i = larger[place]
        ends[sizes[i]] -= 1
        places[ends[sizes[i]]] = i
    for r in range(2, k):  # each now stands where its size begins
        ends[r] = ends[r + 1]
    ends[k] = len(sizes)
    return places, ends


def places_uniform(sizes: Floats, uniform: Floats) -> float:
    """Share of uniform sets in all places, from their share of the sets of each size (k,)."""
    places = sizes * np.arange(1.0, len(sizes) + 1.0)
    return float((places * uniform).sum() / places.sum())


def beside_uniform(marginals: Floats, k: int, mixing: float) -> Floats:
    """What sets that are not uniform give each arm (m,), scaled to sum to k, if there are any.

    Where an arm has no more than its part of the uniform sets the rest is 0, and not what rounding
    leaves: sets are drawn in another way where arms cannot be in them at all.
    """
    if mixing == 1.0:
        return marginals
    even = k / len(marginals)
    rest = (marginals - mixing * even) / (1.0 - mixing)
    rest[rest < ROUNDING * even] = 0.0
    rest[rest > 1.0 - ROUNDING] = 1.0
    return rest


def mixed_law(rest: Floats, r: int, uniform: float) -> Mixture[ConditionalPoisson] | Uniform:
    """Return a law over r-sets of which a share is uniform, and the others have marginals."""
    m = len(rest)
    if uniform == 1.0:
        return Uniform(m, r)
    if r == 1:  # any mixture of single arms is the same law
        with np.errstate(divide="ignore"):
            log = np.log((1.0 - uniform) * rest + uniform / m)
        return Mixture(ConditionalPoisson.from_log_weights(log, 1), 0.0)
    design = ConditionalPoisson.fit(rest)
    if design.k != r:  # compiled code would look for members that are not there
        raise ValueError(f"marginals of sets of {r} must sum to {r}, got {rest.sum()}")
    return Mixture(design, uniform)


def leave_room(marginals: Floats, k: int, mixing: float) -> bool:
    """Whether marginals sum to k and leave room for a share of uniform sets, up to rounding."""
    share = k / len(marginals)
    low, high = mixing * share - 1e-9, 1.0 - mixing * (1.0 - share) + 1e-9
    good = 0.0 <= mixing <= 1.0 and abs(marginals.sum() - k) < 1e-6 * k
    return good and bool(((marginals >= low) & (marginals <= high)).all())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrefixPlan(Plan):
    """Each row queries all prefixes of one K-set in random order.

    The law of the set is ``mixture``; ``weighted`` says whether gains are weighted by importance.
    """

    mixture: Mixture[MaxEntropy]
    weighted: bool

    @classmethod
    def of(cls, number: int, arms: Ints, mixture: Mixture[MaxEntropy], weighted: bool) -> Self:
        """Make a plan of a mixture."""
        return cls(number, arms, mixture.k, mixture.marginals, mixture, weighted)

    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw n rows: the same for the same plan and state of the generator."""
        orders = self.mixture.sample(n, rng)
        weights = self.mixture._weights(orders) if self.weighted else np.ones(orders.shape)
        sizes = np.arange(1, self.k + 1)[None].repeat(n, axis=0)  # copies whole rows
        return Rows(orders, sizes, weights)

    def _numbers(self) -> tuple[int, float, float, bytes]:
        state = self.mixture.design.state()
        kind = PREFIXES + self.weighted + 2 * isinstance(self.mixture.design, EnumeratedMaxEntropy)
        log_normaliser = float(state.pop("log_normaliser", np.array(0.0)))
        return kind, self.mixture.eta, log_normaliser, _packed(*state.values())

    @classmethod
    def read(
        cls, number: int, arms: Ints, k: int, kind: int, eta: float, log_z: float, data: bytes
    ) -> Self:
        """Make the plan of these numbers, refusing what is none."""
        weighted, listed = (bool((kind - PREFIXES) & bit) for bit in (1, 2))
        m = len(arms)
        if not (PREFIXES <= kind < PREFIXES + 4 and len(data) == 8 * (m if listed else 2 * m)):
            raise ValueError("data must come from Plan.to_bytes, but its design is wrong")
        vector = np.frombuffer(data, "<f8").astype(np.float64)
        state = {"log_weights": vector[:m]}
        if not listed:
            state |= {"marginals": vector[m:], "log_normaliser": np.array(log_z)}
        design = (EnumeratedMaxEntropy if listed else ConditionalPoisson).from_state(state, k)
        return cls.of(number, arms, Mixture(design, eta), weighted)


def _packed(*vectors: Floats) -> bytes:
    return np.concatenate(vectors).astype("<f8").tobytes()
