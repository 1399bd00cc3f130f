"""``python -m evenhand`` is the command ``evenhand``."""

import sys

try:
    from evenhand.cli import entry
except ImportError as error:
    sys.exit(
        f"error: the command line needs {error.name}; install evenhand[serve] to serve, "
        "evenhand[lab] for experiments and reports, or evenhand[lab,serve]"
    )

if __name__ == "__main__":
    entry()
