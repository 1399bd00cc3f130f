"""Checks of what callers pass in, each with its error message.

Everything below the boundary trusts its input. A message names the argument, states the rule,
then the value, and the way out where it is not obvious.
"""

import math
import operator
import os
import reprlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.typing import Bools, Floats, Ints, compiled

SUM_TOLERANCE = 1e-9  # how far the sum of marginals may be from an integer
ROUNDING = 1e-12  # how far an entry may lie outside its interval
ROWS = 2**12  # rows gone through at a time: they stay in the cache
SMALLEST = 1e-300  # marginals below it count as 0: the odds of smaller ones lose digits


def as_integer(name: str, value: Any) -> int:
    """Return ``value`` as an int; refuse True and False, which Python counts as integers."""
    refuse_truth(name, "an integer", value)
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None


def refuse_truth(name: str, rule: str, value: Any) -> None:
    """Refuse True and False where a number is asked for: they are mostly a mistake."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be {rule}, got {bool(value)}; write {int(value)} if meant so")


def check_truth(name: str, value: Any) -> bool:
    """Return ``value`` as a bool; text such as "no" would be taken for True."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Return ``value`` as an int of at least ``minimum``."""
    number = as_integer(name, value)
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {name}={number}")
    return number


def check_budget(m: Any, k: Any) -> tuple[int, int]:
    """Return ``m`` and ``k`` as ints with 1 <= k <= m."""
    m, k = check_integer("m", m, 1), as_integer("k", k)
    if not 1 <= k <= m:
        raise ValueError(f"k must satisfy 1 <= k <= m, got k={k} with m={m}")
    return m, k


def check_number(name: str, value: Any, low: float, high: float) -> float:
    """Return ``value`` as a float in [low, high]; an infinite end is open."""
    if isinstance(value, float):
        number = float(value)
    else:
        refuse_truth(name, "a number", value)
        array = as_reals(name, value, "be a number")
        if array.ndim or value is None:  # None would become nan
            raise TypeError(f"{name} must be a number, got {value!r}")
        number = float(array)
    if not (low <= number <= high and math.isfinite(number)):
        raise ValueError(f"{name} must {interval(low, high)}, got {name}={number!r}")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above 0."""
    number = check_number(name, value, 0.0, np.inf)
    if number == 0.0:
        raise ValueError(f"{name} must be above 0, got {name}=0")
    return number


def check_range(rewards: ArrayLike, empty: Any) -> tuple[tuple[float, float], float]:
    """Return the smallest and the largest reward, and the empty set's, which lies between them."""
    ends = as_reals("rewards", rewards, "be two numbers (low, high)")
    low, high = ends.tolist() if ends.shape == (2,) else (0.0, 0.0)
    if not (low < high and math.isfinite(high - low)):
        raise ValueError(
            f"rewards must be two finite numbers (low, high) with low < high, got {rewards!r}"
        )
    worth = check_number("empty", empty, -np.inf, np.inf)
    if not low <= worth <= high:
        raise ValueError(
            f"empty must lie in [{low:g}, {high:g}], the range of rewards, as the empty set is one "
            f"of the sets, got empty={worth:g}; "
            f"give rewards=({min(low, worth):g}, {max(high, worth):g}), or what nothing at all "
            f"brings, such as empty={low:g}"
        )
    return (low, high), worth


def check_vector(name: str, values: ArrayLike, low: float, high: float, remedy: str = "") -> Floats:
    """Return a non-empty 1-d float array whose entries all lie in [low, high]."""
    vector = as_floats(name, values)
    check_entries(name, vector, low, high, remedy)
    return vector


def as_floats(name: str, values: ArrayLike) -> Floats:
    """Return a non-empty 1-d array of floats, not shared with the caller."""
    vector = as_reals(name, values, "be a vector of real numbers")
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"{name} must be a non-empty vector, got shape {vector.shape}")
    return vector


