"""What holds when a learner is asked."""

import warnings

import numpy as np

from evenhand.exchange import Batch, Marginals
from evenhand.learners import Learner
from evenhand.testing.playing import (
    HORIZON,
    PHASE,
    K,
    M,
    Make,
    assert_same,
    digest,
    made_learner,
    play,
    rewards_of,
)
from evenhand.testing.running import raises


def the_seed_decides_everything(make: Make) -> None:
    """The same seed and rewards give the same learner bit for bit; another seed another one."""
    one, other, different = (made_learner(make, seed) for seed in (5, 5, 6))
    for learner in (one, other, different):
        play(learner, 2**16, HORIZON, np.random.default_rng(1))
    assert_same(one, other, "two learners of the same seed must do the same")
    assert digest(different) != digest(one), (
        "learners of seeds 5 and 6 must differ; draw all random numbers from the seed's generator"
    )


def how_asks_are_cut_changes_nothing(make: Make) -> None:
    """The limits of ``ask`` do not change what is asked, as long as a round fits."""
    whole = made_learner(make, 5)
    play(whole, 2**16, HORIZON, np.random.default_rng(1))
    for limit in (K, 7, 64):
        parts = made_learner(make, 5)
        play(parts, limit, HORIZON, np.random.default_rng(1))
        for name in ("asked", "merit", "marginals"):
            one, other = getattr(whole, name), getattr(parts, name)
            assert np.array_equal(one, other, equal_nan=True), (
                f"asking {limit} queries at a time must change nothing, got {name} "
                f"{other.tolist()} instead of {one.tolist()}"
            )


def batches_are_as_documented(make: Make) -> None:
    """Every batch has the shapes, numbers and marginals that :class:`~evenhand.Batch` promises."""
    learner, rng = made_learner(make), np.random.default_rng(0)
    asked, n_rows = np.zeros(M, np.int64), 0
    while learner.queries < HORIZON:
        before, announced = learner.queries, learner.marginals
        batch = learner.ask(min(50, HORIZON - before))
        assert learner.queries - before == batch.queries <= 50, (
            f"ask(50) must count what it asks, got {batch.queries} queries in the batch, and "
            f"{learner.queries - before} more in learner.queries"
        )
        _check_rows(batch)
        if batch.learns:
            expected = np.arange(n_rows, n_rows + len(batch.orders))
            assert np.array_equal(batch.index, expected), (
                f"rows must be numbered as they are asked, got {batch.index} after row {n_rows - 1}"
            )
            n_rows += len(batch.orders)
            learner.tell(batch, rewards_of(batch, M, rng))
        times = np.repeat(batch.times, batch.sizes.shape[1])
        for arms, n in zip(batch.sets(), times, strict=True):
            asked[arms] += n
        if isinstance(batch.exposure, Marginals):
            q = batch.exposure.q
            assert np.allclose(announced, q, rtol=0.0, atol=1e-7), (
                f"learner.marginals must be what the next query gives, got {announced} before "
                f"ask, and {q} with the batch"
            )
    assert np.array_equal(learner.asked, asked), (
        f"learner.asked must count memberships, got {learner.asked} instead of {asked}"
    )


def _check_rows(batch: Batch) -> None:
    n, k = batch.orders.shape
    assert k == K, f"orders must have k={K} columns, got {k}"
    assert batch.sizes.ndim == 2 and len(batch.sizes) == n, (  # noqa: PT018 - one rule
        f"sizes must have {n} rows, one per order, got shape {batch.sizes.shape}"
    )
    assert 0 <= batch.sizes.min() and batch.sizes.max() <= K, (  # noqa: PT018
        f"sizes must lie in 0..{K}, got {batch.sizes.min()} to {batch.sizes.max()}"
    )
    assert np.all(batch.times >= 1), f"times must be at least 1, got {batch.times.min()}"
    assert not batch.learns or np.all(batch.times == 1), "times must be 1 where learns is true"
    for row, longest in zip(batch.orders.tolist(), batch.sizes.max(axis=1).tolist(), strict=True):
        arms, rest = row[:longest], row[longest:]
        assert len(set(arms)) == longest, f"arms of a row must be different, got {row}"
        assert all(0 <= arm < M for arm in arms), f"arms must lie in 0..{M - 1}, got {row}"
        assert set(rest) <= {-1}, f"entries behind the longest prefix must be -1, got {row}"


