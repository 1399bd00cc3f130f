"""One table of what stands for what in pictures and on pages: colours, markers and dashes.

A learner looks the same wherever it is drawn. Its colours, one for light grounds and one for dark
ones, are told apart by the colour-blind; markers and dashes do it in grey.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

GROUNDS = ("#FFFFFF", "#1C2028")  # what figures stand on, light and dark
INKS = ("#1D2330", "#E8E6E1")
DUE = ("#B3480E", "#F2A268")
GIVEN = ("#2F6DB5", "#5F9DE0")
QUIET = ("#DDDDDD", "#3A404C")  # bars behind what matters
# Okabe and Ito's colours, for arms and whatever else has no place of its own
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
SIGNS = dict(zip("osD^v<>PXp*h", "●■◆▲▼◀▶✚✖⬟★⬢", strict=True))  # markers in a text


class Look(NamedTuple):
    """How a line is drawn: its colour on light and on dark grounds, its marker and its dashes."""

    colour: str
    dark: str
    marker: str
    dashes: Any = "-"
    open: bool = False  # whether its markers are

    @property
    def sign(self) -> str:
        """The marker as a character."""
        return SIGNS[self.marker]

    def line(self, **more: Any) -> dict[str, Any]:
        """Options of matplotlib's ``plot``."""
        inside = {"markerfacecolor": "none"} if self.open else {}
        look = {"color": self.colour, "marker": self.marker, "linestyle": self.dashes}
        return look | inside | more

    def shade(self, towards_ink: float, dashes: Any) -> "Look":
        """Return a variant: the same hue and marker, nearer to the ink, or to the ground if < 0."""
        ends = INKS if towards_ink > 0.0 else GROUNDS
        own = (self.colour, self.dark)
        light, dark = (mix(a, b, abs(towards_ink)) for a, b in zip(own, ends, strict=True))
        return Look(light, dark, self.marker, dashes, open=not self.open)


def mix(one: str, other: str, part: float) -> str:
    """Mix some part of another colour into one."""
    pairs = ((int(one[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + part * (b - a)):02X}" for a, b in pairs)


LEARNERS = {
    "even-hand": Look("#0072B2", "#60A9FC", "o"),
    "iw-ksvfair": Look("#D55E00", "#D0610F", "s"),
    "muras": Look("#296449", "#50A770", "^"),
    "urs": Look("#8A8A8A", "#8F949E", "D", ":"),
    "etcg": Look("#1D1D1D", "#F4F2EC", "<", "--"),
    "gap-e": Look("#2F9CBC", "#92DBFE", ">", "--"),
    "fair-cmab": Look("#80176B", "#E42AC0", "X", "--"),
    "no-iw": Look("#653E04", "#F9D52A", "P", "-."),
    "no-mix": Look("#493CF5", "#A855FE", "v", "-."),
    "full-sets": Look("#86975F", "#C7F08E", "p"),
}
VARIANTS = {  # of learners in the table, and oracles, which are none
    "iw-ksvfair-exact": LEARNERS["iw-ksvfair"]._replace(dashes="--", open=True),
    "even-hand-unwatched": LEARNERS["even-hand"].shade(0.5, "--"),
    "restarted": Look("#5C5C5C", "#B4B8C0", "*", ":"),
    "knowing": Look("#5C5C5C", "#B4B8C0", "h", "-."),
}
LIGHTEST, DARKEST = -0.5, 0.45  # of the shades of one learner


def look(name: str) -> Look | None:
    """How a learner is drawn, by the name that its class and experiment files have for it."""
    return (LEARNERS | VARIANTS).get(name)


def looks(names: Sequence[str]) -> list[Look]:
    """How the lines of one picture are drawn, by their learners' names, in order.

    Several lines of one learner are shades of its colour: two or three start at the colour itself.
    A learner that is not in the table takes a colour and a marker that nobody else in the picture
    has, as far as there are any.
    """
    often, met = Counter(names), Counter[str]()
    taken = {one.marker for name in names if (one := look(name)) is not None}
    free = [pair for pair in zip(SERIES, reversed(SIGNS), strict=False) if pair[1] not in taken]
    strangers = [name for name in often if look(name) is None]
    found = []
    for name in names:
        own = look(name)
        if own is None:
            colour, marker = free[strangers.index(name) % len(free)]
            own = Look(colour, mix(colour, INKS[1], 0.3), marker)
        found.append(_variant(own, met[name], often[name]))
        met[name] += 1
    return found


def _variant(own: Look, i: int, n: int) -> Look:
    """Return the i-th of n looks of one learner."""
    start = 0.0 if n <= 3 else LIGHTEST
    level = start + (DARKEST - start) * i / max(1, n - 1)
    if n == 1 or level == 0.0:
        return own
    made = own.shade(level, DASHES[i % len(DASHES)])
    return made._replace(open=i % 2 == 1)


def twins() -> dict[str, str]:
    """Return the dark twin of every colour for light grounds that figures have, in lower case."""
    own = (LEARNERS | VARIANTS).values()
    shades = (_variant(one, i, n) for one in own for n in range(2, 7) for i in range(n))
    pairs = [GROUNDS, INKS, ("#000000", INKS[1]), QUIET, DUE, GIVEN]
    pairs += [(one.colour, one.dark) for one in (*own, *shades)]
    pairs += [(one, mix(one, INKS[1], 0.3)) for one in SERIES if one != "#000000"]
    return {light.lower(): dark.lower() for light, dark in reversed(pairs)}


def css(dark: bool) -> str:
    """Return declarations of the colours as variables of a style sheet, for one kind of ground."""
    colours = {f"learner-{name}": one[:2] for name, one in (LEARNERS | VARIANTS).items()}
    colours |= {"due": DUE, "given": GIVEN}
    return " ".join(f"--{name}: {pair[dark].lower()};" for name, pair in colours.items())
