"""``evenhand demo``: a service, a simulated shop and its visitors, to watch shares settle."""