def the_horizon_is_kept(make: Make) -> None:
    """A learner stops at its horizon. Does nothing for learners that need none."""
    learner = made_learner(make)
    if learner.horizon is None:
        return
    assert not learner.done, "done must be false before the first query"
    play(learner, 2**16, HORIZON, np.random.default_rng(0))
    assert learner.done, f"done must be true after all {HORIZON} queries"
    assert learner.queries == HORIZON, f"{HORIZON} queries must be asked, got {learner.queries}"
    with raises(ValueError, when="ask after the horizon"):
        learner.ask()


def any_k_up_to_m_will_do(make: Make) -> None:
    """Sets of one arm, and of all arms, work like others."""
    for k in (1, M):
        learner = made_learner(make, k=k)
        play(learner, 100, HORIZON, np.random.default_rng(1))
        given = learner.marginals
        assert given.shape == learner.merit.shape == (M,), (
            f"merit and marginals must have shape ({M},), got {learner.merit.shape}, {given.shape}"
        )
        assert given.min() >= 0.0, f"marginals must be at least 0, got {given.min():g} with k={k}"
        assert abs(given.sum() - k) < 1e-6, f"marginals must sum to k={k}, got {given.sum():.9g}"


def the_estimate_is_what_the_learner_says(make: Make) -> None:
    """``estimate()`` holds ``merit``, ``marginals`` and ``asked``, as copies."""
    learner = made_learner(make)
    play(learner, PHASE, 4 * PHASE, np.random.default_rng(1))
    found, before = learner.estimate(), digest(learner)
    for name in ("merit", "marginals", "asked"):
        one, other = getattr(found, name), getattr(learner, name)
        assert np.array_equal(one, other, equal_nan=True), (
            f"estimate().{name} must be learner.{name}, got {one} and {other}"
        )
        if one.flags.writeable:
            one[:] = 0
    assert digest(learner) == before, "writing to an estimate must not change the learner"


def asking_never_waits_for_rewards(make: Make) -> None:
    """All queries can be asked without telling any reward."""
    learner = made_learner(make)
    while learner.queries < HORIZON:
        learner.ask(min(60, HORIZON - learner.queries))
    assert learner.queries == HORIZON, f"{HORIZON} queries must be asked, got {learner.queries}"


def writing_to_a_batch_changes_nothing(make: Make) -> None:
    """A batch is the caller's own: writing to its arrays does not reach the learner."""
    learner, other = made_learner(make), made_learner(make)
    for one in (learner, other):
        for _ in range(3):
            batch = one.ask(PHASE)
            if one is learner:
                batch.orders[:], batch.sizes[:] = -1, 0
    assert_same(learner, other, "writing to the arrays of a batch must change nothing")


def bad_numbers_are_refused(make: Make) -> None:
    """Wrong limits, sizes and seeds raise ValueError or TypeError."""
    learner = made_learner(make)
    before = digest(learner)
    for limit, error in ((0, ValueError), (-3, ValueError), (2.5, TypeError), ("9", TypeError)):
        with raises(error, when=f"ask with limit={limit!r}"):
            learner.ask(limit)  # type: ignore[arg-type]
    assert digest(learner) == before, "a refused ask must change nothing"
    for m, k, seed in ((5, 6, 0), (5, 0, 0), (5, 2, "seed"), (5, 2, -1)):
        with raises(ValueError, TypeError, when=f"a learner with m={m}, k={k}, seed={seed!r}"):
            make(m, k, 1000, seed)  # type: ignore[arg-type]


def unwanted_rewards_are_ignored(make: Make) -> None:
    """Rewards of a batch that teaches nothing are taken and change nothing.

    Does nothing for learners that learn from a single query.
    """
    learner = made_learner(make)
    batch = _single(learner)
    if batch.learns:
        return
    before = digest(learner)
    learner.tell(batch, np.full(batch.sizes.shape, 0.5))
    assert digest(learner) == before, "rewards that are not wanted must change nothing"


def _single(learner: Learner) -> Batch:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is learnt
        return learner.ask(1)
