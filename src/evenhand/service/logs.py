"""Logs as one JSON object per line, without secrets."""

import json
import logging
import sys
import time
from typing import Any

OWN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class AsJson(logging.Formatter):
    """A record with all its extra values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "from": record.name,
        }
        line |= {name: value for name, value in vars(record).items() if name not in OWN}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_as_json(level: int = logging.INFO) -> None:
    """Send all logs of this process to its standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(AsJson())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "alembic"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("numba").setLevel(logging.WARNING)
