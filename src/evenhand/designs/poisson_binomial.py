r"""Independent coins conditioned on exactly k heads: normaliser and marginals.

With log-odds :math:`\theta_a` shifted so that the expected number of heads is k, coin a shows head
with probability :math:`p_a`; N is the number of heads. Wanted are :math:`P(N = k)` and
:math:`\pi_a = P(a \mid N = k)`, and :math:`1 - \pi_a` by a sum of its own, so that it keeps its
digits where it is small. Two methods agree to rounding: a recursion over the coins,
O(M min(k, M-k)), and a contour integral, O(M) whatever k. The recursion only adds and multiplies
positive numbers; the contour's error is absolute, so that chances below rounding are lost.
"""

import math

import numpy as np

from evenhand.typing import Floats, compiled, part

NEGLIGIBLE = 1e-18  # terms of the contour sum below this are dropped
RECURSION_UP_TO = 24  # heads or tails; about as many contour points count, at a similar cost each


@compiled
def sigmoid(x: Floats) -> tuple[Floats, Floats]:
    """Return p = 1 / (1 + exp(-x)) and 1 - p, each to full relative accuracy."""
    p, q = np.empty_like(x), np.empty_like(x)
    for a in range(len(x)):
        small = math.exp(-abs(x[a]))
        large = 1.0 / (1.0 + small)
        small *= large
        p[a], q[a] = (large, small) if x[a] >= 0.0 else (small, large)
    return p, q


@compiled
def centre(theta: Floats, k: int, near: float = 0.0) -> float:
    """Return the shift of all log-odds after which k heads are expected, for 0 < k < M.

    ``near`` is how many standard deviations of their number are near enough.
    """
    low, high, shift = np.inf, -np.inf, 0.0
    for x in theta:  # exp(-750) is 0: all tails, all heads
        low, high = min(low, -x - 750.0), max(high, 750.0 - x)
    for _ in range(200):
        heads, slope = -float(k), 0.0
        for a in range(len(theta)):
            p = 1.0 / (1.0 + math.exp(-theta[a] - shift))
            heads += p
            slope += p * (1.0 - p)
        if heads > 0.0:
            high = min(high, shift)
        else:
            low = max(low, shift)
        near_enough = abs(heads) <= max(1e-13 * k, near * math.sqrt(slope))
        if near_enough or high - low <= 1e-14 * max(1.0, abs(shift)):
            break
        step = shift - heads / slope if slope > 0.0 else np.inf
        shift = step if low < step < high else 0.5 * (low + high)
    return shift


