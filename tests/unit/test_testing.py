"""Checks that users run: each thing broken on purpose is caught by the check meant for it."""

import time
from contextlib import nullcontext

import numpy as np
import pytest

from evenhand import testing
from evenhand.designs import ConditionalPoisson, DependentRounding, Systematic, Uniform
from evenhand.exchange import SetPlan
from evenhand.games import NoisyOr
from evenhand.learners import URS, EvenHand, IWKSVFair
from evenhand.testing.running import run_checks
from evenhand.testing.statistics import check_estimate

MARGINALS = [0.9, 0.75, 0.5, 0.35, 0.3, 0.2]


CHECKS = {
    check.__name__: check
    for check in [*testing.GAME_CHECKS, *testing.DESIGN_CHECKS, *testing.LEARNER_CHECKS]
}


def caught_by(check, thing):
    with pytest.raises(AssertionError, match=f"^1 of 1 checks failed\n  {check}: "):
        run_checks([CHECKS[check]], thing)


class Game(NoisyOr):
    """A good game, to be broken."""

    def __init__(self):
        super().__init__([0.1, 0.3, 0.5, 0.7])


class ValueOff(Game):
    def value(self, sets):
        return 0.9 * super().value(sets)


class Unsteady(Game):
    def value(self, sets):
        return super().value(sets) * np.random.default_rng().random()


class Flat(Game):
    def value(self, sets):
        return super().value(sets)[:, None]


class EmptyIsWorthSomething(Game):
    def value(self, sets):
        return np.maximum(super().value(sets), 0.05)


class FirstArmCounts(Game):
    def pull(self, orders, sizes, rng):
        return super().pull(orders, sizes, rng) * (1 - 0.1 * (np.asarray(orders)[:, :1] == 1))


class TooMuch(Game):
    def pull(self, orders, sizes, rng):
        return 2 * super().pull(orders, sizes, rng)


class OwnNoise(Game):
    def pull(self, orders, sizes, rng):
        return super().pull(orders, sizes, np.random.default_rng())


class Writes(Game):
    def pull(self, orders, sizes, rng):
        rewards = super().pull(orders, sizes, rng)
        orders[:, 0] = 0
        return rewards


class LooksBehind(Game):
    def pull(self, orders, sizes, rng):
        return super().pull(orders, sizes, rng) * (1 - 0.1 * (np.asarray(orders)[:, -1:] == -1))


class ClosedFormOff(Game):
    def kshapley(self, k):
        return super().kshapley(k) * (1 + 1e-6)


class CoupledOff(Game):
    def pull_coupled(self, orders, sizes, rng):
        return 0.9 * self.pull(orders, sizes, rng)


class TakesAnything(Game):
    def pull(self, orders, sizes, rng):
        good = np.clip(orders, 0, self.m - 1)
        return super().pull(good, np.clip(sizes, 0, 1), rng)


@pytest.mark.parametrize(
    ("game", "check"),
    [
        (ValueOff, "rewards_average_to_the_value"),
        (Unsteady, "value_gives_one_number_per_set"),
        (Flat, "value_gives_one_number_per_set"),
        (EmptyIsWorthSomething, "empty_set_is_worth_nothing"),
        (FirstArmCounts, "order_of_arms_does_not_matter"),
        (TooMuch, "rewards_lie_in_their_range"),
        (OwnNoise, "same_generator_same_rewards"),
        (Writes, "same_generator_same_rewards"),
        (LooksBehind, "arms_behind_the_prefix_are_ignored"),
        (ClosedFormOff, "closed_form_is_exact"),
        (CoupledOff, "coupled_rewards_average_to_the_value"),
        (TakesAnything, "bad_queries_are_refused"),
    ],
)
def test_a_broken_game_is_caught(game, check):
    caught_by(check, game)


def test_a_game_of_any_number_of_arms_can_be_checked():
    for m in (1, 2, 30):
        testing.check_game(NoisyOr(np.linspace(0.2, 0.6, m)))


