"""How long it still takes, if errors shrink with the root of the number of rewards."""


def rewards_until(distance: float, told: float, goal: float) -> float:
    """How many more rewards it takes until a distance is within a goal, falling as 1/√n.

    Examples
    --------
    >>> rewards_until(0.10, told=1000, goal=0.05), rewards_until(0.04, told=1000, goal=0.05)
    (3000.0, 0.0)
    """
    return max(0.0, round(told * ((distance / goal) ** 2 - 1.0), 6))
