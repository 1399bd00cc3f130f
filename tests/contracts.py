"""Every game and design with small parameters: one row each, and all contract tests run on it."""

import numpy as np

from evenhand import designs, games, learners
from evenhand.designs.conditional_poisson import MAX_LISTED
from tests.host_cuda import host_cascade

MARGINALS = np.array([0.9, 0.75, 0.5, 0.35, 0.3, 0.2])

GAMES = {
    "noisy_or": lambda: games.NoisyOr([0.1, 0.25, 0.4, 0.55, 0.7]),
    "noisy_or_ends": lambda: games.NoisyOr([0.0, 0.02, 0.5, 0.99, 1.0]),
    "cascade": lambda: games.IndependentCascade(
        [[0, 1], [1, 2], [0, 3], [3, 2], [2, 4], [4, 0]], m=5, p=[0.3, 0.9, 0.5, 0.2, 1.0, 0.6]
    ),
    "cascade_cuda": lambda: host_cascade(
        [[0, 1], [1, 2], [0, 3], [3, 2], [2, 4], [4, 0]], m=5, p=[0.3, 0.9, 0.5, 0.2, 1.0, 0.6]
    ),
    "set_function": lambda: games.SetFunction(
        lambda sets: np.sqrt(sets.sum(axis=1) / 5), m=5, noise=games.TruncatedGaussian()
    ),
    "per_set": lambda: games.SetFunction.per_set(
        lambda arms: max(arms) / 5, m=5, noise=games.Bernoulli()
    ),
    "exact_observations": lambda: games.SetFunction(lambda sets: sets.mean(axis=1), m=5),
    "own_range": lambda: games.SetFunction(
        lambda sets: 1.0 + sets @ [-1.0, 0.5, 1.0, 1.5, 2.0],
        m=5,
        noise=games.Bernoulli(),
        rewards=(-3, 7),
        empty=1,
    ),
    "additive": lambda: games.additive([0.0, 0.05, 0.1, 0.2, 0.3], noise=games.Bernoulli()),
    "carrier": lambda: games.Carrier(
        [[0], [1, 2], [2, 3, 4]], [0.2, 0.3, 0.4], m=5, noise=games.Bernoulli()
    ),
    "wide_noisy_or": lambda: games.wide_noisy_or(5, np.random.default_rng(1)),
    "coverage": lambda: games.random_coverage(5, np.random.default_rng(1)),
    "shop": lambda: games.shop(5, np.random.default_rng(1)),
    "rare_coverage": lambda: games.rare_coverage(5, np.random.default_rng(1)),
    "random_additive": lambda: games.random_additive(5, 5, np.random.default_rng(1)),
    "best_member": lambda: games.best_member(5, np.random.default_rng(1)),
    "restricted": lambda: games.Restricted(
        games.NoisyOr([0.1, 0.25, 0.4, 0.55, 0.7, 0.9]), [5, 0, 3, 2, 1]
    ),
    "hidden_pair": lambda: games.hidden_pair(5, np.random.default_rng(1)),
    "hard_v0": lambda: games.hard_pair(5, 3, 0.02)[0],
    "hard_v1": lambda: games.hard_pair(5, 3, 0.02)[1],
}

CERTAIN = [1.0, 0.8, 0.7, 0.5, 0.0, 0.0]
CROWDED = [0.99, 0.98, 0.9, 0.8, 0.73, 0.6]  # draws of five arms are hardly ever distinct


def unlisted(marginals):
    """A conditional Poisson design that draws as if its sets were too many to list."""
    design = designs.ConditionalPoisson.fit(marginals)
    design._n_sets = MAX_LISTED + 1
    return design


