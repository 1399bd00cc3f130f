"""Rehearsing a season: a shop window in which a seller is new and everybody has a floor.

Nine sellers share a window of three places, and all that is seen is whether a visitor bought
anything. Ice cream sells in summer, soup in winter. The nuts join a month before the season turns, the jam is
out of stock for a while, and whoever is in the shop is promised a twentieth of all places.

Run it with: python examples/season.py, or with a file name for the picture.
"""
