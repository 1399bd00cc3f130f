"""Which release and kind of machine draws rows: where both are the same, so are all bits."""

import platform
from functools import cache
from importlib.metadata import version

from evenhand import __version__


@cache
def release() -> str:
    """Name this release and all that may change a last digit.

    Examples
    --------
    >>> release().split()[0] == f"evenhand={__version__}"
    True
    """
    parts = [f"evenhand={__version__}", *(f"{n}={version(n)}" for n in ("numpy", "scipy", "numba"))]
    return " ".join([*parts, f"machine={platform.machine()}"])
