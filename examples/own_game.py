"""Your own game in ten lines: who deserves a place in a team of three.

Run it with: python examples/own_game.py
"""

import evenhand
from evenhand.games import SetFunction

SKILLS = {
    "Ada": {"proof", "code"},
    "Ben": {"code"},
    "Cem": {"code", "design"},
    "Dia": {"writing"},
    "Eli": {"design", "writing", "talk"},
}
NAMES = list(SKILLS)


def worth(team: frozenset[int]) -> float:
    """Share of the five skills a team has between them."""
    return len(set().union(*(SKILLS[NAMES[member]] for member in team))) / 5


def main() -> None:
    """Print what everyone contributes and how often everyone is due."""
    game = SetFunction.per_set(worth, m=len(NAMES))
    merit = evenhand.kshapley(game, k=3)  # what each adds to teams of at most three, on average
    due = evenhand.fair_policy(merit, k=3)  # how often each is due in a team of three
    for name, value, chance in sorted(zip(NAMES, merit, due, strict=True), key=lambda x: -x[1]):
        print(f"{name}: contributes {value:.3f}, is due in {chance:.0%} of the teams")


if __name__ == "__main__":
    main()
