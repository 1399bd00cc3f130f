"""Locks on files, which the kernel frees when a process dies."""

import os
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:
    raise ImportError(
        "the service locks files the POSIX way, so it runs on Linux; "
        "on Windows run it in WSL or in a container"
    ) from None


def opened(path: Path) -> IO[str]:
    """Open a file to lock, for its owner alone: whoever may read it can lock it too."""
    return open(path, "a+", opener=lambda name, flags: os.open(name, flags, 0o600))


def lock(file: IO[Any]) -> None:
    """Wait for a lock on a file."""
    fcntl.flock(file, fcntl.LOCK_EX)


def try_lock(file: IO[Any]) -> bool:
    """Lock a file if nobody else has; return whether that was so."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(file: IO[Any]) -> None:
    """Let others lock a file."""
    fcntl.flock(file, fcntl.LOCK_UN)
