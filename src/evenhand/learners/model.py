r"""The model: what a set brings by what its arms bring alone, and how gains shrink as sets fill up.

.. math:: \mu(S) = b(S) - \sum_{a \in S} \eta_a s_a(S), \qquad
    b(S) = \frac{1 - \prod_{a \in S} (1 - \gamma x_a)}\gamma, \qquad
    s_a(S) = 1 - \prod_{c \in S \setminus a} (1 - \gamma x_c).

x is the worth of each arm alone, :math:`\gamma` one curvature for all (0: worths add up, 1:
noisy-OR), s the saturation an arm meets and :math:`\eta` what it loses to saturation beyond its
share. Rewards scatter about :math:`\mu` with the variance :math:`\alpha + \beta q(\mu)`,
q being that of 0/1 rewards, times a ratio of the arms' own, and a factor of larger sets.
"""

from typing import NamedTuple

import numpy as np

from evenhand.subsets.combinations import mean_products
from evenhand.typing import Floats, Ints, compiled, part

LEAST = 0.02  # an arm leaves at least this share to the others, so that products stay above 0
EDGE = 1e-4  # means this near to the ends of the range have the variance they would have there
DIRECTIONS = 4  # all worths, worths by reference, all extra losses, the curvature


class Forecast(NamedTuple):
    """What sets are expected to bring, kept fixed while rewards are taken in.

    Attributes
    ----------
    worth, extra, gamma
        The model's x (m,), eta (m,) and curvature.
    noise
        (3,) alpha and beta of the variance, and how many times more larger sets scatter.
    own
        (m,) variance of each arm's rewards, relative to what its worth says.
    reference
        (m,) the worths that the curvature is followed along, see :class:`Sums`.
    expected
        (k, m) mean over all r-sets with an arm of what is subtracted from rewards.
    met
        (k,) mean saturation that members met in sets of each size.
    edge
        (m,) means of sets this near to the ends of the range have the variance they would have
        there, as what is forecast of an arm that is new may be wrong by so much.
    """

    worth: Floats
    extra: Floats
    gamma: float
    noise: Floats
    own: Floats
    reference: Floats
    expected: Floats
    met: Floats
    edge: Floats

    @classmethod
    def blank(cls, m: int, k: int) -> "Forecast":
        """Knowing nothing."""
        half, one = np.full(m, 0.5), np.ones(m)
        noise = np.array([0.0, 1.0, 1.0])
        expected = np.repeat(1.0 - 0.5 ** np.arange(1.0, k + 1.0)[:, None], m, axis=1)
        return cls(half, np.zeros(m), 1.0, noise, one, half, expected, np.zeros(k), np.zeros(m))


class Sums(NamedTuple):
    """What larger sets say about the model: gradients g at the forecast, surprises e, variances v.

    Attributes
    ----------
    cells
        (m, 13) per arm, its entries of g being one for x and one for eta: the three products of
        these over v, e times them over v, and them times ``g . d`` over v for the four directions
        d that are followed exactly.
    curve
        (2,) g^2/v and g e/v of the curvature.
    saturation
        (k, 2) per size: members, and the saturation they met.
    scatter
        (5,) 1, q, q^2, e^2 and q e^2, each over the variance without the arms' own ratio.
    weight
        (2,) sum of the sets' weights, and of their squares: older sets count less.
    """

    cells: Floats
    curve: Floats
    saturation: Floats
    scatter: Floats
    weight: Floats

    @classmethod
    def blank(cls, m: int, k: int) -> "Sums":
        """Of no sets."""
        cells = np.full((m, 5 + 2 * DIRECTIONS), 0.0)  # fetched now, as in Evidence
        return cls(cells, np.zeros(2), np.zeros((k, 2)), np.zeros(5), np.zeros(2))

    @property
    def up(self) -> float:
        """What faded sums are to be multiplied by, to count as the rewards they are worth."""
        # a sum of weights w is worth (sum w)^2 / sum w^2 rewards
        return float(self.weight[0] / self.weight[1]) if self.weight[1] > 0.0 else 1.0

    def fade(self, share: float) -> None:
        """Let all sets so far count for less."""
        for array in self[:-1]:
            array *= share
        self.weight[:] *= np.array([share, share**2])

    def join(self, other: "Sums") -> "Sums":
        """Both together, each counting as the rewards it is worth."""
        pairs = zip(self[:-1], other[:-1], strict=True)
        cells, curve, saturation, scatter = (self.up * a + other.up * b for a, b in pairs)
        return Sums(cells, curve, saturation, scatter, np.ones(2))


class Kept(NamedTuple):
    """Larger sets that are kept, and what was seen of them.

    Attributes
    ----------
    orders
        (n, k) members, -1 behind them.
    looks
        (n, k + 3) what the others leave to each member, the slope of b in the curvature, 1/v, and
        the reward less b and less the extra losses at the saturation met.
    sinking
        (m, 2) per arm, see :func:`sinking`.
    """

    orders: Ints
    looks: Floats
    sinking: Floats


