"""``evenhand demo``: a simulated shop with a service of its own, to watch shares find their place."""
