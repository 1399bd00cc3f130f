"""Asking and telling over HTTP, with retries."""

import http.client
import json
import random
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlsplit

AGAIN = (429, 502, 503, 504)  # answers after which the same request is sent again
FIRST, LONGEST = 0.05, 2.0  # seconds of the first and of the longest pause


class Refused(ValueError):  # noqa: N818
    """The service refused a request; sending it again would not help.

    Attributes
    ----------
    status
        The HTTP status.
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Unreachable(ConnectionError):  # noqa: N818
    """The service did not answer within the client's patience."""


@dataclass(frozen=True, slots=True)
class Row:
    """What to show.

    Attributes
    ----------
    id
        The receipt with which the reward is told.
    arms
        Names of the arms to show together, in any order.
    learns
        Whether a reward is wanted.
    """

    id: str
    arms: tuple[str, ...]
    learns: bool


class Client:
    """A connection to a service; threads may share it, each has a socket of its own.

    Parameters
    ----------
    url
        Where the service is, such as ``http://127.0.0.1:8000``.
    key
        A key that it knows.
    patience
        Seconds until a request is given up.
    timeout
        Seconds to wait for one answer.
    """

    def __init__(
        self, url: str, key: str, *, patience: float = 30.0, timeout: float = 10.0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be http://host:port or https://host:port, got {url!r}")
        self._place = parts
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._patience, self._timeout = patience, timeout
        self._local = threading.local()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this thread's socket."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def experiment(self, name: str) -> "Experiment":
        """Return an experiment by its name."""
        return Experiment(self, name)

    def create(self, name: str, arms: Iterable[str], k: int, **options: Any) -> "Experiment":
        """Make an experiment; options as the service's description names them."""
        body = {"name": name, "arms": list(arms), "k": k, **options}
        self.call("POST", "/v1/experiments", body)
        return Experiment(self, name)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request, again if need be, and return what was answered."""
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        end, pause, last = time.monotonic() + self._patience, FIRST, "no answer"
        while True:
            try:
                status, said = self._once(method, path, data, headers or {})
            except (OSError, http.client.HTTPException) as error:
                self.close()
                last = repr(error)
            else:
                if status < 300:
                    return said
                detail = said.get("detail", "") if isinstance(said, dict) else ""
                if status not in AGAIN:
                    raise Refused(status, detail)
                last = f"{status}: {detail}"
            if time.monotonic() + pause > end:
                raise Unreachable(f"no answer within {self._patience:g} s, the last was {last}")
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(LONGEST, 2.0 * pause)

    def _once(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, Any]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            secure = self._place.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            connection = kind(self._place.hostname or "", self._place.port, timeout=self._timeout)
            self._local.connection = connection
        where = self._place.path.rstrip("/") + path
        connection.request(method, where, data, {**self._headers, **headers})
        answer = connection.getresponse()
        said = answer.read()
        is_json = "json" in answer.headers.get("content-type", "")
        return answer.status, json.loads(said) if is_json else said


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment of a service."""

    client: Client
    name: str

    def ask(self, *, once: str | None = None) -> Row:
        """Return what to show; the same rows for the same ``once``."""
        return self.ask_many(1, once=once)[0]

    def ask_many(self, n: int, *, once: str | None = None) -> list[Row]:
        """Return n rows to show."""
        headers = None if once is None else {"Idempotency-Key": once}
        said = self.client.call("POST", self._path("ask"), {"n": n}, headers)
        return [Row(one["id"], tuple(one["arms"]), one["learns"]) for one in said["decisions"]]

    def tell(self, id: str, reward: float | None) -> str:
        """Tell the reward of a row, None if it will never come; return the service's word."""
        return self.tell_many([(id, reward)])[0]

    def tell_many(self, rewards: Iterable[tuple[str, float | None]]) -> list[str]:
        """Tell rewards of rows; return a word for each."""
        tells = [{"id": id, "reward": reward} for id, reward in rewards]
        words: list[str] = self.client.call("POST", self._path("tell"), {"tells": tells})["results"]
        return words

    def shown(self, ids: Iterable[str]) -> list[str]:
        """Say which rows were really shown."""
        said = self.client.call("POST", self._path("shown"), {"ids": list(ids)})
        words: list[str] = said["results"]
        return words

    def policy(self) -> dict[str, Any]:
        """What each arm is due and was given."""
        return self._get("policy")

    def merits(self) -> dict[str, Any]:
        """What each arm is estimated to bring."""
        return self._get("merits")

    def explain(self, arm: str) -> dict[str, Any]:
        """All about one arm."""
        return self._get(f"explain/{quote(arm, safe='')}")

    def change(self, call: str, **arguments: Any) -> dict[str, Any]:
        """Change the experiment: ``change("retire", arms=["ada"])``."""
        body = {"call": call, **arguments}
        said: dict[str, Any] = self.client.call("POST", self._path("changes"), body)
        return said

    def _get(self, what: str) -> dict[str, Any]:
        said: dict[str, Any] = self.client.call("GET", self._path(what))
        return said

    def _path(self, what: str) -> str:
        return f"/v1/experiments/{self.name}/{what}"
