"""Settings of all tests."""

import gc

from hypothesis import settings

# the first call compiles, so a deadline would measure the compiler; examples are the same each run
settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

gc.disable()  # a quarter of the time in which tests are collected, and nothing is garbage then


def pytest_collection_finish():
    gc.enable()
    gc.freeze()  # nor will the modules be
