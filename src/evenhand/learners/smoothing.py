r"""What an arm adds changes gradually with the size of sets: noisy gains smoothed over sizes.

Of each arm there is a noisy gain at every size. That the true ones lie on a straight line in the
mean saturation met would be too much to believe; that they bend little, and in all arms about as
much, is not. A smoothing spline says so: what second differences have in common is a variance,
:math:`\kappa^2`, which the gains themselves tell, as few of them as there are and as noisy.

With g the gains of an arm (k,), V their variances, Q the second differences and R the matrix of
the cubic spline, :math:`Q'g` is normal with variance :math:`Q'VQ + \kappa^2 R`, and a mean of the
gains with shares c is

.. math:: c'g - c'VQ \, (Q'VQ + \kappa^2 R)^{-1} \, Q'g,

which is :math:`c'g` itself where :math:`\kappa` is large or noise small. An arm that bends more
than that allows, as one that needs others may do where most do not, is left as it is.
"""

import numpy as np
from scipy.special import chdtri

from evenhand.typing import Floats, Ints, compiled, part

FLATTEST = 1e-3  # the last step of saturation over the first, at least: smaller ones say the same
# kappa^2, where R is to Q'VQ as it is in the middle: from next to nothing to next to no smoothing
BENDS = np.concatenate([[0.0], 4.0 ** np.arange(-7.0, 12.0)])
BLOCK = 2**12  # arms whose contrasts are kept at a time
TELL = 256  # arms that are enough to tell how much gains bend
SLIGHT = 1e-3  # what is less likely than this, beside the likeliest, is left out
ODD = 0.05  # chance that any arm is left as it is though all bend alike


def smooth(
    gains: Floats, noise: Floats, arms: Ints, share: Floats, left: float
) -> tuple[Floats, Floats]:
    """What is to be taken off means of noisy gains, and off their variances.

    Parameters
    ----------
    gains, noise
        (k, m) gains of all arms at each size, and their variances.
    arms
        (n,) the arms that are asked for, whose variances are finite and above 0.
    share
        (k,) the mean that is wanted.
    left
        What an arm leaves to others on average: steps of saturation shrink by this factor.

    Returns
    -------
    taken, relief
        (n,) to be subtracted from ``share @ gains`` and ``share**2 @ noise`` of these.
    """
    k, n = len(gains), len(arms)
    steps = np.clip(left, FLATTEST ** (1.0 / max(k - 2, 1)), 1.0) ** np.arange(k - 1.0)
    few = np.ascontiguousarray(arms[:: -(-n // TELL)])
    bends = BENDS * _unit(noise[:, few], steps)
    total = contrasts(gains, noise, few, share, steps, bends)[2].sum(axis=0)
    total[np.isnan(total)] = -np.inf  # noise so unequal that digits do not suffice
    chance = np.exp(total - total.max())
    chance[chance < SLIGHT] = 0.0
    chance /= chance.sum()
    likely = chance > 0.0
    bends, chance = bends[likely], chance[likely]
    taken, relief, odd = np.empty((3, n))
    for start in range(0, n, BLOCK):
        at = slice(start, start + BLOCK)
        off, less, _, far = contrasts(gains, noise, arms[at], share, steps, bends)
        taken[at], odd[at] = off @ chance, far @ chance
        # what is not known of kappa is noise, too
        relief[at] = less @ chance - ((off * off) @ chance - taken[at] ** 2)
    alike = odd <= chdtri(k - 2, ODD / n)
    return np.where(alike, taken, 0.0), np.where(alike, relief, 0.0)


def _unit(noise: Floats, steps: Floats) -> float:
    """How large second differences are by noise alone, over what they are for kappa 1: the median.

    Of arms and sizes: some arms may be new, and the last steps much smaller than the first.
    """
    before, after = 1.0 / steps[:-1, None], 1.0 / steps[1:, None]
    by_noise = before**2 * noise[:-2] + (before + after) ** 2 * noise[1:-1] + after**2 * noise[2:]
    return float(np.median(by_noise / ((steps[:-1] + steps[1:])[:, None] / 3.0)))


@compiled
def contrasts(
    gains: Floats, noise: Floats, arms: Ints, share: Floats, steps: Floats, bends: Floats
) -> Floats:
    """What :func:`contrast` says of each arm and kappa^2 (4, n, bends)."""
    found = np.empty((4, len(arms), len(bends)))
    for i in range(len(arms)):
        for b in range(len(bends)):
            taken, relief, chance, far = contrast(gains, noise, arms[i], share, steps, bends[b])
            found[0, i, b], found[1, i, b] = taken, relief
            found[2, i, b], found[3, i, b] = chance, far
    return found


@part
def contrast(
    gains: Floats, noise: Floats, a: int, share: Floats, steps: Floats, bend: float
) -> tuple[float, float, float, float]:
    """For one arm and kappa^2, what to take off mean and variance, and how likely its gains are.

    Last, how far second differences are off, in squared standard errors: chi-square, k - 2.

    The matrix has two bands on each side; it is taken apart from the first row on, and both
    vectors that are to be solved for along with it. Their products are all that is needed.
    """
    taken = relief = chance = distance = 0.0
    # of the last row and the one before: pivot, both vectors, weights of the difference
    pivot1, u1, v1, middle1, last1, side1 = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    pivot2, u2, v2, last2 = 1.0, 0.0, 0.0, 0.0
    for j in range(len(gains) - 2):
        first, last = 1.0 / steps[j], 1.0 / steps[j + 1]
        middle = -first - last
        x, y, z = noise[j, a], noise[j + 1, a], noise[j + 2, a]
        u = first * gains[j, a] + middle * gains[j + 1, a] + last * gains[j + 2, a]
        v = first * share[j] * x + middle * share[j + 1] * y + last * share[j + 2] * z
        pivot = first * first * x + middle * middle * y + last * last * z
        pivot += bend * (steps[j] + steps[j + 1]) / 3.0
        far = last2 * first * x / pivot2
        near = middle1 * first * x + last1 * middle * y
        near += bend * steps[j] / 6.0 if j else 0.0
        near = (near - far * pivot2 * side1) / pivot1
        pivot -= near * near * pivot1 + far * far * pivot2
        u -= near * u1 + far * u2
        v -= near * v1 + far * v2
        taken += u * v / pivot
        relief += v * v / pivot
        distance += u * u / pivot
        chance -= 0.5 * (np.log(pivot) + u * u / pivot)
        pivot2, u2, v2, last2 = pivot1, u1, v1, last1
        pivot1, u1, v1, middle1, last1, side1 = pivot, u, v, middle, last, near
    return taken, relief, chance, distance
