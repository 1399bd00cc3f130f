"""Experiments: what to run, where results are kept, and what is drawn from them."""
