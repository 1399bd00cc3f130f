"""What we are measured against where no peer does the work: plain versions of it.

Algorithm 1 refitted every round, as a compiled loop that refits the design to 1e-8 from the
previous weights (on the synthetic game, and on a cascade that tosses a coin an arc) and as a
transcription of the pseudo-code into NumPy and SciPy. All sum the regret they incur, so that they
can be seen to do the same work.
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import logit

from evenhand.designs.calibration import HEADS, LOG_WEIGHTS, MARGINALS, NOTHING, TAILS
from evenhand.designs.head_tree import build_tree, draw_heads
from evenhand.designs.poisson_binomial import centre, sigmoid
from evenhand.games.noise import truncated_gaussian
from evenhand.learners.iw_ksvfair import clipped_means
from evenhand.policy import find_scale
from evenhand.typing import Floats, Ints, compiled


@compiled
def calibrate_plainly(
    target: Floats, k: int, tol: float, old: Floats, law: Floats, _points: None
) -> tuple[float, float, int]:
    """Do what ``evenhand.designs.calibration.calibrate`` does, by the fixed point of the logits.

    Exponentials, logarithms and one coin after the other.
    """
    free, k_free = np.flatnonzero((target > 0.0) & (target < 1.0)), k - np.sum(target == 1.0)
    law[LOG_WEIGHTS], law[MARGINALS] = np.where(target == 1.0, np.inf, -np.inf), target
    wanted = np.log(target[free] / (1.0 - target[free]))
    theta, step, length, n = wanted.copy(), wanted, 1.0, 0
    if old.shape[1] > 0:
        theta = np.where(np.isfinite(old[LOG_WEIGHTS][free]), old[LOG_WEIGHTS][free], wanted)
    while True:
        theta = theta + centre(theta, k_free, 0.01)
        p, q = sigmoid(theta)
        log_heads, given = condition_plainly(p, q, k_free)
        error = np.abs(given - target[free]).max()
        if error <= tol or n == 500:
            law[LOG_WEIGHTS][free], law[MARGINALS][free] = theta, given
            law[HEADS][free], law[TAILS][free] = p, q
            return log_heads - np.log(q).sum(), error, n
        lacking = wanted - np.log(given / (1.0 - given))
        if n > 0:  # Barzilai and Borwein: without it the fixed point may cycle
            change = step - lacking
            length = length * (step * change).sum() / (change * change).sum()
            length = min(1.0, max(0.25, length))
        step = lacking
        theta = theta + length * step
        n += 1


@compiled
def fill_in_loops(scores: Floats, k: int) -> Floats:
    """Do what ``evenhand.policy.fill`` does, without numpy, for more than k positive scores."""
    top, result = 0.0, np.empty(len(scores))
    for score in scores:
        top = max(top, score)
    for a in range(len(scores)):
        result[a] = scores[a] / top
    c, left, among = find_scale(result, 0.0, 1.0, float(k))
    for a in range(len(scores)):
        result[a] = 1.0 if c * result[a] > 1.0 else left * result[a] / among
    return result


@compiled
def condition_plainly(p: Floats, q: Floats, k: int) -> tuple[float, Floats]:
    """Log-probability of k heads, and that of each coin's head given k."""
    m = len(p)
    forward, needed, pi = np.zeros((m + 1, k + 1)), np.zeros(k + 2), np.empty(m)
    forward[0, 0] = needed[k] = 1.0
    for i in range(m):
        forward[i + 1, 0] = q[i] * forward[i, 0]
        for j in range(1, k + 1):
            forward[i + 1, j] = q[i] * forward[i, j] + p[i] * forward[i, j - 1]
    for i in range(m - 1, -1, -1):
        with_head = 0.0
        for j in range(k + 1):
            with_head += forward[i, j] * needed[j + 1]
            needed[j] = q[i] * needed[j] + p[i] * needed[j + 1]
        pi[i] = p[i] * with_head / forward[m, k]
    return math.log(forward[m, k]), pi


