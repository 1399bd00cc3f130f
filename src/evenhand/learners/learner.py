"""What every learner shares: the rules of the exchange, and how its state is kept."""

import threading
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.account import Account, Why, explain
from evenhand.checks import check_budget, check_integer, check_memory, check_range
from evenhand.estimate import Estimate
from evenhand.exchange import Batch, Ledger, Roster
from evenhand.exchange.batch import note_arms
from evenhand.exchange.fields import COUNT, Field, Fields, read, write
from evenhand.exchange.ledger import as_rows
from evenhand.exchange.rewards import check_rewards
from evenhand.exchange.snapshot import check_frame, sealed
from evenhand.learners.accounting import account_of
from evenhand.learners.arguments import USUAL, arguments, as_json, in_short, options
from evenhand.learners.drafts import Asked, Draft
from evenhand.learners.warming import warm
from evenhand.policy import Terms
from evenhand.randomness.state import kind_of, to_bytes, with_state
from evenhand.randomness.streams import Seed, as_generator
from evenhand.typing import Floats, Ints

MAX_BATCH = 2**16  # queries of a batch that learns: bounds the memory


class Learner(ABC):
    """Asks for sets and is told their rewards.

    ``ask`` and ``tell`` may be called from several threads. A learner cannot be copied, as two
    would accept the same receipts: :func:`evenhand.save` and :func:`evenhand.load` move it to
    another process.

    Attributes
    ----------
    m, k
        Arms, and the most arms in a set.
    horizon
        Queries the learner is made for; None if it needs none.
    rewards, empty
        Smallest and largest possible reward, and what the empty set is worth. Merits are in the
        units of rewards. Inside, a reward y is (y - empty) / (high - low).
    queries
        Queries asked so far.
    selections
        How often each arm was in a queried set, by id, those that have left included.
    roster
        The arms, with their names.
    ledger
        Which rows are out.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> from evenhand.learners import IWKSVFair
    >>> game, rng = NoisyOr([0.2, 0.4, 0.6, 0.8]), np.random.default_rng(2)
    >>> learner: Learner = IWKSVFair(m=4, k=2, horizon=20_000, gamma=0.8, seed=1)
    >>> while not learner.done:
    ...     batch = learner.ask()
    ...     if batch.learns:
    ...         learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    >>> bool(np.all(np.abs(learner.merit - game.kshapley(2)) < 0.05))
    True
    """

    kinds: ClassVar[dict[str, type["Learner"]]] = {}  # all learners, for loading
    name: ClassVar[str]  # what experiment files and saved learners call it
    trajectory: ClassVar[int] = 1  # bump when a release changes the random numbers
    barred: frozenset[int] = frozenset()  # ids of arms that terms give nothing: they are paused
    terms: Terms | None = None  # what shares must satisfy; few learners take any

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):  # the name of a user's class
            cls.name = f"{cls.__module__}:{cls.__qualname__}"
        other = Learner.kinds.setdefault(cls.name, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"name must be one's own, got {cls.name!r} of {other.__module__}.{other.__name__}"
            )
        Learner.kinds[cls.name] = cls

    def __init__(
        self,
        m: int,
        k: int,
        horizon: int | None,
        seed: Seed,
        names: Iterable[str] | None,
        rewards: ArrayLike = (0.0, 1.0),
        empty: float = 0.0,
    ) -> None:
        self.m, self.k = check_budget(m, k)
        self.rewards, self.empty = check_range(rewards, empty)
        check_memory(f"a learner of m={m} arms", 8 * self.m * (self.k + 8))
        self.roster = Roster.of(self.m, names)
        self.horizon = None if horizon is None else check_integer("horizon", horizon, 1)
        self.queries = 0
        self.selections = np.zeros(self.m, np.int64)
        self._last = np.full(self.m, -1)  # by id, number of the last query with each arm
        self._missed = np.zeros(self.m, np.int64)  # by id, places handed out while it was not there
        self.ledger = Ledger()
        self._rng = as_generator(seed, "learner")
        self._owner = uuid.uuid4().hex
        self._lock = threading.RLock()
        self._warned = False

    @property
    def _unit(self) -> float:
        """What a difference of 1 inside is in the units of rewards."""
        return self.rewards[1] - self.rewards[0]

    @property
    def _low(self) -> float:
        """The smallest reward as it is inside, at most 0; the largest is larger by 1."""
        return (self.rewards[0] - self.empty) / self._unit

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the arms, or None."""
        return self.roster.names

    @property
    def asked(self) -> Ints:
        """(m,) how often each arm was in a queried set."""
        return self.selections[self.roster.ids]

    @property
    def done(self) -> bool:
        """Whether the horizon is used up."""
        return self.horizon is not None and self.queries >= self.horizon

    @property
    @abstractmethod
    def merit(self) -> Floats:
        """Estimated merits (m,) in the units of rewards, not clipped; nan for arms without data."""

    @property
    @abstractmethod
    def marginals(self) -> Floats:
        """(m,) chance that an arm is in the next set if it has k arms; in one of r, r/k of that."""

    def estimate(self) -> Estimate:
        """All that the learner has to say about the arms now, in one value."""
        with self._lock:
            return Estimate(
                self.merit,
                np.full(self.m, np.nan),
                self.queries,
                marginals=self.marginals,
                asked=self.asked,
                names=self.names,
            )

    def account(self) -> Account:
        """All that is known about the arms now, paused ones included, as one value."""
        with self._lock:
            return account_of(self)

    def explain(self, arm: int | str) -> Why:
        """Say why an arm, given by id or name, has the share it has; ``print`` shows it in words.

        Examples
        --------
        >>> from evenhand.learners import EvenHand
        >>> why = EvenHand(m=4, k=2, names=["ada", "bob", "cy", "dee"], seed=1).explain("bob")
        >>> why.share, why.rank, why.asked
        (0.25, None, 0)
        """
        return explain(self.account(), arm)

    def _background(self) -> dict[str, Any]:
        """What else there is to know, by field of the account; columns of arms on the roster."""
        return {}

    def _set_aside(self) -> tuple[Any, Any]:
        """Merits and standard errors that are remembered of paused arms, by ascending id."""
        return np.nan, np.nan

    def ask(self, limit: int = MAX_BATCH) -> Batch:
        """Return the next queries, at most ``limit`` of them, without waiting for any rewards.

        How the limit cuts the queries does not change the trajectory, as long as a round fits: k
        queries for IW-KSVFair, two for MURaS and GAP-E; with less they show full sets and learn
        nothing, and warn. In phases without learning, a limit above 65536 gives counts of sets,
        drawn from the same law; the draws themselves then depend on the limit.
        """
        limit = check_integer("limit", limit, 1)
        with self._lock:
            if self.horizon is not None:
                if self.done:
                    raise ValueError(
                        f"the horizon of {self.horizon} queries is used up; "
                        "make a learner with a larger one"
                    )
                limit = min(limit, self.horizon - self.queries)
            draft = self._ask(limit)
            n = len(draft.orders)
            learns = draft.times is None
            batch = Batch(
                orders=draft.orders,
                sizes=draft.sizes,
                times=np.ones(n, np.int64) if draft.times is None else draft.times,
                learns=learns,
                owner=self._owner,
                index=self.ledger.open(n, **draft.notes) if learns else np.empty(0, np.int64),
                names=self.roster.names_by_id,
                exposure=draft.exposure,
            )
            asked = batch.orders, batch.sizes, batch.times
            note_arms(self.selections, self._last, *asked, self.queries)
            self.queries += batch.queries
            return batch

    def tell(self, batch: Batch, rewards: ArrayLike) -> None:
        """Take in the rewards of a batch, or of some of its rows, in any order of batches.

        Parameters
        ----------
        batch
            What ``ask`` returned, its :meth:`~evenhand.exchange.Batch.rows`, or a copy of it.
        rewards
            (n, s), one per query, in the learner's range; or a flat list of all of them, in the
            order of :meth:`~evenhand.exchange.Batch.sets`; or a plain number for a single query.
            nan or None closes an entry for good: the gains that need it are skipped. The empty
            set's entry is ignored.

        A refused call leaves the learner as it was.
        """
        if not isinstance(batch, Batch):
            raise TypeError(f"batch must be a Batch, got {type(batch).__name__}")
        if batch.owner != self._owner:
            raise ValueError(
                f"batch must come from this learner's ask, got one of learner "
                f"{str(batch.owner)[:8]}, this is {self._owner[:8]}; tell it to the one that asked"
            )
        with self._lock:
            if not batch.learns or len(batch.index) == 0:
                check_rewards(rewards, batch.sizes, self.rewards, self.empty)
                return
            numbers = np.asarray(batch.index)
            if numbers.dtype != np.int64:
                raise TypeError(f"batch must be as ask returned it, but its index is {numbers!r}")
            rows = as_rows(numbers)
            self.ledger.check(rows)
            asked = self._recall(rows)
            values, gaps = check_rewards(rewards, asked.sizes, self.rewards, self.empty)
            self._tell(asked.kept, values)
            nothing = gaps and (np.isnan(values) | (asked.sizes == 0)).all(axis=1)
            self.ledger.settle(rows, nothing, left=False if asked.left is None else asked.left)
            self._settle(rows)

    def warm(self) -> None:
        """Compile now what this learner may need later, so that no other call waits for it.

        Where nothing is compiled yet that takes some fifteen seconds; compiled code is kept on
        disk. A throw-away learner with the same options does the work: this one stays as it is.
        """
        warm(self)

    @abstractmethod
    def _ask(self, limit: int) -> Draft:
        """Return the next queries; ``limit`` is at least 1 and within the horizon."""

    @abstractmethod
    def _recall(self, rows: slice | Ints) -> Asked:
        """Return what was asked in rows that are out."""

    @abstractmethod
    def _tell(self, kept: Any, rewards: Floats) -> None:
        """Take in checked rewards of rows, given what :meth:`_recall` kept of them."""

    def _settle(self, rows: slice | Ints) -> None:  # noqa: B027 - most have nothing to do
        """Forget what was kept for rows that have just been told."""

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
    def _fields(self) -> Fields:
        """Attributes that hold what the learner knows beyond its configuration."""

    def _parts(self) -> dict[str, np.ndarray]:
        """Arrays of parts that keep a form of their own, by name."""
        kept = {f"ledger.{name}": array for name, array in self.ledger.arrays().items()}
        return kept | {"looks": np.stack([self._last, self._missed])}

    def _set_parts(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`_parts` returned, refusing anything else."""
        head = "ledger."
        mine = {n.removeprefix(head): a for n, a in arrays.items() if n.startswith(head)}
        self.ledger.set_arrays(mine)
        looks = arrays.get("looks")  # not there in early files of this version
        if looks is not None:
            if looks.dtype != np.int64 or looks.shape != (2, self.roster.next_id):
                raise ValueError(f"looks must hold two numbers per id, got {looks.shape}")
            self._last, self._missed = looks.copy()

    def _config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, apart from the seed, as JSON."""
        return {name: as_json(getattr(self, name)) for name in options(type(self))}

    def _all_fields(self) -> Fields:
        most = self.horizon or 2**62
        return {"queries": Field(0, most), "selections": COUNT, **self._fields()}

    def snapshot(self) -> dict[str, Any]:
        """All of the learner: JSON under every key but "arrays", which maps names to arrays."""
        with self._lock:
            values, arrays = read(self, self._all_fields())
            bits = to_bytes(self._rng.bit_generator.state)
            return sealed(
                {
                    "learner": self.name,
                    "config": self._config(),
                    "roster": self.roster.to_json(),
                    "owner": self._owner,
                    "rng": {"kind": kind_of(self._rng), "state": bits.hex()},
                    "values": values,
                    "arrays": arrays | self._parts(),
                }
            )

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> Self:
        """Make the learner that gave a snapshot; it goes on bit for bit."""
        if (kind := learner_of(snapshot)) is not cls:
            raise ValueError(f"snapshot must be of {cls.__name__}, got one of {kind.__name__}")
        try:
            learner = cls(**arguments(cls, snapshot["config"]), seed=0)
            rng, arrays = snapshot["rng"], snapshot["arrays"]
            learner._rng = with_state(rng["kind"], bytes.fromhex(rng["state"]))
            learner._owner = str(snapshot["owner"])
            learner.roster = Roster.from_json(snapshot["roster"], learner.names, learner.m)
            learner.selections = np.zeros(learner.roster.next_id, np.int64)
            learner._last, learner._missed = learner.selections - 1, learner.selections.copy()
            write(learner, learner._all_fields(), snapshot["values"], arrays)
            learner._set_parts(arrays)
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            IndexError,
            OverflowError,
        ) as error:
            detail = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(
                f"snapshot must be as {cls.__name__}.snapshot returned it, but {detail}"
            ) from None
        return learner

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled, as both would accept the same "
            "receipts and ask the same sets; move it with evenhand.save and evenhand.load, or "
            "make a second one with another seed"
        )

    def __repr__(self) -> str:
        config = {n: v for n, v in self._config().items() if n != "names" and v is not None}
        given = {n: v for n, v in config.items() if v != USUAL.get(n)}
        shown = ", ".join(f"{name}={in_short(value)}" for name, value in given.items())
        return f"{type(self).__name__}({shown}, queries={self.queries})"

    def _repr_html_(self) -> str:
        return self.estimate()._repr_html_()


def learner_of(snapshot: dict[str, Any]) -> type[Learner]:
    """Return the class of the learner that gave a snapshot, refusing what is none of ours."""
    check_frame(snapshot)
    name = snapshot.get("learner")
    if not isinstance(name, str) or name not in Learner.kinds:
        raise ValueError(f"snapshot must be of one of {sorted(Learner.kinds)}, got {name!r}")
    return Learner.kinds[name]
