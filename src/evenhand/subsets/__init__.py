"""Sets of one size: all of them, listed or counted, and random ones that precede an arm."""
