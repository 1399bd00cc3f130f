"""Numbers and times as people read them."""

import math
import time

SPACE = "\u00a0"  # where no line may break
NOTHING = "\u2013"
SPANS = ((86400.0 * 365.25, "year"), (86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))


def percent(x: float | None) -> str:
    """Return a share with as many digits as it has meaning.

    Examples
    --------
    >>> [percent(x).replace(SPACE, " ") for x in (0.2512, 0.0312, 0.000123, 0.0, None)]
    ['25 %', '3.1 %', '0.012 %', '0 %', '–']
    """
    if x is None or math.isnan(x):
        return NOTHING
    return f"{_digits(100.0 * x, 2)}{SPACE}%"


def number(x: float | None) -> str:
    """Return a number with three digits, whole ones in full, thousands a narrow space apart.

    Examples
    --------
    >>> number(12), number(0.012345), number(123.4), number(None)
    ('12', '0.0123', '123', '–')
    >>> len(number(1234567))
    9
    """
    if x is None or math.isnan(x):
        return NOTHING
    if float(x).is_integer() or abs(x) >= 1000.0:
        return f"{x:,.0f}".replace(",", "\u202f")
    return _digits(x, 3)


def _digits(x: float, digits: int) -> str:
    if abs(x) < 1e-7:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(x)))
    if places <= 0:
        return f"{x:.0f}"
    return f"{x:.{places}f}"


def plain(text: str) -> str:
    """Return a number without zeros at its end: a round one, of which all digits are known.

    Examples
    --------
    >>> plain("0.400"), plain("10"), plain("5.0 %"), plain("0.0"), plain("30 %")
    ('0.4', '10', '5 %', '0', '30 %')
    """
    head, space, unit = text.partition(SPACE if SPACE in text else " ")
    if "." in head:
        head = head.rstrip("0").rstrip(".")
    return head + space + unit


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
