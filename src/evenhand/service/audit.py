"""Who did what."""

import json
from typing import Any

from evenhand.service.database import Connection
from evenhand.service.keys import Key


def audit(c: Connection, key: Key, action: str, experiment: int | None, detail: Any) -> None:
    """Write who did what."""
    c.execute(
        f"insert into audit(at, key, action, exp, detail) values({c.now},?,?,?,?)",
        (f"{key.id} {key.name}", action, experiment, json.dumps(detail)),
    )
