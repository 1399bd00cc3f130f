"""What holds for every game."""

from typing import Any

import numpy as np

from evenhand import merit
from evenhand.games.game import prefix_sets
from evenhand.testing.running import Check, made, raises, run_checks
from evenhand.testing.statistics import check_estimate, check_mean
from evenhand.typing import Floats, Ints

N = 30_000  # pulls of a set: means are then known to 0.02 of the range of rewards
MAX_LISTED = 12  # arms of a game whose sets are all listed


def check_game(make: Any) -> None:
    """Run all checks of :data:`GAME_CHECKS` on a game.

    Parameters
    ----------
    make
        A game, or a function without arguments that makes one. It should have three to ten arms:
        about 400 000 sets are pulled, and all sets are listed where there are at most 12 arms.

    Raises
    ------
    AssertionError
        It says which checks failed, and what each found.

    Examples
    --------
    >>> from evenhand.games import NoisyOr
    >>> check_game(NoisyOr([0.1, 0.5, 0.7]))
    """
    run_checks(GAME_CHECKS, make)


def value_gives_one_number_per_set(make: Any) -> None:
    """``value`` takes a boolean matrix (n, m) and returns n finite numbers, the same every time."""
    game = _game(make)
    sets = prefix_sets(*_queries(game), game.m)
    before = sets.copy()
    values = np.asarray(game.value(sets))
    assert values.shape == (len(sets),), (
        f"value must return shape ({len(sets)},) for {len(sets)} sets, got {values.shape}"
    )
    assert np.isfinite(values).all(), f"values must be finite, got {values}"
    assert np.array_equal(sets, before), "value must not change the sets it is given"
    assert np.array_equal(game.value(sets), values), "value must be the same every time"


def empty_set_is_worth_nothing(make: Any) -> None:
    """The empty set has value 0 and reward 0, or the game's ``empty``, without noise."""
    game = _game(make)
    value = float(game.value(np.zeros((1, game.m), np.bool_))[0])
    assert value == 0.0, f"the value of the empty set must be 0, got {value:g}"
    orders, sizes = _queries(game)
    rewards = game.pull(orders, np.zeros_like(sizes), np.random.default_rng(0))
    off = np.abs(rewards - _empty(game)).max()
    assert off == 0.0, f"the reward of the empty set must be {_empty(game):g}, got {off:g} off"


def rewards_lie_in_their_range(make: Any) -> None:
    """``pull`` returns one reward per query, in the shape of the sizes.

    It lies in [0, 1], or between the two numbers of the game's ``rewards``.
    """
    game = _game(make)
    rewards = _pull_often(game, 100)
    assert rewards.shape[1:] == _queries(game)[1].shape, (
        f"pull must return the shape of sizes (n, s), got {rewards.shape}"
    )
    least, most = _range(game)
    low, high = np.min(rewards), np.max(rewards)
    assert least <= low <= high <= most, (
        f"rewards must lie in [{least:g}, {most:g}], got {low:g} to {high:g}; rescale the game"
    )


def same_generator_same_rewards(make: Any) -> None:
    """All randomness comes from the generator, and arguments are left as they are."""
    game = _game(make)
    orders, sizes = _queries(game)
    given = orders.copy(), sizes.copy()
    one = game.pull(*given, np.random.default_rng(5))
    unchanged = np.array_equal(orders, given[0]) and np.array_equal(sizes, given[1])
    assert unchanged, "pull must not change orders and sizes"
    other = game.pull(*given, np.random.default_rng(5))
    assert np.array_equal(one, other), (
        f"the same generator must give the same rewards, got {one.tolist()} and {other.tolist()}; "
        "draw all random numbers from rng"
    )


def rewards_average_to_the_value(make: Any) -> None:
    """Rewards are the value plus noise of mean 0."""
    game = _game(make)
    check_mean(_pull_often(game, N), _means(game), resolution=0.02 * _width(game))


def coupled_rewards_average_to_the_value(make: Any) -> None:
    """``pull_coupled`` has the means of ``pull``. Does nothing for games without it."""
    game = _game(make)
    if not hasattr(game, "pull_coupled"):
        return
    check_mean(_pull_often(game, N, "pull_coupled"), _means(game), resolution=0.02 * _width(game))


def order_of_arms_does_not_matter(make: Any) -> None:
    """A set has the same mean reward in whatever order its arms stand. Needs two arms."""
    game = _game(make)
    if game.m < 2:
        return
    k = min(3, game.m)
    forward = np.arange(game.m - k, game.m)
    orders = np.repeat(np.stack([forward, forward[::-1]]), N, axis=0)
    rewards = game.pull(orders, np.full((2 * N, 1), k), np.random.default_rng(2)).reshape(2, N)
    means, stderr = rewards.mean(axis=1), np.sqrt(rewards.var(axis=1).sum() / N)
    try:
        check_estimate(means[0] - means[1], stderr, 0.0, resolution=0.03 * _width(game))
    except AssertionError as error:
        raise AssertionError(
            f"the order of arms must not matter, got a mean reward of {means[0]:.4g} for "
            f"{forward.tolist()} and of {means[1]:.4g} for {forward[::-1].tolist()}"
        ) from error


