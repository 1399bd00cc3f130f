"""Keys: who may do what. Only their hashes are stored."""

import hashlib
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from evenhand.service.database import Connection
from evenhand.service.problems import Problem

SCOPES = ("ask", "read", "admin")  # ask: show and tell; admin: all
PREFIX = "eh_"


def hashed(token: bytes) -> bytes:
    """Return what is stored of a key. It has 256 random bits, so a plain hash keeps it."""
    return hashlib.sha256(token).digest()


def issue(
    c: Connection,
    name: str,
    scopes: list[str],
    experiment: int | None = None,
    expires: float | None = None,
) -> tuple[int, str]:
    """Write a new key, inside a transaction; return its number and the key, shown only now."""
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f"scopes must be among {', '.join(SCOPES)}, got {scope!r}")
    if not scopes:
        raise ValueError(f"scopes must hold some of {', '.join(SCOPES)}, got none")
    token = PREFIX + secrets.token_urlsafe(32)
    row = c.execute(
        "insert into keys(name, hash, scopes, exp, created, expires) "
        f"values(?,?,?,?,{c.now},?) returning id",
        (name, hashed(token.encode()), " ".join(scopes), experiment, expires),
    )
    return row[0][0], token


@dataclass(slots=True)
class Key:
    """A key that was found valid, and what is left of its rate."""

    id: int
    name: str
    scopes: frozenset[str]
    experiment: int | None
    expires: float | None
    rate: float
    left: float = 0.0
    since: float = field(default_factory=time.monotonic)

    @property
    def valid(self) -> bool:
        """Whether it has not expired."""
        return self.expires is None or time.time() <= self.expires

    def check(self, scope: str, experiment: int | None) -> None:
        """Refuse what the key does not allow."""
        if not self.valid:
            raise no_key()
        if scope not in self.scopes and "admin" not in self.scopes:
            raise Problem(403, f"the key must have the scope {scope}; ask an administrator for one")
        if self.experiment is not None and self.experiment != experiment:
            raise Problem(403, "the key is for another experiment; use one for this, or for all")

    def spend(self, n: int) -> None:
        """Count n rows against the rate; a second's worth may come at once."""
        now = time.monotonic()
        self.left = min(self.rate, self.left + (now - self.since) * self.rate)
        self.since = now
        if self.left < min(n, self.rate):
            raise Problem(
                429, f"a key may send {self.rate:g} rows per second; slow down", retry_after="1"
            )
        self.left -= n

    def give_back(self, n: int) -> None:
        """Take back what was counted for rows that will be counted again."""
        self.left += n


def no_key() -> Problem:
    """Return the answer to requests without a valid key."""
    return Problem(
        401,
        "Authorization must be 'Bearer KEY' with a key that is neither unknown, revoked nor "
        "expired; 'evenhand service key' makes one",
        www_authenticate="Bearer",
    )


class Keyring:
    """The valid keys, as last read from the database."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._keys: dict[bytes, Key] = {}

    def take(self, rows: list[tuple[Any, ...]]) -> None:
        """Take over what :func:`read` found; what is left of their rates stays."""
        old = self._keys
        self._keys = {}
        for number, name, digest, scopes, experiment, expires in rows:
            key = Key(number, name, frozenset(scopes.split()), experiment, expires, self._rate)
            key.left = self._rate
            self._keys[bytes(digest)] = old.get(bytes(digest), key)

    def by_id(self, number: int) -> Key | None:
        """Return a valid key by its number."""
        return next((key for key in self._keys.values() if key.id == number), None)

    def by_token(self, token: str) -> Key | None:
        """Return a valid key."""
        return self.by_hash(hashed(token.encode()))

    def find(self, headers: list[tuple[bytes, bytes]]) -> Key | None:
        """Return the key of a request, if it has a valid one.

        It is looked up by its hash, which nobody can steer byte by byte: how long that takes says
        nothing about a key.
        """
        for name, value in headers:
            if name == b"authorization":
                return self.of(value)
        return None

    def of(self, value: bytes | None) -> Key | None:
        """Return the key of an ``Authorization`` header."""
        digest = bearer(value)
        return None if digest is None else self.by_hash(digest)

    def by_hash(self, digest: bytes) -> Key | None:
        """Return a valid key."""
        return self._keys.get(digest)


def bearer(value: bytes | None) -> bytes | None:
    """Return the hash of the key in an ``Authorization`` header."""
    if value is None or value[:7].lower() != b"bearer ":
        return None
    return hashed(value[7:])


def read(c: Connection) -> list[tuple[Any, ...]]:
    """Return all keys that were not revoked."""
    return c.execute("select id, name, hash, scopes, exp, expires from keys where revoked is null")
