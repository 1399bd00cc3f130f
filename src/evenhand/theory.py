r"""The paper's parameters and bounds, and EvenHand's bound, as functions.

The upper bounds hold with explicit constants and describe the growth in T; as numbers they are
vacuous at the scale of the experiments. A query loses at most 2 K, so any learner's regret is
at most 2 K T. At the paper's :math:`\epsilon = 10^{-4}` both of its bounds exceed that at every
horizon up to 1e8 (for MURaS :math:`\epsilon` enters through the total merit, at least
:math:`M \epsilon`).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from evenhand.checks import check_budget, check_integer, check_number, check_positive, check_vector
from evenhand.typing import Floats

# Where few places are in smaller sets, exploring is at its usual pace for so many queries per arm,
# and sinks later: on the Facebook graph, 95 % full, 0.982 instead of 0.965 of the fair policy's
# reward for 16 % more regret at a million queries. Less from the start costs more regret.
EARLY = 50.0
FEW = 1.0 / 3.0  # of all places: by default more of them are in smaller sets, whatever K


def eta(m: int, k: int, horizon: int, gamma: float) -> float:
    r"""Uniform mixing :math:`\eta = M^{2/3} / (\Gamma K^{1/3} T^{1/3})` of IW-KSVFair.

    Rounding alone never lifts it above 1: at :math:`\Gamma` = :func:`smallest_gamma` it is 1.

    Examples
    --------
    >>> round(eta(20, 5, 10**6, 0.8), 4)
    0.0539
    """
    share = smallest_gamma(m, k, horizon) / check_positive("gamma", gamma)
    return 1.0 if 1.0 < share < 1.0 + 1e-12 else share


def smallest_gamma(m: int, k: int, horizon: int) -> float:
    r"""Smallest :math:`\Gamma` for which the mixing :math:`\eta` is at most 1.

    Examples
    --------
    >>> round(smallest_gamma(20, 5, 10**6), 4)
    0.0431
    """
    m, k = check_budget(m, k)
    horizon = check_integer("horizon", horizon, 1)
    return math.cbrt(m * m / (k * horizon))


def max_weight(m: int, k: int, eta: float) -> float:
    r"""Bound :math:`W = M / (K \eta)` on the importance weights.

    Examples
    --------
    >>> max_weight(20, 5, eta=0.05)
    80.0
    """
    m, k = check_budget(m, k)
    eta = check_number("eta", eta, 0.0, 1.0)
    return math.inf if eta == 0.0 else m / (k * eta)


def samples(horizon: int, lam: float) -> int:
    r"""Samples per arm :math:`R = \lfloor T^{2/3} / \Lambda \rfloor` of MURaS.

    Examples
    --------
    >>> samples(10**6, 8)
    1250
    """
    horizon = check_integer("horizon", horizon, 1)
    ratio = math.cbrt(horizon) ** 2 / check_positive("lam", lam)
    return math.floor(ratio * (1 + 1e-12))  # 10^6 to the power 2/3 is 10^4, not 9999.99...


def smallest_lambda(m: int, horizon: int) -> float:
    r"""Smallest :math:`\Lambda` for which the 2 M R exploration queries fit into T.

    Examples
    --------
    >>> round(smallest_lambda(20, 10**6), 6)
    0.4
    """
    m, horizon = check_integer("m", m, 1), check_integer("horizon", horizon, 1)
    return 2 * m / math.cbrt(horizon)


def muras_bound(
    m: int, k: int, horizon: int, n_samples: int, total_merit: float, delta: float
) -> float:
    r"""Finite-horizon bound on the regret of MURaS, with probability 1 - delta.

    .. math:: 4 K M R + T \frac{4 K M}{\gamma} \sqrt{\frac2R \log\frac{2M}{\delta}}

    Parameters
    ----------
    m, k, horizon
        Arms, budget and queries.
    n_samples
        R, marginal gains sampled per arm.
    total_merit
        :math:`\gamma`, a lower bound on the sum of all merits.
    delta
        Failure probability, in (0, 1].

    Examples
    --------
    >>> bound = muras_bound(20, 5, 10**8, n_samples=26_932, total_merit=4.0, delta=0.01)
    >>> f"{bound:.2g}, of at most {2 * 5 * 10**8:.2g}"
    '2.6e+08, of at most 1e+09'
    """
    m, k = check_budget(m, k)
    check_integer("n_samples", n_samples, 1)
    horizon = check_integer("horizon", horizon, 1)
    check_positive("total_merit", total_merit)
    error = math.sqrt(2 / n_samples * math.log(2 * m / _failure(delta)))
    return 4 * k * m * n_samples + horizon * 4 * k * m / total_merit * error


def iw_ksvfair_bound(
    m: int,
    k: int,
    horizon: int,
    eta: float,
    floor: float,
    *,
    cap: float | None = None,
    delta: float | None = None,
) -> float:
    r"""Finite-horizon bound on the expected regret of IW-KSVFair.

    .. math:: (1-\delta) \Bigl[ \frac{4CK}{\epsilon} \sqrt{2WL} (M + 2\sqrt{MT})
        + \frac{8CKWL}{3\epsilon} M (2 + \log n) + 2\eta K^2 n \Bigr] + 2KT\delta

    with :math:`n = \lfloor T/K \rfloor` rounds, :math:`L = \log(2M(n+1)/\delta)` and
    :math:`W = M/(K\eta)`; plus :math:`2K^2` if T is not a multiple of K. Without ``delta`` it is
    the paper's simplification at :math:`\delta = 1/T`, in which :math:`1-\delta` is dropped.

    Parameters
    ----------
    m, k, horizon
        Arms, budget and queries.
    eta
        Uniform mixing, in (0, 1].
    floor
        :math:`\epsilon`, a lower bound on every merit.
    cap
        C, the largest :math:`\max(1, \|\tilde\pi_t\|_\infty)`; K if it is not known.
    delta
        Failure probability, in (0, 1].

    Examples
    --------
    >>> short, longer = (
    ...     iw_ksvfair_bound(20, 5, t, eta(20, 5, t, 0.8), floor=0.1, cap=1)
    ...     for t in (10**15, 10**18)
    ... )
    >>> round(math.log10(longer / short) / 3, 2)  # grows like T^(2/3), up to logarithms
    0.68
    """
    weight = max_weight(m, k, check_positive("eta", eta))
    horizon = check_integer("horizon", horizon, k)
    check_positive("floor", floor)
    c = k if cap is None else check_number("cap", cap, 1.0, k)
    n = horizon // k
    failure = 1 / horizon if delta is None else _failure(delta)
    log = math.log(2 * m * (n + 1) / failure)
    bound = (
        4 * c * k / floor * math.sqrt(2 * weight * log) * (m + 2 * math.sqrt(m * n * k))
        + 8 * c * k * weight * log / (3 * floor) * m * (2 + math.log(n))
        + 2 * eta * k * k * n
    )
    tail = 2 * k * k if horizon % k else 0
    return (1.0 if delta is None else 1 - failure) * bound + 2 * k * (n * k) * failure + tail


def even_hand_bound(
    m: int,
    horizon: int,
    sizes: ArrayLike,
    value: float,
    *,
    alpha: float = 0.05,
    band: float = 0.25,
) -> float:
    r"""Finite-horizon bound on the expected regret of EvenHand, whatever merits it blends.

    .. math:: 17 (1+c) \frac K\nu \sqrt{\frac{\Sigma \Lambda_T}\beta} M^{1/3} T^{2/3}
        + 7 K (1 - \tfrac KM) M^{1/3} T^{2/3}
        + 71 (1+c) \frac{K^2 R}{\beta \nu M^{1/3}} \Lambda_T T^{1/3}
        + 2.2 K M + 3 K \bigl( \tfrac M{\bar r} (1 + \log M) + 1 \bigr) + 3 K \alpha \log T

    with :math:`\bar r` the mean size, :math:`\beta` = :func:`exploring`, :math:`\Sigma` =
    :func:`size_price`, R = :func:`largest_term` and
    :math:`\Lambda_T = \log(2 M I (I+1) (1+T) / \alpha)`, where I is
    :math:`\frac12 \log_2 T` rounded up, at least 1. It grows like :math:`T^{2/3}` up to
    logarithms, on every game with merits of at least 0 and a proportional policy of at most 1, if
    rewards are told before the next policy is made. The documentation's page on the theorem has
    the proof.

    Parameters
    ----------
    m, horizon
        Arms and queries.
    sizes
        (k,) shares of queries of 1, ..., k arms, with k < m, all above 0; scaled to sum to 1.
    value
        :math:`\nu`, a lower bound on the mean value of uniformly drawn sets of k.
    alpha
        Chance that the band ever misses, in (0, 1].
    band
        c, the share of its width that merits may be from its centre.

    Examples
    --------
    >>> sizes = [0.6, 0.1, 0.1, 0.1, 0.1]
    >>> short, longer = (even_hand_bound(20, t, sizes, value=0.9) for t in (10**15, 10**18))
    >>> round(math.log10(longer / short) / 3, 2)  # grows like T^(2/3), up to logarithms
    0.68
    """
    shares = _shares(m, sizes)
    m, k = check_budget(m, len(shares))
    if k == m:
        raise ValueError(f"sizes must hold fewer than m={m} shares, got {k}: there is no choice")
    horizon = check_integer("horizon", horizon, 1)
    check_positive("value", value)
    wide = 1.0 + check_number("band", band, 0.0, math.inf)
    scale = max(1, math.ceil(0.5 * math.log2(horizon)))
    log = math.log(2 * m * scale * (scale + 1) * (1 + horizon) / _failure(alpha, "alpha"))
    root = math.cbrt(horizon)
    part = exploring(shares)
    growing = 17 * wide * k / value * math.sqrt(size_price(m, shares) * log / part)
    growing += 7 * k * (1 - k / m)
    second = 71 * wide * k * k * largest_term(m, shares) / (part * value * math.cbrt(m)) * log
    unseen = m / float(np.arange(1, k + 1) @ shares) * (1.0 + math.log(m)) + 1.0
    start = 2.2 * k * m + 3 * k * unseen + 3 * k * alpha * math.log(horizon)
    return growing * math.cbrt(m) * root**2 + second * root + start


def exploring(sizes: ArrayLike, per_arm: float | None = None) -> float:
    r"""Part :math:`\beta` of the usual places that EvenHand gives to uniform sets.

    1, but where less than a third of all places are in sets that are not full, it sinks with the
    queries so far per arm, n:

    .. math:: \beta = \min \Bigl\{ 1, \max \Bigl\{ \frac1K,
        3 \Bigl( 1 - \frac{K s_K}{\bar r} \Bigr),
        \Bigl( \frac{50}{1+n} \Bigr)^{2/3} \Bigr\} \Bigr\}.

    Most uniform sets are then full ones. Shares are fair either way, but such a set brings less
    than one drawn by merit, and teaches most early on. In the end full sets have about the uniform
    places that each of K sizes would have, not those of the others as well. Without ``per_arm``,
    the least that it comes to.

    Examples
    --------
    >>> exploring([0.6, 0.1, 0.1, 0.1, 0.1])
    1.0
    >>> [round(exploring([0.02, 0.03, 0.95], n), 3) for n in (10, 100, 1000, 10_000)]
    [1.0, 0.626, 0.333, 0.333]
    """
    shares = _positive(sizes)
    places = shares * np.arange(1.0, len(shares) + 1.0)
    part = max(1.0 / len(places), float(places[:-1].sum() / places.sum()) / FEW)
    if per_arm is not None:
        n = check_number("per_arm", per_arm, 0.0, math.inf)
        part = max(part, (EARLY / (1.0 + n)) ** (2.0 / 3.0))
    return min(1.0, part)


def size_price(m: int, sizes: ArrayLike) -> float:
    r"""What a mix of set sizes costs.

    .. math:: \Sigma = \sum_{r<K} \frac M{(M-r) r \tau_r} + \frac1{K \tau_K}, \qquad
        \tau_r = \min\Bigl\{ s_r, \frac1{r K} \sum_i i s_i \Bigr\}

    Times :math:`M / K^2` it bounds the variance of EvenHand's band, per arm and unit of weight.

    Examples
    --------
    >>> round(size_price(20, [0.6, 0.1, 0.1, 0.1, 0.1]), 2), round(size_price(20, np.ones(5)), 2)
    (17.73, 13.75)
    """
    return _price(m, _uniform_parts(m, sizes))


def largest_term(m: int, sizes: ArrayLike) -> float:
    r"""Bound R on the terms that EvenHand's band is the mean of.

    .. math:: R = \frac MK \max\Bigl\{ \max_{r<K} \frac1{\tau_r \min(r, M-r)},\;
        \frac1{K \tau_K} \Bigr\}

    with :math:`\tau` as in :func:`size_price`.

    Examples
    --------
    >>> round(largest_term(20, [0.6, 0.1, 0.1, 0.1, 0.1]), 6)
    20.0
    """
    return _largest(m, _uniform_parts(m, sizes))


def band_weight(m: int, sizes: ArrayLike, uniform: ArrayLike) -> float:
    r"""What a query counts in EvenHand's band, such shares (k,) of each size being uniform.

    .. math:: \omega = \min\Bigl\{ \frac{\Sigma}{\Sigma'}, \frac{R}{R'} \Bigr\}

    with :math:`\Sigma` = :func:`size_price` and R = :func:`largest_term`; :math:`\Sigma'` and R'
    are the same with :math:`s_r \delta_r` in place of :math:`\tau_r`. So a query counts inversely
    to a bound on its variance, as long as R bounds its terms. With shares as EvenHand makes them it
    is at least the share :math:`\delta` of places in uniform sets, and more where small sets are
    few, and all of them uniform.

    Examples
    --------
    >>> uniform = np.array([0.04 / 0.6, 0.2, 0.04 / 0.3, 0.1, 0.08])  # a tenth of all places
    >>> round(band_weight(20, [0.6, 0.1, 0.1, 0.1, 0.1], uniform), 3)
    0.127
    >>> round(band_weight(20, [0.02, 0.01, 0.01, 0.01, 0.95], [1, 1, 1, 1, 0.1]), 3)
    0.994
    """
    shares, least = _shares(m, sizes), _uniform_parts(m, sizes)
    known = check_vector("uniform", uniform, 0.0, 1.0)
    if len(known) != len(shares):
        raise ValueError(
            f"uniform must hold a share of the sets of each of {len(shares)} sizes, as sizes do, "
            f"got {len(known)}"
        )
    known *= shares
    if not known.all():
        return 0.0
    return min(_price(m, least) / _price(m, known), _largest(m, least) / _largest(m, known))


def _price(m: int, known: Floats) -> float:
    """Sum of the sizes' variances, from their shares of uniform sets in all queries (k,)."""
    k = len(known)
    r = np.arange(1, k)
    return float((m / ((m - r) * r * known[:-1])).sum() + 1.0 / (k * known[-1]))