def arms_behind_the_prefix_are_ignored(make: Any) -> None:
    """Only the prefix counts: what stands behind it may be anything, -1 in batches of learners."""
    game = _game(make)
    orders, sizes = _queries(game)
    longest = sizes.max(axis=1, keepdims=True)
    padded = np.where(np.arange(orders.shape[1]) < longest, orders, -1)
    one, other = (game.pull(x, sizes, np.random.default_rng(3)) for x in (orders, padded))
    assert np.array_equal(one, other), (
        "entries of orders behind the longest prefix must have no effect, "
        f"got {one.tolist()}, and {other.tolist()} with -1 there"
    )


def closed_form_is_exact(make: Any) -> None:
    """``kshapley(k)`` is what listing all sets gives.

    Does nothing for games without it, or of more than 12 arms.
    """
    game = _game(make)
    if not hasattr(game, "kshapley") or game.m > MAX_LISTED:
        return
    for k in sorted({1, (game.m + 1) // 2, game.m}):
        found, truth = np.asarray(game.kshapley(k)), merit.exact(game, k)
        close = found.shape == truth.shape and np.allclose(found, truth, rtol=0.0, atol=1e-9)
        assert close, (
            f"kshapley({k}) must be the K-Shapley values of value, {truth.round(6).tolist()}, "
            f"got {found.round(6).tolist()}"
        )


def bad_queries_are_refused(make: Any) -> None:
    """Arms and sizes that do not exist raise ValueError or TypeError, before anything is drawn.

    :class:`~evenhand.games.game.NoisyMean` does it for you;
    :func:`evenhand.checks.check_orders` is what it calls.
    """
    game = _game(make)
    m, rng = game.m, np.random.default_rng(0)
    for orders, sizes, what in [
        ([[m]], [[1]], f"arm {m} of a game with arms 0..{m - 1}"),
        ([[-1]], [[1]], "arm -1"),
        ([[0, 0]], [[2]], "an arm twice in a set"),
        ([[0]], [[2]], "a size beyond the columns of orders"),
        ([[0]], [[-1]], "a negative size"),
        ([[0.5]], [[1]], "an arm that is no integer"),
        ([[0]], [1], "sizes that are no matrix"),
    ]:
        with raises(ValueError, TypeError, when=f"pull with {what}"):
            game.pull(np.array(orders), np.array(sizes), rng)
    with raises(TypeError, when="pull with rng=7 instead of a numpy Generator"):
        game.pull(np.array([[0]]), np.array([[1]]), 7)


GAME_CHECKS: list[Check] = [
    value_gives_one_number_per_set,
    empty_set_is_worth_nothing,
    rewards_lie_in_their_range,
    same_generator_same_rewards,
    rewards_average_to_the_value,
    coupled_rewards_average_to_the_value,
    order_of_arms_does_not_matter,
    arms_behind_the_prefix_are_ignored,
    closed_form_is_exact,
    bad_queries_are_refused,
]


def _game(make: Any) -> Any:
    game = made(make, "pull")
    for name in ("m", "value", "pull"):
        assert hasattr(game, name), f"a game must have m, value and pull, got none named {name}"
    return game


def _queries(game: Any) -> tuple[Ints, Ints]:
    """Six rows of up to three arms, each beginning with another arm, asked at two prefixes each."""
    k, two = min(3, game.m), min(2, game.m)
    arms = np.random.default_rng(4).permutation(game.m)
    orders = np.array([np.roll(arms, -i)[:k] for i in range(6)])
    return orders, np.array([[1, 0], [1, k], [two, k], [k, 0], [k, 1], [two, 1]])


def _range(game: Any) -> tuple[float, float]:
    """Return the smallest and the largest possible reward."""
    low, high = getattr(game, "rewards", (0.0, 1.0))
    return low, high


def _width(game: Any) -> float:
    low, high = _range(game)
    return high - low


def _empty(game: Any) -> float:
    """The reward of the empty set."""
    return float(getattr(game, "empty", 0.0))


def _means(game: Any) -> Floats:
    """Mean rewards (6, 2) of the queries."""
    orders, sizes = _queries(game)
    values = np.asarray(game.value(prefix_sets(orders, sizes, game.m)))
    return values.reshape(sizes.shape) + _empty(game)


def _pull_often(game: Any, n: int, method: str = "pull") -> Floats:
    """Rewards (n, 6, 2) of the queries, pulled n times."""
    orders, sizes = (np.tile(x, (n, 1)) for x in _queries(game))
    rewards = np.asarray(getattr(game, method)(orders, sizes, np.random.default_rng(1)))
    assert len(rewards) == len(sizes), (
        f"{method} must return one row of rewards per row of orders, {len(sizes)}, "
        f"got shape {rewards.shape}"
    )
    return rewards.reshape(n, -1, *rewards.shape[1:])
