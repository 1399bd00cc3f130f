"""What requests hold, checked when they are read; and their place in the API's description."""

import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from evenhand.service.problems import Problem

MOST_ROWS = 1000  # of an ask or a tell
MOST_SETS = 100_000  # of an import
T = TypeVar("T")
Arm = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class Ask(Struct, forbid_unknown_fields=True):
    """How many rows are wanted."""

    n: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 1


class Reward(Struct, forbid_unknown_fields=True):
    """The reward of a row; null if it will never come."""

    id: str
    reward: float | None


class Tell(Struct, forbid_unknown_fields=True):
    """Rewards."""

    tells: Annotated[list[Reward], Meta(min_length=1, max_length=MOST_ROWS)]


class Shown(Struct, forbid_unknown_fields=True):
    """Rows that were really shown."""

    ids: Annotated[list[str], Meta(min_length=1, max_length=MOST_ROWS)]


class Prior(Struct, forbid_unknown_fields=True):
    """Merits believed beforehand, one per arm, and their standard errors, null where unknown."""

    merit: list[float]
    stderr: list[float | None]


Arms = Annotated[list[Arm], Meta(min_length=1, max_length=MOST_ROWS)]


class Group(Struct, forbid_unknown_fields=True):
    """Arms with a floor or cap of their total."""

    arms: Arms
    floor: float = 0.0
    cap: float | None = None


class Terms(Struct, forbid_unknown_fields=True):
    """Floors and caps, a number for all arms or by arm, with ``*`` for all others."""

    unit: Literal["shares", "marginals"]
    floors: float | dict[Arm, float] | None = None
    caps: float | dict[Arm, float] | None = None
    groups: dict[str, Group] | None = None
    power: float = 1.0


class New(Struct, forbid_unknown_fields=True):
    """An experiment to be made."""

    name: Name
    arms: Annotated[list[Arm], Meta(min_length=1, max_length=100_000)]
    k: Annotated[int, Meta(ge=1, le=100_000)]
    learner: Literal["even-hand", "full-sets", "urs"] = "even-hand"
    full: float | None = None
    sizes: list[float] | None = None
    rewards: tuple[float, float] = (0.0, 1.0)
    empty: float = 0.0
    prior: Prior | None = None
    terms: Terms | None = None
    mode: Literal["explicit", "window"] = "explicit"
    window: float | None = None
    default: float | None = None
    activation: Literal["ask", "shown"] = "ask"
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class Learn(Struct, forbid_unknown_fields=True, tag_field="call", tag="learn"):
    """Sets that were shown before, with the chance each had among the sets of its size."""

    sets: Annotated[list[list[Arm]], Meta(min_length=1, max_length=MOST_SETS)]
    rewards: list[float | None]
    chances: list[float]


class Believe(Struct, forbid_unknown_fields=True, tag_field="call", tag="prior"):
    """Merits believed beforehand, by arm, and standard errors, null where unknown."""

    merit: dict[Arm, float]
    stderr: dict[Arm, float | None]


class Add(Struct, forbid_unknown_fields=True, tag_field="call", tag="add"):
    """Arms that join."""

    arms: Arms


class Retire(Struct, forbid_unknown_fields=True, tag_field="call", tag="retire"):
    """Arms that leave for good."""

    arms: Arms


class Pause(Struct, forbid_unknown_fields=True, tag_field="call", tag="pause"):
    """Arms that are not shown for a while."""

    arms: Arms


class Resume(Struct, forbid_unknown_fields=True, tag_field="call", tag="resume"):
    """Arms that are shown again."""

    arms: Arms


class Agree(Struct, forbid_unknown_fields=True, tag_field="call", tag="terms"):
    """Terms to keep to, or null for none."""

    terms: Terms | None


class Fix(Struct, forbid_unknown_fields=True, tag_field="call", tag="shares"):
    """Fixed shares, one per arm, which sum to 1."""

    shares: dict[Arm, float]


class Shadow(Struct, forbid_unknown_fields=True, tag_field="call", tag="shadow"):
    """Show all arms alike and learn, or show by merit again."""

    on: bool


Change = Learn | Believe | Add | Retire | Pause | Resume | Agree | Fix | Shadow


class NewKey(Struct, forbid_unknown_fields=True):
    """A key to be made."""

    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
    scopes: Annotated[list[Literal["ask", "read", "admin"]], Meta(min_length=1, max_length=3)]
    experiment: Name | None = None
    expires: float | None = None


class Erase(Struct, forbid_unknown_fields=True):
    """Arms whose names are to be forgotten."""

    arms: Annotated[list[Arm], Meta(min_length=1, max_length=MOST_ROWS)]


DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in (Ask, Tell, Shown, New, Change, NewKey, Erase)
}
PLACE = re.compile(r"(.*?)(?: - at `\$(.*?)`)?$", re.DOTALL)


def read(kind: Any, body: bytes) -> Any:
    """Read a body as one of the messages, or say what is wrong with it."""
    try:
        try:
            return DECODERS[kind].decode(body)
        except msgspec.ValidationError:  # 1.0 is a whole number to JSON's schemas
            return msgspec.convert(_whole(msgspec.json.decode(body)), kind)
    except msgspec.ValidationError as error:
        found = PLACE.match(str(error))
        rule, place = (found[1], found[2] or "") if found else (str(error), "")
        where = place.lstrip(".") or "the body"
        detail = f"{where}: {rule[0].lower()}{rule[1:]}{_value(body, place)}; see /openapi.json"
        raise Problem(422, detail) from None
    except msgspec.DecodeError as error:
        raise Problem(400, f"the body must be JSON, but {error}") from None
    except (RecursionError, UnicodeDecodeError):
        raise Problem(400, "the body must be JSON in UTF-8, not nested without end") from None


def _whole(value: Any) -> Any:
    """Return content with whole numbers as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    return value


def _value(body: bytes, place: str) -> str:
    """Say what stands at a place such as ``.tells[2].reward``."""
    value = msgspec.json.decode(body)
    try:
        for step in re.findall(r"\.([^.\[]+)|\[(\d+)\]", place):
            value = value[step[0]] if step[0] else value[int(step[1])]
    except (KeyError, IndexError, TypeError):
        return ""
    shown = msgspec.json.encode(value).decode()
    return f", got {shown if len(shown) < 80 else shown[:77] + '...'}"
