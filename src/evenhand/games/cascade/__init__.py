"""Cascades in networks, on a processor and on an NVIDIA card."""