def _largest(m: int, known: Floats) -> float:
    """Bound on the terms, from the same."""
    k = len(known)
    r = np.arange(1, k)
    small = (1.0 / (known[:-1] * np.minimum(r, m - r))).max(initial=0.0)
    return float(m / k * max(small, 1.0 / (k * known[-1])))


def _uniform_parts(m: int, sizes: ArrayLike) -> Floats:
    r"""Least :math:`s_r \delta_r / \delta` of each size (k,), :math:`\delta_r` of it uniform."""
    shares = _shares(m, sizes)
    r = np.arange(1, len(shares) + 1)
    return np.minimum(shares, (r @ shares) / (len(shares) * r))


def hard_gap(m: int, k: int, horizon: int) -> float:
    r"""Gap :math:`\Delta = \alpha T^{-1/3}` at which the lower bound is largest.

    :math:`\alpha` maximises the constant of :func:`lower_bound` subject to
    :math:`\Delta \le \zeta / 2`; pass the gap to :func:`evenhand.games.hard_pair`.

    Examples
    --------
    >>> round(hard_gap(4, 2, 10**6), 6), round(hard_gap(4, 2, 10**9), 6)
    (0.005724, 0.000572)
    """
    return min(_alpha(m, k, horizon) / math.cbrt(horizon), largest_gap(m, k))


