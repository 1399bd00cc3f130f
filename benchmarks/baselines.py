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

from evenhand.designs.calibration import calibrate
from evenhand.designs.head_tree import build_tree, draw_heads
from evenhand.games.noise import truncated_gaussian
from evenhand.learners.iw_ksvfair import clipped_means
from evenhand.policy import fill
from evenhand.typing import Floats, Ints, compiled


@compiled
def fitted_round(
    totals: Floats, counts: Ints, weights: Floats, k: int, eta: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Ints, float]:
    """Fit the design of the current policy to 1e-8 and draw one set from the mixture.

    Returns the log weights, the marginals, the arms in random order and M / K over C(M, K) times
    the set's probability.
    """
    m = len(totals)
    log_sets = math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(m - k + 1)
    policy = fill(clipped_means(totals, counts, 1e-4), k)
    nothing = np.full(m, np.nan)
    law, _, _ = calibrate(policy, weights, nothing, k, 1e-8)
    weights, marginals, _, free, always, coin_p, coin_q, log_normaliser = law
    q = (1.0 - eta) * marginals + eta * k / m
    if rng.random() < eta:
        arms = rng.permutation(m)[:k]
    else:
        rows = np.empty((1, k), np.int64)
        k_free = k - len(always)
        rows[0, k_free:] = always
        draw_heads(build_tree(coin_p, coin_q), coin_p, coin_q, free, rows, k_free, rng)
        arms = rows[0]
    log_prob = -log_normaliser
    for i in range(k):
        log_prob += weights[arms[i]]
    return weights, q, arms, m / k / ((1.0 - eta) * math.exp(log_prob + log_sets) + eta)


@compiled
def refit_every_round(
    mu: Floats, target: Floats, k: int, rounds: int, eta: float, rng: np.random.Generator
) -> float:
    """Regret of IW-KSVFair on a noisy-OR game, refitted every round, all in one compiled loop."""
    m = len(mu)
    totals, counts = np.zeros(m), np.zeros(m, np.int64)
    weights = np.full(m, np.nan)
    regret = 0.0
    half = 0.5 * math.erf(math.sqrt(0.5))  # mass of the noise between 0 and one deviation
    for _ in range(rounds):
        weights, q, arms, row = fitted_round(totals, counts, weights, k, eta, rng)
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
    weights = np.full(m, np.nan)
    seen, queue = np.full(m, -1, np.int64), np.empty(m, np.int64)
    regret = 0.0
    for t in range(rounds):
        weights, q, arms, row = fitted_round(totals, counts, weights, k, eta, rng)
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