def as_reals(name: str, values: ArrayLike, rule: str, kinds: str = "biufO") -> Floats:
    """Return numbers of some of numpy's kinds as a new array of floats.

    Text that reads as a number is refused, also among Python objects (kind O).
    """
    try:  # contextlib.suppress takes as long as all of this
        array = np.array(values)
        kind = array.dtype.kind
        text = kind == "O" and any(isinstance(x, str | bytes) for x in array.flat)
        if kind in kinds and not text:
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):  # ragged, no numbers, or beyond all floats
        pass
    raise TypeError(f"{name} must {rule}, got {reprlib.repr(values)}")


def check_entries(name: str, values: Floats, low: float, high: float, remedy: str = "") -> None:
    """Refuse the first entry that is nan, infinite or outside [low, high]."""
    flat = first_outside(values.reshape(-1), low, high)
    if flat < 0:
        return
    where = np.unravel_index(flat, values.shape)
    index = ", ".join(str(int(i)) for i in where)
    got = f"got {name}[{index}]={float(values[where])!r}"
    raise ValueError(f"{name} must {interval(low, high)}, {got}{remedy and '; '}{remedy}")


def interval(low: float, high: float) -> str:
    """Say in words where a finite number must lie."""
    if np.isfinite(high):
        return f"lie in [{low:g}, {high:g}]"
    return "be finite" if low == -np.inf else f"be finite and >= {low:g}"


def check_marginals(marginals: ArrayLike) -> tuple[Floats, int]:
    """Return marginals in [0, 1] and the integer k >= 1 they sum to, rounding errors mended."""
    vector = as_floats("marginals", marginals)
    total = mend_sum(vector)
    if math.isnan(total):
        check_entries("marginals", vector, 0.0, 1.0)  # raises
    k = round(total)
    if k < 1 or abs(total - k) > SUM_TOLERANCE + 1e-14 * len(vector):
        raise ValueError(
            f"marginals must sum to an integer k >= 1, got {total:.12g}; "
            "make them with evenhand.fair_policy or evenhand.policy.project_l1"
        )
    return vector, k


def check_memory(what: str, n_bytes: int) -> None:
    """Refuse what would take more memory than the machine has, before any of it is taken."""
    if n_bytes > (most := machine_memory()):
        raise ValueError(
            f"{what} would take {min(n_bytes, 10**300) / 2**30:.3g} GiB of memory, "
            f"and this machine has {most / 2**30:.3g} GiB"
        )


def machine_memory() -> int:
    """Bytes of memory of this machine; 1 TiB where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**40


def check_rng(rng: Any) -> np.random.Generator:
    """Return ``rng`` if it is a numpy Generator."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a numpy.random.Generator, got {type(rng).__name__}; "
            "make one with numpy.random.default_rng(seed)"
        )
    return rng


def check_sets(sets: ArrayLike, m: int) -> Bools:
    """Return coalitions as a boolean (n, m) matrix; one coalition (m,) becomes a single row."""
    try:
        matrix = np.asarray(sets)
    except ValueError:  # ragged rows
        raise ValueError(f"sets must be a boolean (n, {m}) matrix") from None
    if matrix.dtype != np.bool_:
        raise TypeError(f"sets must be a boolean (n, m) matrix, got dtype {matrix.dtype}")
    if matrix.ndim not in (1, 2) or matrix.shape[-1] != m:
        raise ValueError(f"sets must have shape (n, {m}) or ({m},), got {matrix.shape}")
    return np.ascontiguousarray(matrix.reshape(-1, m))


def check_orders(orders: ArrayLike, sizes: ArrayLike, m: int) -> tuple[Ints, Ints]:
    """Return ordered sets (n, k) and the prefix lengths (n, s) asked of them."""
    arms = as_integers("orders", orders)
    lengths = as_integers("sizes", sizes)
    if arms.ndim != 2 or lengths.ndim != 2 or len(arms) != len(lengths):
        raise ValueError(
            "orders must have shape (n, k) and sizes (n, s) with the same n, "
            f"got {arms.shape} and {lengths.shape}"
        )
    row, wrong_size = first_bad_query(arms, lengths, m)
    if row < 0:
        return arms, lengths
    if wrong_size:
        k, asked = arms.shape[1], lengths[row].tolist()
        raise ValueError(f"sizes must lie in 0..{k}, the columns of orders, got row {row}: {asked}")
    raise ValueError(
        f"orders must hold distinct arms in 0..{m - 1}, "
        f"got row {row}: {arms[row, : lengths[row].max()].tolist()}"
    )


