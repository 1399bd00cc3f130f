"""Children that end with the process that started them, however that one ended."""

import os
import threading
import time
import uuid
from collections.abc import Callable


def new_name() -> str:
    """Return a name for a process that no other has, on any host."""
    return f"{os.uname().nodename}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def when_alone(act: Callable[[], object]) -> None:
    """Call a function when the parent, which holds the other end of standard input, is gone."""

    def watch() -> None:
        while os.read(0, 4096):  # not sys.stdin, whose lock would stop the interpreter from ending
            pass
        act()

    threading.Thread(target=watch, daemon=True).start()


def beat(descriptor: int, every: float = 1.0) -> None:
    """Show the parent that this process is not stopped."""

    def go_on() -> None:
        while True:
            try:
                os.write(descriptor, b".")
            except OSError:
                return
            time.sleep(every)

    threading.Thread(target=go_on, daemon=True).start()