class MarginalsOff(Uniform):
    def __init__(self):
        super().__init__(6, 3)
        self.marginals[:2] += 0.03, -0.03


class SumOff(Uniform):
    def __init__(self):
        super().__init__(6, 3)
        self.marginals[0] += 1e-5


class Repeats(Uniform):
    def _sample(self, n, rng):
        rows = super()._sample(n, rng)
        rows[:2, 1] = rows[:2, 0]
        return rows


class OwnRandomness(Uniform):
    def _sample(self, n, rng):
        return super()._sample(n, np.random.default_rng())


class MoreThanOne(Uniform):
    def _log_prob(self, rows):
        return super()._log_prob(rows) + 0.001


class Ordered(Uniform):
    def _log_prob(self, rows):
        return super()._log_prob(rows) + 0.001 * (rows[:, 0] - rows[:, -1])


class Sorted(Uniform):
    def _sample(self, n, rng):
        return np.sort(super()._sample(n, rng), axis=1)


class OtherLaw(ConditionalPoisson):
    """The marginals of the design, but other sets."""

    def _sample(self, n, rng):
        return Systematic.fit(self.marginals).sample(n, rng)


class OtherTally(Uniform):
    def tally(self, n, rng):
        sets, times = super().tally(n, rng)
        return sets, times + (np.arange(len(times)) == 0)


class WeightsOff(Uniform):
    def weights(self, sets):
        return np.full(np.shape(sets), 1.01)


class PairsOff(Uniform):
    def _pair_marginals(self, first, second):
        return super()._pair_marginals(first, second) + 1e-6


class PairsOfAnother(DependentRounding):
    """The pairs of a design of more entropy; nobody can list its own law."""

    def _pair_marginals(self, first, second):
        return ConditionalPoisson.fit(self.marginals)._pair_marginals(first, second)


class EntropyOff(Uniform):
    def entropy(self):
        return super().entropy() + 1e-6


class AllowsAnything(Uniform):
    def sample(self, n, rng):
        return self._sample(abs(n), rng or np.random.default_rng(0))


@pytest.mark.parametrize(
    ("design", "check"),
    [
        (MarginalsOff, "draws_have_the_marginals"),
        (MarginalsOff, "probabilities_give_the_marginals"),
        (SumOff, "marginals_sum_to_k"),
        (lambda: Repeats(6, 3), "sets_have_k_distinct_arms"),
        (lambda: OwnRandomness(6, 3), "same_generator_same_sets"),
        (lambda: MoreThanOne(6, 3), "probabilities_sum_to_one"),
        (lambda: Ordered(6, 3), "log_prob_ignores_the_order"),
        (lambda: Sorted(6, 3), "orders_are_uniformly_random"),
        (lambda: OtherLaw.fit(MARGINALS), "draws_follow_the_law"),
        (lambda: OtherTally(6, 3), "tallies_follow_the_law"),
        (lambda: WeightsOff(6, 3), "weights_are_those_of_the_law"),
        (lambda: PairsOff(6, 3), "pairs_meet_as_often_as_it_says"),
        (lambda: PairsOfAnother.fit(MARGINALS), "pairs_meet_as_often_as_it_says"),
        (lambda: EntropyOff(6, 3), "entropy_is_that_of_the_law"),
        (lambda: AllowsAnything(6, 3), "bad_arguments_are_refused"),
    ],
)
def test_a_broken_design_is_caught(design, check):
    caught_by(check, design)


def test_a_design_of_rare_sets_can_be_checked():
    """Sets too rare for the chi-square law are counted as one."""
    testing.check_design(ConditionalPoisson.fit([0.99999, 0.999, 0.9, 0.1, 0.001, 0.00001]))


class Stubborn(EvenHand):
    """Ignores the seed."""

    def __init__(self, m, k, *, seed):
        super().__init__(m, k, seed=seed and 1)

    sizes = names = None

    def _config(self):
        return {"m": self.m, "k": self.k}


