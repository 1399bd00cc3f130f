"""A service that ends with the process that started it."""

import os
import signal
import sys

from evenhand.service import parent
from evenhand.service.serve import Settings, serve


def main() -> None:
    """Serve a database at a port."""
    parent.when_alone(lambda: os.kill(os.getpid(), signal.SIGTERM))
    serve(Settings(database=sys.argv[1], port=int(sys.argv[2])))


if __name__ == "__main__":
    main()
