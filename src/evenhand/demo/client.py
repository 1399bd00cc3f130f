"""The client, which is a package of its own: installed, or beside this one in a checkout."""

import sys
from pathlib import Path

try:
    from evenhand_client import Client, Row, Unreachable
except ImportError:
    beside = Path(__file__).resolve().parents[3] / "client" / "src"
    if not beside.is_dir():
        raise ImportError(
            "evenhand demo needs the client, evenhand-client; install it in a clone of the "
            "repository with: pip install ./client"
        ) from None
    sys.path.append(str(beside))
    from evenhand_client import Client, Row, Unreachable

__all__ = ["Client", "Row", "Unreachable"]