@compiled
def fitted_round(
    calibrate: Any,
    totals: Floats,
    counts: Ints,
    law: Floats,
    k: int,
    eta: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Ints, float]:
    """Fit the design of the current policy to 1e-8 and draw one set from the mixture.

    Returns its law, the mixture's marginals, the arms in random order and M / K over C(M, K) times
    the set's probability.
    """
    m = len(totals)
    log_sets = math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(m - k + 1)
    policy = fill_in_loops(clipped_means(totals, counts, 1e-4), k)
    new = np.empty((5, m))
    log_normaliser, _, _ = calibrate(policy, k, 1e-8, law, new, None)
    q = (1.0 - eta) * new[MARGINALS] + eta * k / m
    if rng.random() < eta:
        arms = rng.permutation(m)[:k]
    else:
        free = np.flatnonzero(np.isfinite(new[LOG_WEIGHTS]))
        heads, tails = new[HEADS][free], new[TAILS][free]
        always = np.flatnonzero(new[LOG_WEIGHTS] == np.inf)
        rows, k_free = np.empty((1, k), np.int64), k - len(always)
        rows[0, k_free:] = always
        draw_heads(build_tree(heads, tails), heads, tails, free, rows, k_free, rng)
        arms = rows[0]
    log_prob = -log_normaliser
    for i in range(k):
        log_prob += new[LOG_WEIGHTS, arms[i]] if new[LOG_WEIGHTS, arms[i]] < np.inf else 0.0
    return new, q, arms, m / k / ((1.0 - eta) * math.exp(log_prob + log_sets) + eta)


@compiled
def refit_every_round(
    calibrate: Any,
    mu: Floats,
    target: Floats,
    k: int,
    rounds: int,
    eta: float,
    rng: np.random.Generator,
) -> float:
    """Regret of IW-KSVFair on a noisy-OR game, refitted every round, all in one compiled loop."""
    m = len(mu)
    totals, counts = np.zeros(m), np.zeros(m, np.int64)
    law = NOTHING
    regret = 0.0
    half = 0.5 * math.erf(math.sqrt(0.5))  # mass of the noise between 0 and one deviation
    for _ in range(rounds):
        law, q, arms, row = fitted_round(calibrate, totals, counts, law, k, eta, rng)
        before = 0.0
        for r in range(k):
            miss = 1.0
            for i in range(r + 1):
                miss *= 1.0 - mu[arms[i]] - truncated_gaussian(0.1, half, 0.1, rng.random())
            totals[arms[r]] += q[arms[r]] * row * (1.0 - miss - before)
            counts[arms[r]] += 1
            before = 1.0 - miss
        regret += k * np.abs(q - target).sum()
    return regret


@compiled
def refit_every_round_cascade(
    calibrate: Any,
    starts: Ints,
    targets: Any,
    p: float,
    target: Floats,
    k: int,
    rounds: int,
    eta: float,
    rng: np.random.Generator,
) -> float:
    """The same on a cascade with a coin an arc."""
    m = len(target)
    totals, counts = np.zeros(m), np.zeros(m, np.int64)
    law = NOTHING
    seen, queue = np.full(m, -1, np.int64), np.empty(m, np.int64)
    regret = 0.0
    for t in range(rounds):
        law, q, arms, row = fitted_round(calibrate, totals, counts, law, k, eta, rng)
        before = 0.0
        for r in range(k):
            active = toss(starts, targets, p, arms[: r + 1], t * k + r, seen, queue, rng)
            totals[arms[r]] += q[arms[r]] * row * (active / m - before)
            counts[arms[r]] += 1
            before = active / m
        regret += k * np.abs(q - target).sum()
    return regret


@compiled
def coin_cascades(
    starts: Ints, targets: Any, p: float, seeds: Ints, rng: np.random.Generator
) -> Ints:
    """Active nodes of a cascade from each row of seeds."""
    m = len(starts) - 1
    seen, queue = np.full(m, -1, np.int64), np.empty(m, np.int64)
    active = np.empty(len(seeds), np.int64)
    for i in range(len(seeds)):
        active[i] = toss(starts, targets, p, seeds[i], i, seen, queue, rng)
    return active


