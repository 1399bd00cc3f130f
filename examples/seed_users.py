"""Seed users in a social network: whom to inform, and how often.

The graph is who meets whom in Les Miserables (it comes with networkx). Five people are told a
piece of news; it spreads along acquaintances; all that is seen is how many heard of it in the
end. People are then chosen in proportion to what they add to the spread.

Run it with: python examples/seed_users.py
"""

import networkx as nx
import numpy as np

import evenhand
from evenhand.games import IndependentCascade
from evenhand.learners import EvenHand
from evenhand.merit import reverse_reachable

SEEDS, QUERIES = 5, 300_000


def play() -> tuple[nx.Graph, evenhand.Run]:
    """Let a learner choose seed users for a while."""
    graph = nx.les_miserables_graph()
    for _, _, edge in graph.edges(data=True):  # the more they meet, the likelier they tell
        edge["chance"] = 1 - 0.97 ** edge["weight"]
    game = IndependentCascade(graph, p="chance")  # an edge goes both ways; arms are graph.nodes
    truth = reverse_reachable(game, SEEDS, n_sets=400_000, rng=np.random.default_rng(1))
    target = evenhand.fair_policy(truth.merit, SEEDS)  # to judge by, the learner cannot see it
    learner = EvenHand(m=game.m, k=SEEDS, seed=1)
    return graph, evenhand.simulate(learner, game, QUERIES, target=target, seed=2)


def main() -> None:
    """Print the people most due, how often they were chosen, and how many they know."""
    graph, run = play()
    names, got = list(graph.nodes), run.selections / run.selections.sum()
    due = run.target / run.target.sum()
    contacts = np.array([graph.degree[name] for name in names])
    print("person              due   given  contacts")
    for person in np.argsort(-due)[:12]:
        shares = f"{due[person]:6.1%}  {got[person]:6.1%}"
        print(f"{names[person]:16s} {shares}  {contacts[person]:8d}")
    few = contacts <= 2
    print(
        f"the {few.sum()} people of one or two contacts: due {due[few].sum():.1%}, "
        f"given {got[few].sum():.1%}; in proportion to contacts it would be "
        f"{contacts[few].sum() / contacts.sum():.1%}"
    )
    print(f"alignment of exposure and merit: {run.alignment:.3f} (1 is perfect)")


if __name__ == "__main__":
    main()