DESIGNS = {
    "conditional_poisson": lambda: designs.ConditionalPoisson.fit(MARGINALS),
    "conditional_poisson_certain": lambda: designs.ConditionalPoisson.fit(CERTAIN),
    "conditional_poisson_table": lambda: unlisted(MARGINALS),
    "conditional_poisson_table_certain": lambda: unlisted(CERTAIN),
    "conditional_poisson_tree": lambda: unlisted(CROWDED),
    "enumerated": lambda: designs.EnumeratedMaxEntropy.fit(MARGINALS),
    "enumerated_certain": lambda: designs.EnumeratedMaxEntropy.fit(CERTAIN),
    "uniform": lambda: designs.Uniform(6, 3),
    "mixture": lambda: designs.Mixture(designs.ConditionalPoisson.fit(MARGINALS), 0.3),
    "mixture_none": lambda: designs.Mixture(designs.ConditionalPoisson.fit(MARGINALS), 0.0),
    "mixture_all": lambda: designs.Mixture(designs.ConditionalPoisson.fit(MARGINALS), 1.0),
    "mixture_systematic": lambda: designs.Mixture(designs.Systematic.fit(MARGINALS), 0.3),
    "dependent_rounding": lambda: designs.DependentRounding.fit(MARGINALS),
    "sampford": lambda: designs.Sampford.fit(MARGINALS),
    "sampford_certain": lambda: designs.Sampford.fit(CERTAIN),
    "cube": lambda: designs.Cube.fit(MARGINALS, [[3, 1], [1, 5], [4, 9], [1, 2], [5, 6], [9, 5]]),
    "cube_certain": lambda: designs.Cube.fit(CERTAIN, [3, 1, 4, 1, 5, 9]),
    "systematic": lambda: designs.Systematic.fit(MARGINALS),
    "systematic_certain": lambda: designs.Systematic.fit(CERTAIN),
    "one_of_many": lambda: designs.ConditionalPoisson.fit([0.4, 0.3, 0.2, 0.1]),
    "all_of_them": lambda: designs.ConditionalPoisson.fit([1.0, 1.0, 1.0]),
}

# each makes a learner from (m, k, horizon, seed); a learner that needs no horizon ignores it
LEARNERS = {
    "iw_ksvfair": lambda m, k, t, s: learners.IWKSVFair(m, k, t, eta=0.4, seed=s),
    "iw_ksvfair_to_the_letter": lambda m, k, t, s: learners.IWKSVFair(
        m, k, t, eta=0.4, growth=0, seed=s
    ),
    "iw_ksvfair_exact": lambda m, k, t, s: learners.IWKSVFair(
        m, k, t, eta=0.4, design=designs.EnumeratedMaxEntropy, growth=0.1, seed=s
    ),
    "no_mix": lambda m, k, t, s: learners.IWKSVFair.no_mix(m, k, t, floor=0.05, seed=s),
    "no_iw": lambda m, k, t, s: learners.IWKSVFair.no_iw(m, k, t, eta=0.4, seed=s),
    "muras": lambda m, k, t, s: learners.MURaS(m, k, t, lam=6.0, seed=s),
    "muras_systematic": lambda m, k, t, s: learners.MURaS(
        m, k, t, lam=6.0, rounding=designs.Systematic, seed=s
    ),
    "muras_conditional_poisson": lambda m, k, t, s: learners.MURaS(
        m, k, t, lam=6.0, rounding=designs.ConditionalPoisson, seed=s
    ),
    "muras_arm_by_arm": lambda m, k, t, s: learners.MURaS(m, k, t, lam=6.0, shuffled=False, seed=s),
    "urs": lambda m, k, t, s: learners.URS(m, k, seed=s),
    "etcg": lambda m, k, t, s: learners.ETCG(m, k, t, seed=s),
    "gap_e": lambda m, k, t, s: learners.GapE(m, k, t, seed=s),
    "gap_e_to_the_letter": lambda m, k, t, s: learners.GapE(m, k, t, growth=0, seed=s),
    "even_hand": lambda m, k, t, s: learners.EvenHand(m, k, seed=s),
    "even_hand_sizes": lambda m, k, t, s: learners.EvenHand(
        m, k, sizes=np.arange(1, k + 1), seed=s
    ),
    "full_sets": lambda m, k, t, s: learners.FullSets(m, k, seed=s),
    "fair_cmab": lambda m, k, t, s: learners.FairCMAB(m, k, t, seed=s),
}