@compiled
def toss(
    starts: Ints,
    targets: Any,
    p: float,
    seeds: Ints,
    mark: int,
    seen: Ints,
    queue: Ints,
    rng: np.random.Generator,
) -> int:
    """Run one independent cascade, tossing a coin for every arc to a node not yet active."""
    active = 0
    for seed in seeds:
        seen[seed], queue[active] = mark, seed
        active += 1
    head = 0
    while head < active:
        node = queue[head]
        head += 1
        for arc in range(starts[node], starts[node + 1]):
            v = targets[arc]
            if seen[v] != mark and rng.random() < p:
                seen[v], queue[active] = mark, v
                active += 1
    return active


def transcription(
    mu: Floats, target: Floats, k: int, rounds: int, eta: float, rng: np.random.Generator
) -> float:
    """Regret of Algorithm 1 written down in NumPy and SciPy, line by line."""
    m = len(mu)
    phi, n, regret = np.zeros(m), np.zeros(m), 0.0
    theta = np.zeros(m)
    for _ in range(rounds):
        clipped = np.clip(phi, 1e-4, 1.0)
        policy = k * clipped / clipped.sum()
        if policy.max() > 1:
            top = root_scalar(
                lambda x, c=clipped: np.minimum(1.0, x * c).sum() - k,
                bracket=(0.0, 1e6 / clipped.min()),
            ).root
            policy = np.minimum(1.0, top * clipped)
        while True:  # calibrate: half-way fixed point of the logits
            forward = _symmetric(np.exp(theta), k)
            marginals = _marginals(np.exp(theta), k, forward)
            if np.abs(marginals - policy).max() <= 1e-8:
                break
            theta = theta + 0.8 * (logit(np.clip(policy, 0, 1 - 1e-9)) - logit(marginals))
            theta -= theta.mean()
        q = (1 - eta) * marginals + eta * k / m
        if rng.random() < eta:
            arms = rng.permutation(m)[:k]
        else:
            arms = rng.permutation(_sequential(np.exp(theta), k, forward, rng))
        p_set = np.exp(theta[arms].sum()) / forward[m, k]
        p_mix = (1 - eta) * p_set + eta / math.comb(m, k)
        before = 0.0
        for r in range(k):
            noise = rng.normal(0.0, 0.1, r + 1)
            while np.any(np.abs(noise) > 0.1):
                bad = np.abs(noise) > 0.1
                noise[bad] = rng.normal(0.0, 0.1, bad.sum())
            reward = 1 - np.prod(1 - mu[arms[: r + 1]] - noise)
            arm = arms[r]
            z = q[arm] / (math.comb(m - 1, k - 1) * p_mix) * (reward - before)
            n[arm] += 1
            phi[arm] += (z - phi[arm]) / n[arm]
            before = float(reward)
        regret += k * np.abs(q - target).sum()
    return regret


def _symmetric(weights: Floats, k: int) -> Floats:
    """Elementary symmetric polynomials of every prefix, by dynamic programming."""
    table = np.zeros((len(weights) + 1, k + 1))
    table[:, 0] = 1.0
    for i, w in enumerate(weights):
        table[i + 1, 1:] = table[i, 1:] + w * table[i, :-1]
    return table


def _marginals(weights: Floats, k: int, forward: Floats) -> Floats:
    """Marginals by leaving each weight out."""
    m = len(weights)
    backward = _symmetric(weights[::-1], k)
    without = np.array([forward[a, :k] @ backward[m - 1 - a, k - 1 :: -1][:k] for a in range(m)])
    return weights * without / forward[m, k]


def _sequential(weights: Floats, k: int, forward: Floats, rng: np.random.Generator) -> Floats:
    """One set, deciding arm after arm from the last."""
    chosen, left = [], k
    for a in range(len(weights) - 1, -1, -1):
        if left and rng.random() < weights[a] * forward[a, left - 1] / forward[a + 1, left]:
            chosen.append(a)
            left -= 1
    return np.array(chosen)