class Counts(EvenHand):
    """Draws a number per ask."""

    def _ask(self, limit):
        self._rng.random()
        return super()._ask(limit)


class Forgets(EvenHand):
    """Forgets a part of its forecast when saved."""

    def _fields(self):
        return {name: x for name, x in super()._fields().items() if name != "evidence.gamma"}


class TellsTwice(EvenHand):
    def tell(self, batch, rewards):
        self.ledger.check = lambda numbers: None
        super().tell(batch, rewards)


class Fading(IWKSVFair):
    """Lets older rewards count less, by the order in which they come."""

    def _tell(self, kept, rewards):
        self.evidence.totals *= 0.99
        super()._tell(kept, rewards)


class Deaf(EvenHand):
    def _tell(self, kept, rewards):
        pass


class Trusting(IWKSVFair):
    """Credits the arms that the receipt names."""

    def tell(self, batch, rewards):
        super().tell(batch, rewards)
        if batch.learns and len(batch.orders):
            self.evidence.totals[batch.orders[0, 0]] += 1.0


class TakesMissing(IWKSVFair):
    def _tell(self, kept, rewards):
        super()._tell(kept, np.nan_to_num(rewards))


class Hasty(EvenHand):
    """Changes before it refuses."""

    def tell(self, batch, rewards):
        self.selections[0] += 1
        super().tell(batch, rewards)


class Unlocked(EvenHand):
    """Lets two threads in, and is slow enough for both to be there."""

    def ask(self, limit=64):
        self._lock = nullcontext()
        return super().ask(limit)

    def _ask(self, limit):
        draft = super()._ask(limit)
        time.sleep(1e-3)
        return draft


class Copied(EvenHand):
    __reduce_ex__ = object.__reduce_ex__


class CopiedUniform(URS):  # has all the checks of a learner in a tenth of the time
    __reduce_ex__ = object.__reduce_ex__


class Padded(EvenHand):
    def _ask(self, limit):
        draft = super()._ask(limit)
        draft.orders[draft.orders < 0] = 0
        return draft


class Announces(EvenHand):
    @property
    def marginals(self):
        return np.full(self.m, self.k / self.m)


class Unsealed(EvenHand):
    """Takes snapshots that are only half there."""

    def _set_parts(self, arrays):
        if "plans" in arrays and arrays["plans"].ndim == 2:
            super()._set_parts(arrays)


class Lends(EvenHand):
    """Hands out the rows that it will need when they are told."""

    def _ask(self, limit):
        draft = super()._ask(limit)
        first = self.ledger.next
        rows = self._shelf.rows(slice(first, first + len(draft.orders)))
        return draft._replace(orders=rows.orders)


class Waits(EvenHand):
    def _ask(self, limit):
        if self.ledger.n_open > 50:
            raise RuntimeError("too many rows are out")
        return super()._ask(limit)


class Shows(EvenHand):
    """Hands out its own arrays."""

    def estimate(self):
        found = super().estimate()
        object.__setattr__(found, "asked", self.selections)
        return found


class Turned(SetPlan):
    """Draws rows in an order that is lost in bytes."""

    def draw(self, n, rng):
        return super().draw(n, rng).pick(slice(None, None, -1))


class Fickle(EvenHand):
    def _make_plan(self):
        plan, n = super()._make_plan()
        parts = (plan.number, plan.arms, plan.k, plan.marginals, plan.sizes, plan.mixing)
        return Turned(*parts), max(n, 20)


class Unmerged(IWKSVFair):
    def _set_parts(self, arrays):
        super()._set_parts(arrays)
        self.evidence.merge = lambda other: None


def evenhand_of(kind):
    return lambda m, k, horizon, seed: kind(m, k, seed=seed)