def largest_gap(m: int, k: int) -> float:
    r"""Largest gap of the hard pair, :math:`\zeta / 2 = (K-1) / (8 K (M-1))`.

    Examples
    --------
    >>> round(largest_gap(4, 2), 6)
    0.020833
    """
    m, k = check_budget(m, k)
    if not 1 < k < m:
        raise ValueError(f"k must satisfy 1 < k < m for the lower bound, got k={k} with m={m}")
    return (k - 1) / (8 * k * (m - 1))


def lower_bound(m: int, k: int, horizon: int) -> float:
    r"""Regret that no learner can beat on both instances of the hard pair.

    .. math:: \min\Bigl\{ \frac{3(K-1)}{32(M-1)\alpha^2},\; \frac{\alpha}{2\binom{M-1}{K-1}}
              \Bigr\} T^{2/3}

    Examples
    --------
    >>> round(lower_bound(4, 2, 10**6), 1)
    953.9
    """
    alpha = _alpha(m, k, horizon)
    c1 = 3 * (k - 1) / (32 * (m - 1) * alpha**2)
    return min(c1, alpha / (2 * math.comb(m - 1, k - 1))) * math.cbrt(horizon) ** 2


def _alpha(m: int, k: int, horizon: int) -> float:
    """Where the falling and the rising term meet, or as far as Delta <= zeta / 2 allows."""
    limit = largest_gap(m, k) * math.cbrt(check_integer("horizon", horizon, 1))
    meeting = math.cbrt(3 * (k - 1) * math.comb(m - 1, k - 1) / (16 * (m - 1)))
    return min(meeting, limit)


def _failure(chance: float, name: str = "delta") -> float:
    """Return a failure probability in (0, 1]."""
    return min(check_positive(name, chance), check_number(name, chance, 0.0, 1.0))


def _shares(m: int, sizes: ArrayLike) -> Floats:
    """Return shares of sizes up to m, all above 0, scaled to sum to 1."""
    shares = _positive(sizes)
    check_budget(m, len(shares))
    return shares


def _positive(sizes: ArrayLike) -> Floats:
    """Return shares, all above 0, scaled to sum to 1."""
    shares = check_vector("sizes", sizes, 0.0, math.inf)
    if not shares.all():
        raise ValueError(f"sizes must be above 0, got {shares.tolist()}")
    return shares / shares.sum()
