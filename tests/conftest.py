"""Settings of all tests."""

from hypothesis import settings

# the first call compiles, so a deadline would measure the compiler; examples are the same each run
settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")