def as_integers(name: str, values: ArrayLike) -> Ints:
    """Return an integer array as int64, refusing floats instead of truncating them."""
    try:
        array = np.asarray(values)
    except ValueError:  # ragged rows
        raise ValueError(f"{name} must be a rectangular array of integers") from None
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64)


@compiled
def mend_sum(marginals: Floats) -> float:
    """Cut entries to [0, 1] and spread over them what their sum lacks to the nearest integer.

    The marginals of a law sum to k exactly, so no fit could come nearer to the given ones than
    their sum is to k. What is lacking is spread in proportion to p (1 - p), so that 0 and 1 stay
    what they are, and entries to which the others leave no choice become 0 or 1. Returns the sum as
    it was, for the caller to refuse one that is off by more than rounding; nan, with all entries
    before it cut, at an entry outside by more than rounding.
    """
    total = room = 0.0
    for a in range(len(marginals)):
        if not -ROUNDING <= marginals[a] <= 1.0 + ROUNDING:
            return np.nan
        p = marginals[a]
        p = 0.0 if p <= 0.0 else 1.0 if p > 1.0 else p
        marginals[a] = p
        total += p
        room += p * (1.0 - p)
    k = math.floor(total + 0.5)
    lacking, free, always = k - total, 0, 0
    for a in range(len(marginals)):
        p = marginals[a]
        if 0.0 < p < 1.0:
            p += lacking * (p * (1.0 - p) / room)
            p = 0.0 if p < SMALLEST else 1.0 if p > 1.0 else p
            marginals[a] = p
            free += 0.0 < p < 1.0
        always += p == 1.0
    if always >= k or always + free <= k:
        for a in range(len(marginals)):
            if 0.0 < marginals[a] < 1.0:
                marginals[a] = 0.0 if always >= k else 1.0
    return total


def first_outside(values: Floats, low: float, high: float) -> int:
    """First entry that is nan, infinite or outside [low, high]; -1 if there is none."""
    outside = ~((low <= values) & (values <= high) & np.isfinite(values))
    return int(outside.argmax()) if outside.any() else -1


@compiled
def first_bad_query(orders: Ints, sizes: Ints, m: int) -> tuple[int, bool]:
    """First row with a size outside 0..k, or whose longest prefix has a bad arm; else -1."""
    # last row that held an arm; uninitialised on purpose, since filling it would cost more than
    # all else where m is large: a hit is confirmed by scanning the row
    seen = np.empty(m, np.int64)
    (n, k), s = orders.shape, sizes.shape[1]
    # rows of several arms are listed first and looked at then: single ones among them at random
    # would have the processor guess, and half of the time wrong
    rows, ends = np.empty(min(n, ROWS), np.int64), np.empty(min(n, ROWS), np.int64)
    for first in range(0, n, ROWS):
        count, bad, by_size = 0, -1, False
        for row in range(first, min(first + ROWS, n)):
            longest, least = 0, 0
            for j in range(s):
                size = sizes[row, j]
                longest = size if size > longest else longest
                least = size if size < least else least
            by_size = least < 0 or longest > k
            if by_size or (longest > 0 and not 0 <= orders[row, 0] < m):
                bad = row
                break
            rows[count], ends[count] = row, longest
            count += longest > 1
        for i in range(count):
            row = rows[i]
            for column in range(ends[i]):
                arm = orders[row, column]
                if arm < 0 or arm >= m:
                    return row, False
                place = np.uintp(arm)  # of signed numbers each is looked at for its sign
                if seen[place] == row:
                    for before in range(column):
                        if orders[row, before] == arm:
                            return row, False
                seen[place] = row
        if bad >= 0:
            return bad, by_size
    return -1, False
