"""What holds for every learner: all of it."""

from evenhand.testing import asking, keeping, plans, telling
from evenhand.testing.playing import Make
from evenhand.testing.running import Check, run_checks

LEARNER_CHECKS: list[Check] = [
    asking.the_seed_decides_everything,
    asking.how_asks_are_cut_changes_nothing,
    asking.batches_are_as_documented,
    asking.the_horizon_is_kept,
    asking.any_k_up_to_m_will_do,
    asking.the_estimate_is_what_the_learner_says,
    asking.asking_never_waits_for_rewards,
    asking.writing_to_a_batch_changes_nothing,
    asking.bad_numbers_are_refused,
    asking.unwanted_rewards_are_ignored,
    telling.rows_are_told_once,
    telling.rewards_matter,
    telling.rewards_may_come_late_in_any_order_and_parts,
    telling.rewards_are_taken_in_every_form,
    telling.receipts_survive_json,
    telling.only_owner_and_index_are_trusted,
    telling.missing_rewards_are_skipped,
    telling.what_does_not_belong_is_refused,
    telling.rows_expire,
    telling.threads_leave_the_books_in_order,
    keeping.a_restored_learner_goes_on_bit_for_bit,
    keeping.open_batches_survive_on_disk,
    keeping.a_snapshot_knows_which_rows_are_told,
    keeping.changed_snapshots_are_refused,
    keeping.copies_are_refused,
    plans.plans_survive_as_bytes,
    plans.evidence_can_be_merged,
    plans.late_rows_are_drawn_again,
]


def check_learner(make: Make) -> None:
    """Run all checks of :data:`LEARNER_CHECKS` on a learner.

    Parameters
    ----------
    make
        A function ``make(m, k, horizon, seed)`` that makes one; a learner that needs no horizon
        ignores it. Learners of 6 arms and 600 queries are made, and some with k = 1 and k = 6.

    Raises
    ------
    AssertionError
        It says which checks failed, and what each found.

    Examples
    --------
    >>> from evenhand.learners import URS
    >>> check_learner(lambda m, k, horizon, seed: URS(m, k, seed=seed))
    """
    run_checks(LEARNER_CHECKS, make)