def paper_of(kind):
    return lambda m, k, horizon, seed: kind(m, k, horizon, eta=0.4, seed=seed)


@pytest.mark.parametrize(
    ("make", "check"),
    [
        (evenhand_of(Stubborn), "the_seed_decides_everything"),
        (evenhand_of(Counts), "how_asks_are_cut_changes_nothing"),
        (evenhand_of(Forgets), "a_restored_learner_goes_on_bit_for_bit"),
        (evenhand_of(TellsTwice), "rows_are_told_once"),
        (paper_of(Fading), "rewards_may_come_late_in_any_order_and_parts"),
        (evenhand_of(Deaf), "rewards_matter"),
        (paper_of(Trusting), "only_owner_and_index_are_trusted"),
        (paper_of(TakesMissing), "missing_rewards_are_skipped"),
        (evenhand_of(Hasty), "what_does_not_belong_is_refused"),
        (evenhand_of(Unlocked), "threads_leave_the_books_in_order"),
        (evenhand_of(Copied), "copies_are_refused"),
        (evenhand_of(Padded), "batches_are_as_documented"),
        (evenhand_of(Announces), "batches_are_as_documented"),
        (evenhand_of(Unsealed), "changed_snapshots_are_refused"),
        (evenhand_of(Lends), "writing_to_a_batch_changes_nothing"),
        (evenhand_of(Waits), "asking_never_waits_for_rewards"),
        (evenhand_of(Shows), "the_estimate_is_what_the_learner_says"),
        (evenhand_of(Fickle), "plans_survive_as_bytes"),
        (evenhand_of(Fickle), "late_rows_are_drawn_again"),
        (paper_of(Unmerged), "evidence_can_be_merged"),
    ],
)
def test_a_broken_learner_is_caught(make, check):
    caught_by(check, make)


def failures_of(check, thing):
    with pytest.raises(AssertionError) as failure:
        check(thing)
    return str(failure.value).splitlines()


def test_a_failure_says_all_that_was_found():
    head, mean, closed = failures_of(testing.check_game, ValueOff())
    assert head == "2 of 10 checks failed"
    assert mean.startswith("  rewards_average_to_the_value: the mean of entry (")
    assert closed.startswith("  closed_form_is_exact: kshapley(1) must be the K-Shapley values of")
    _, shape, *_ = failures_of(testing.check_game, Flat)
    assert shape.endswith("value must return shape (12,) for 12 sets, got (12, 1)")
    head, *found = failures_of(testing.check_design, MarginalsOff)
    assert [line.split(":")[0].strip() for line in found] == [
        "probabilities_give_the_marginals",
        "draws_have_the_marginals",
    ]
    head, *found = failures_of(testing.check_learner, evenhand_of(CopiedUniform))
    assert found == ["  copies_are_refused: copy of a learner must raise TypeError, got no error"]


def test_a_mean_that_is_no_number_does_not_pass():
    with pytest.raises(AssertionError, match=r"the mean of entry \(1,\) is off: got nan"):
        check_estimate([0.5, np.nan], 0.001, 0.5, resolution=0.1)
    check_estimate([0.5, 0.501], [0.001, 0.002], 0.5, resolution=0.1)


def test_an_error_is_a_finding():
    def fine(make):
        pass

    def falls(make):
        raise KeyError("m")

    with pytest.raises(AssertionError, match="1 of 2 checks failed\n  falls: KeyError: 'm'"):
        run_checks([fine, falls], None)


def test_what_is_no_game_design_or_learner_is_said_to_be_none():
    with pytest.raises(AssertionError, match="must have m, value and pull, got none named m"):
        testing.check_game(lambda: "game")
    with pytest.raises(AssertionError, match=r"derive from evenhand.designs.Design, got str"):
        testing.check_design(lambda: "design")
    with pytest.raises(AssertionError, match=r"derive from evenhand.learners.Learner, got str"):
        testing.check_learner(lambda m, k, horizon, seed: "learner")
