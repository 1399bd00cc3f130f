"""Named streams, and random numbers inside compiled loops."""