def points_for(m: int, k: int) -> Floats | None:
    """Memory for the points of the contour; None where the recursion is cheaper."""
    return None if min(k, m - k) <= RECURSION_UP_TO else np.empty((4, m // 2 + 1))


def condition(p: Floats, q: Floats, k: int, pi: Floats, rest: Floats) -> float:
    """Return log P(N = k); fill in the marginals given N = k, and 1 minus them."""
    points = points_for(len(p), k)
    if points is None:
        return by_recursion(p, q, k, pi, rest)
    return by_contour(p, q, k, pi, rest, points)


@compiled
def n_points(m: int, variance: float) -> int:
    """Odd number of contour points that keeps what aliases below rounding.

    n points add the chances of k +- n, k +- 2n, ... heads to that of k; m + 1 of them are exact.
    By Bennett's inequality these are at most 2 exp(-v h(n / v)) for a variance v, where
    h(x) = (1 + x) log(1 + x) - x: with n = 16 sqrt(v) + 16 below 1e-35 whatever v is.
    An odd number stays clear of angle pi, where a fair coin's factor vanishes.
    """
    return min(m + 1, math.ceil(16.0 * math.sqrt(variance)) + 16) | 1


@compiled
def by_recursion(p: Floats, q: Floats, k: int, pi: Floats, rest: Floats) -> float:
    """Recursion over the coins, two at a time, forward and backward; counts what is rarer."""
    m = len(p)
    if 2 * k > m:  # fewer tails
        p, q, k, pi, rest = q, p, m - k, rest, pi
    n_pairs = (m + 1) // 2
    # forward[i, j]: chance of j heads among the first i pairs
    forward = np.empty((n_pairs + 1, max(k, 1) + 1))  # two columns at least: both are written
    for j in range(forward.shape[1]):
        forward[0, j] = j == 0
    for i in range(n_pairs):
        none, second, first, both = _pair(p, q, i)
        one, now, after = first + second, forward[i], forward[i + 1]
        after[0], after[1] = none * now[0], none * now[1] + one * now[0]
        for j in range(k - 1):  # in loops where none waits for the one before, several at a time
            after[j + 2] = none * now[j + 2] + one * now[j + 1] + both * now[j]
    total = forward[n_pairs, k]
    needed = np.empty(k + 3)  # needed[j]: chance of the k - j heads still needed after pair i
    for j in range(k + 3):
        needed[j] = j == k
    for i in range(n_pairs - 1, -1, -1):
        none, second, first, both = _pair(p, q, i)
        one, now = first + second, forward[i]
        with_none = with_one = with_both = 0.0
        for j in range(k + 1):
            with_none += now[j] * needed[j]
            with_one += now[j] * needed[j + 1]
            with_both += now[j] * needed[j + 2]
        for j in range(k + 1):
            needed[j] = none * needed[j] + one * needed[j + 1] + both * needed[j + 2]
        none, both = none * with_none / total, both * with_both / total
        first, second = first * with_one / total, second * with_one / total
        pi[2 * i], rest[2 * i] = first + both, second + none
        if 2 * i + 1 < m:
            pi[2 * i + 1], rest[2 * i + 1] = second + both, first + none
    return math.log(total)


@part
def _pair(p: Floats, q: Floats, i: int) -> tuple[float, float, float, float]:
    """Chance that no head, only the second, only the first, or both show in the i-th pair."""
    a, b = 2 * i, 2 * i + 1
    if b == len(p):
        return q[a], 0.0, p[a], 0.0
    return q[a] * q[b], q[a] * p[b], p[a] * q[b], p[a] * p[b]


@compiled
def by_contour(p: Floats, q: Floats, k: int, pi: Floats, rest: Floats, points: Floats) -> float:
    r"""Trapezoidal rule on the unit circle, exact up to aliasing.

    :math:`P(N=k) = \frac1n \sum_j g_j` with :math:`g_j = e^{-ikx_j} \prod_a z_{aj}` and
    :math:`z_{aj} = q_a + p_a e^{ix_j}`; taking coin a out divides by :math:`z_{aj}`. The modulus of
    the product falls like a Gaussian, so few points count. Conjugate points come in pairs.
    """
    kept, n = contour(p, q, k, points)
    cosines, sines, g_re, g_im = points[0], points[1], points[2], points[3]
    m, total = len(p), 0.0
    for j in range(kept):
        total += g_re[j]
    total = 1.0 + 2.0 * total
    pi[:], rest[:] = 1.0, 1.0
    block = 1024  # coins at a time, so that they stay in the nearest cache
    for start in range(0, m, block):
        stop = min(start + block, m)
        for j in range(kept):
            c, s = cosines[j], sines[j]
            shifted_re = g_re[j] * c - g_im[j] * s
            shifted_im = g_re[j] * s + g_im[j] * c
            for a in range(start, stop):
                z_re, z_im = q[a] + p[a] * c, p[a] * s
                scale = 2.0 / (z_re * z_re + z_im * z_im)
                rest[a] += scale * (g_re[j] * z_re + g_im[j] * z_im)
                pi[a] += scale * (shifted_re * z_re + shifted_im * z_im)
    for a in range(m):
        # sums that cancel may end below 0: where heads are all but certain
        pi[a], rest[a] = max(0.0, p[a] * pi[a] / total), max(0.0, q[a] * rest[a] / total)
    return math.log(total / n)


@compiled
def contour(p: Floats, q: Floats, k: int, points: Floats) -> tuple[int, int]:
    """Write cos, sin and g at the points of the upper half circle that count into the rows.

    Returns how many these are, and how many points there are on the whole circle.
    """
    variance = 0.0
    for a in range(len(p)):
        variance += p[a] * q[a]
    n = n_points(len(p), variance)
    kept = _points_that_count(p, q, n)
    cosines, sines, g_re, g_im = points[0], points[1], points[2], points[3]
    for j in range(kept):
        angle = 2.0 * math.pi / n * (j + 1)
        cosines[j], sines[j], g_re[j], g_im[j] = math.cos(angle), math.sin(angle), 1.0, 0.0
    for a in range(len(p)):
        for j in range(kept):
            z_re, z_im = q[a] + p[a] * cosines[j], p[a] * sines[j]
            real = g_re[j] * z_re - g_im[j] * z_im
            g_im[j] = g_re[j] * z_im + g_im[j] * z_re
            g_re[j] = real
    for j in range(kept):
        turn = 2.0 * math.pi * ((k * (j + 1)) % n) / n
        c, s = math.cos(turn), math.sin(turn)
        g_re[j], g_im[j] = g_re[j] * c + g_im[j] * s, g_im[j] * c - g_re[j] * s
    return kept, n


@compiled
def _points_that_count(p: Floats, q: Floats, n: int) -> int:
    """Last point of the upper half circle at which the product's modulus is not negligible.

    The modulus falls with the angle, so the point is found by bisection.
    """
    low, high = 0, n // 2
    while low < high:
        middle = (low + high + 1) // 2
        chord = 2.0 * math.sin(math.pi * middle / n)
        square = 1.0
        for a in range(len(p)):
            square *= 1.0 - p[a] * q[a] * chord * chord
        if square < NEGLIGIBLE * NEGLIGIBLE:
            high = middle - 1
        else:
            low = middle
    return low
