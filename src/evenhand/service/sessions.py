"""Who has logged in to the pages: a cookie that stands for a key, for some hours.

The cookie is random and only its hash is stored, as with keys; logging out deletes it everywhere.
It opens pages, never the API, so that forms of other sites reach nothing. Forms of ours carry a
word that follows from the cookie, which other sites can neither read nor make.
"""

import hmac
import re
import secrets
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from evenhand.service.database import Connection
from evenhand.service.keys import Key, hashed
from evenhand.service.worker import Worker

LIFE = 12 * 3600.0  # seconds
COOKIE = "evenhand"
TOKEN = re.compile(rb"[A-Za-z0-9_-]{1,64}")
Headers = list[tuple[bytes, bytes]]


class Session(NamedTuple):
    """A visitor: the cookie, and the key it stands for, if any."""

    token: str
    key: Key | None

    @property
    def csrf(self) -> str:
        """The word that forms carry."""
        return blake2b(b"form", key=self.token.encode(), digest_size=20).hexdigest()

    def check(self, word: str) -> bool:
        """Whether a form is one of ours."""
        return hmac.compare_digest(self.csrf.encode(), word.encode())


async def find(worker: Worker, headers: Headers) -> Session:
    """Return the session of a request; one without a key if there is none."""
    token = _cookie(headers)
    if token is None:
        return Session(secrets.token_urlsafe(32), None)
    number = await worker.reader.do(partial(_read, digest=hashed(token.encode())))
    key = None if number is None else worker.keyring.by_id(number)
    return Session(token, key if key is not None and key.valid else None)


async def begin(worker: Worker, key: Key) -> Session:
    """Log in: a new cookie, whatever the one before was."""
    token = secrets.token_urlsafe(32)
    await worker.committer.do(partial(_write, digest=hashed(token.encode()), key=key.id))
    return Session(token, key)


async def end(worker: Worker, session: Session) -> None:
    """Log out."""
    await worker.committer.do(partial(_delete, digest=hashed(session.token.encode())))


def cookie(token: str, safe: bool) -> tuple[bytes, bytes]:
    """Return the header that sets the cookie; an empty one ends it."""
    life = int(LIFE) if token else 0
    parts = [f"{COOKIE}={token}", "Path=/", "HttpOnly", "SameSite=Strict", f"Max-Age={life}"]
    return b"set-cookie", "; ".join(parts + (["Secure"] if safe else [])).encode()


def behind_tls(scheme: str, headers: Headers) -> bool:
    """Whether the browser came by TLS: here, or at a proxy, which can only make it stricter."""
    return scheme == "https" or (b"x-forwarded-proto", b"https") in headers


def from_here(headers: Headers) -> bool:
    """Whether a form came from a page of ours, as far as the browser says."""
    said = dict(headers)
    if said.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
        return False
    origin = said.get(b"origin")
    return origin is None or origin.split(b"://")[-1] == said.get(b"host")


def _cookie(headers: Headers) -> str | None:
    """Return our cookie. Others' are passed over unread: a parser of all can be kept busy."""
    for name, value in headers:
        if name == b"cookie":
            for part in value.split(b";"):
                called, _, said = part.strip().partition(b"=")
                if called == COOKIE.encode() and TOKEN.fullmatch(said):
                    return said.decode()
    return None


def _read(c: Connection, digest: bytes) -> int | None:
    found = c.execute(f"select key from sessions where hash=? and expires>{c.now}", (digest,))
    return found[0][0] if found else None


def _write(c: Connection, digest: bytes, key: int) -> None:
    c.execute(f"delete from sessions where expires<={c.now}")
    c.execute(
        f"insert into sessions(hash, key, created, expires) values(?,?,{c.now},{c.now}+?)",
        (digest, key, LIFE),
    )


def _delete(c: Connection, digest: bytes) -> None:
    c.execute("delete from sessions where hash=?", (digest,))
