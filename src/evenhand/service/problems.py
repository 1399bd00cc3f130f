"""Errors as they are answered: problem+json (RFC 9457)."""

from typing import Any

import msgspec

TITLES = {
    400: "Bad request",
    401: "No valid key",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Wrong content type",
    422: "Not valid",
    429: "Too many",
    500: "Error",
    503: "Try again",
}


class Problem(Exception):  # noqa: N818
    """An answer that says what is wrong: argument, rule, value and way out."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers = [(n.replace("_", "-").encode(), v.encode()) for n, v in headers.items()]

    def body(self) -> bytes:
        """Return it as JSON."""
        said: dict[str, Any] = {
            "type": "about:blank",
            "title": TITLES[self.status],
            "status": self.status,
            "detail": self.detail,
        }
        return msgspec.json.encode(said)