def binary_variance(mean: Floats, low: float) -> Floats:
    """Variance of rewards that are either ``low`` or ``low + 1``, by their mean."""
    held = np.minimum(np.maximum(mean - low, EDGE), 1.0 - EDGE)
    return held * (1.0 - held)


def rates(worth: Floats, gamma: float) -> Floats:
    """How fast the logarithm of what each arm leaves sinks as the curvature grows."""
    left = 1.0 - gamma * worth
    return np.divide(worth, left, out=np.zeros_like(left), where=left > LEAST)


@compiled
def sinking(orders: Ints, looks: Floats, rate: Floats, result: Floats) -> None:
    """Add up how what others leave to an arm sinks as the curvature grows, worths being fixed.

    With l what they leave and s how fast it sinks: sums of l s/v and s/v, per arm (m, 2).
    ``rate`` (m,) is how fast the logarithm of what an arm leaves sinks, see :func:`rates`.
    """
    n, k = orders.shape
    for i in range(n):
        crowd, r = 0.0, 0
        while r < k and orders[i, r] >= 0:
            crowd += rate[np.uintp(orders[i, r])]
            r += 1
        for j in range(r):
            a = np.uintp(orders[i, j])
            slope = looks[i, j] * (crowd - rate[a]) * looks[i, k + 1]
            result[a, 0] += looks[i, j] * slope
            result[a, 1] += slope


@part
def times(orders: Ints, looks: Floats, vector: Floats, result: Floats) -> None:
    """Add to ``result`` what the sets' information makes of a vector (2m + 1,): x, eta, gamma."""
    n, k = orders.shape
    m = len(vector) // 2
    x, eta, by_x, by_eta = vector[:m], vector[m:], result[:m], result[m:]
    for i in range(n):
        product, r = looks[i, k] * vector[2 * m], 0
        while r < k and orders[i, r] >= 0:
            a = np.uintp(orders[i, r])
            product += looks[i, r] * x[a] + (looks[i, r] - 1.0) * eta[a]
            r += 1
        product *= looks[i, k + 1]
        result[2 * m] += looks[i, k] * product
        for j in range(r):
            a = np.uintp(orders[i, j])
            by_x[a] += looks[i, j] * product
            by_eta[a] += (looks[i, j] - 1.0) * product


class Merits(NamedTuple):
    """K-Shapley values of the model, and how they follow from its parameters.

    A value changes by ``x`` and ``eta`` with the arm's own, by ``all_x`` and ``all_eta`` with
    everybody's, and by ``gamma`` with the curvature.
    """

    value: Floats
    x: Floats
    eta: Floats
    all_x: Floats
    all_eta: Floats
    gamma: Floats


def expectations(
    worth: Floats, extra: Floats, gamma: float, met: Floats, found: Floats
) -> tuple[Floats, Merits]:
    r"""Return ``expected`` (k, m) of a forecast, and the merits of the model.

    With :math:`p_r` the mean of :math:`\prod (1 - \gamma x_c)` over r random others of an arm,

    .. math:: \phi_a = \frac1K \sum_{r<K} x_a p_r - \eta_a (1 - p_r)
        - r \gamma x_a \bar\eta p_{r-1}.

    ``found`` are the worths that the merits are linear in, before they were held above 0. What is
    subtracted from rewards has the saturation met in its place, and so a closed form.
    """
    m, k = len(worth), len(met)
    left = np.maximum(1.0 - gamma * worth, LEAST)
    table = mean_products(left, k)
    expected, mean, lower = add_up_sizes(table, left, extra, gamma, met)
    mean, lower = mean / k, lower / k
    del table
    crowd = gamma * lower
    value = found * mean - extra * (1.0 - mean) - found * extra.mean() * crowd
    step = 1e-3 * gamma
    steeper = mean_products(np.maximum(1.0 - (gamma + step) * worth, LEAST), k).mean(axis=1)
    all_x, all_eta = -worth * crowd / max(m - 1, 1), -worth * crowd / m
    own = mean - extra.mean() * crowd - all_x
    bend = (worth + extra) * (steeper - mean) / step
    return expected, Merits(value, own, mean - 1.0, all_x, all_eta, bend)


@compiled
def add_up_sizes(
    table: Floats, left: Floats, extra: Floats, gamma: float, met: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return ``expected`` (k, m), and sums over r < K of p_r and of r p_(r-1) (m,)."""
    m, k = table.shape
    expected, mean, lower = np.empty((k, m)), np.zeros(m), np.zeros(m)
    total = 0.0
    for a in range(m):
        total += extra[a]
    for a in range(m):
        for r in range(k):
            p = table[a, r]
            loss = extra[a] + r / max(m - 1, 1) * (total - extra[a])
            expected[r, a] = (1.0 - left[a] * p) / gamma - met[r] * loss
            mean[a] += p
            lower[a] += (r + 1) * p if r < k - 1 else 0.0
    return expected, mean, lower
