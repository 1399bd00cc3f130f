"""Numbers and times as people read them."""

import math
import time

NOTHING = "–"
SPANS = ((86400.0 * 365.25, "year"), (86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))


def percent(x: float | None) -> str:
    """Return a share with as many digits as it has meaning.

    Examples
    --------
    >>> percent(0.2512), percent(0.0312), percent(0.000123), percent(0.0), percent(None)
    ('25 %', '3.1 %', '0.012 %', '0 %', '–')
    """
    if x is None or math.isnan(x):
        return NOTHING
    return f"{_digits(100.0 * x, 2)} %"


def number(x: float | None) -> str:
    """Return a number with three digits, whole ones in full.

    Examples
    --------
    >>> number(1234567), number(0.012345), number(1234.5), number(None)
    ('1 234 567', '0.0123', '1 234', '–')
    """
    if x is None or math.isnan(x):
        return NOTHING
    if float(x).is_integer() or abs(x) >= 1000.0:
        return f"{x:,.0f}".replace(",", "\u202f")
    return _digits(x, 3)


def _digits(x: float, digits: int) -> str:
    if x == 0.0 or abs(x) < 1e-12:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(x)))
    if places <= 0:
        return f"{x:.0f}"
    return f"{x:.{places}f}"


def moment(at: float | None) -> str:
    """Return a time of the clock, in UTC.

    Examples
    --------
    >>> moment(0.0)
    '1970-01-01 00:00:00'
    """
    return NOTHING if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


def machine_moment(at: float) -> str:
    """Return a time as programs read it.

    Examples
    --------
    >>> machine_moment(0.0)
    '1970-01-01T00:00:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def span(seconds: float | None) -> str:
    """Return a stretch of time in words.

    Examples
    --------
    >>> span(0.4), span(75), span(7200), span(86400 * 3.2), span(None)
    ('under a second', '75 seconds', '2 hours', '3.2 days', '–')
    """
    if seconds is None or math.isnan(seconds):
        return NOTHING
    if seconds < 1.0:
        return "under a second"
    for unit, name in SPANS:
        if seconds >= 2.0 * unit:
            x = seconds / unit
            shown = f"{x:.1f}".removesuffix(".0") if x < 10.0 else f"{x:,.0f}"
            return f"{shown} {name}s"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"


def rate(per_second: float | None) -> str:
    """Return how often something happens.

    Examples
    --------
    >>> rate(12.3), rate(0.5), rate(0.001), rate(0.0)
    ('12 per second', '30 per minute', '3.6 per hour', 'none')
    """
    if per_second is None or math.isnan(per_second):
        return NOTHING
    for times, name in ((1.0, "second"), (60.0, "minute"), (3600.0, "hour")):
        if per_second * times >= 1.0:
            x = per_second * times
            return f"{number(x) if x >= 1000 else _digits(x, 2)} per {name}"
    return "none" if per_second <= 0.0 else f"{_digits(per_second * 86400.0, 2)} per day"
