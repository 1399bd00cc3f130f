"""How checks are run, and what they share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Check = Callable[[Any], None]  # raises AssertionError where what it is given breaks a rule


def run_checks(checks: Sequence[Check], make: Any) -> None:
    """Run all checks; raise one AssertionError that says which failed and what each found."""
    if not __debug__:
        raise RuntimeError("checks are assert statements: run python without -O")
    failed: dict[str, Exception] = {}
    for check in checks:
        try:
            check(make)
        except Exception as error:  # of code that is not ours: whatever it raises is a finding
            failed[check.__name__] = error
    if failed:
        found = [f"{name}: {_told(error)}" for name, error in failed.items()]
        head = f"{len(failed)} of {len(checks)} checks failed"
        raise AssertionError("\n  ".join([head, *found])) from next(iter(failed.values()))


def _told(error: Exception) -> str:
    text = str(error) or "no message"
    return text if isinstance(error, AssertionError) else f"{type(error).__name__}: {text}"


def made(make: Any, method: str) -> Any:
    """Return what a function makes; an object that has the method already is returned as it is."""
    lacks = isinstance(make, type) or not hasattr(make, method)
    return make() if lacks and callable(make) else make


@contextmanager
def raises(*kinds: type[Exception], when: str) -> Iterator[None]:
    """Check that a block raises an error of one of these kinds."""
    names = " or ".join(kind.__name__ for kind in kinds)
    try:
        yield
    except kinds:
        return
    except Exception as error:
        raise AssertionError(
            f"{when} must raise {names}, got {type(error).__name__}: {error}"
        ) from error
    raise AssertionError(f"{when} must raise {names}, got no error")
