"""Services for tests: started as users start them, on loopback, ended by their process ids."""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from evenhand.service import check
from evenhand.service.database import database


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Service:
    """``evenhand serve`` in a folder of its own."""

    def __init__(self, folder: Path, url: str = "evenhand.db", workers: int = 1, folder_too=True):
        self.folder, self.url, self.port = folder, url, free_port()
        self.command = [sys.executable, "-m", "evenhand", "serve", "--database", url]
        self.command += ["--port", str(self.port), "--workers", str(workers)]
        self.command += [] if folder_too else ["--no-folder"]
        self.process = None

    def start(self, wait: float = 180.0):
        self.log = (self.folder / f"log-{self.port}.txt").open("ab")
        self.process = subprocess.Popen(
            self.command, cwd=self.folder, stdout=self.log, stderr=self.log
        )
        end = time.monotonic() + wait
        while not self.ready():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < end, self.said()
            time.sleep(0.05)
        return self

    def ready(self):
        try:
            return self.call("GET", "/readyz", key=None)[0] == 200
        except OSError:
            return False

    def said(self):
        return Path(self.log.name).read_text()

    @property
    def key(self):
        return (self.folder / "evenhand.key").read_text().strip()

    def call(self, method, path, body=None, key="own", **headers):
        """Send one request on a connection of its own; return status and content."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            if key is not None:
                headers["Authorization"] = f"Bearer {self.key if key == 'own' else key}"
            data = None if body is None else json.dumps(body).encode()
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, data, named)
            answer = connection.getresponse()
            said = answer.read()
            kind = answer.headers.get("content-type", "")
            return answer.status, json.loads(said) if "json" in kind else said
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from None
        finally:
            connection.close()

    def change(self, experiment, body, wait=60.0):
        """Send a change; return what became of it, also where that takes longer than a request."""
        status, said = self.call("POST", f"{experiment}/changes", body)
        end = time.monotonic() + wait
        while status == 202 and time.monotonic() < end:
            time.sleep(0.05)
            status, said = self.call("GET", f"{experiment}/changes/{said['id']}")
        return status, said

    def children(self):
        """Process ids of the children, by what they are; not those that have just ended."""
        found, me = {}, self.process.pid
        for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if len(words) > 2:
                found[words[2].decode().rsplit(".", 1)[-1]] = int(pid)
        return found

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)
        self.log.close()

    def kill(self):
        """End all of it at once, as a power cut would."""
        everything = [self.process.pid, *self.children().values()]
        for pid in everything:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def checked(self, name="x"):
        """Return what ``evenhand service check`` finds, once nothing runs."""
        source = database(self.url if "://" in self.url else str(self.folder / self.url))
        c = source.connect()
        try:
            (number,) = c.execute("select id from experiments where name=?", (name,))[0]
            return check.check(c, number)
        finally:
            c.close()


class Clients:
    """Threads that ask and tell, and remember what was acknowledged and what they were shown."""

    def __init__(self, services, reward=None, n=4, name="x", told=0.9):
        self.services, self.name, self.told = services, name, told
        self.reward = reward or (lambda arms, rng: round(rng.random(), 6))
        self.acked, self.seen, self.unlearnt, self.twice = {}, {}, 0, []
        self.failed = 0
        self._stop, self._lock = False, threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(n)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop = True
        for thread in self._threads:
            thread.join(30)

    def _run(self, i):
        rng, pending, connection = random.Random(i), [], None
        while not self._stop:
            service = rng.choice(self.services)
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
                    headers = {"Authorization": f"Bearer {self.services[0].key}"}
                if not pending:
                    pending = self._ask(connection, headers, rng)
                if not pending:
                    time.sleep(0.02)  # nothing to learn: leave the processor to the folder
                else:
                    self._tell(connection, headers, pending)
                    pending = []
            except (OSError, http.client.HTTPException, Away):
                self.failed += 1
                if connection:
                    connection.close()
                connection = None
                time.sleep(0.02)
        if connection:
            connection.close()

    def _post(self, connection, headers, what, body):
        path = f"/v1/experiments/{self.name}/{what}"
        connection.request("POST", path, json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status >= 500:
            raise Away
        assert answer.status == 200, said
        return json.loads(said)

    def _ask(self, connection, headers, rng):
        found = self._post(connection, headers, "ask", {"n": rng.choice([1, 1, 3])})["decisions"]
        with self._lock:
            for one in found:
                if one["id"] in self.seen:
                    self.twice.append(one["id"])
                self.seen[one["id"]] = one["arms"]
                self.unlearnt += not one["learns"]
        told = [one for one in found if one["learns"] and rng.random() < self.told]
        return [(one["id"], self.reward(one["arms"], rng)) for one in told]

    def _tell(self, connection, headers, pending):
        body = {"tells": [{"id": key, "reward": reward} for key, reward in pending]}
        words = self._post(connection, headers, "tell", body)["results"]
        with self._lock:
            for (key, reward), word in zip(pending, words, strict=True):
                assert word in ("accepted", "duplicate"), (word, key)
                self.acked[key] = reward


class Away(Exception):  # noqa: N818
    """The service said to try again."""


def stored_rewards(service, name="x"):
    """Rewards in the database, by the beginning of a receipt."""
    source = database(service.url if "://" in service.url else str(service.folder / service.url))
    c = source.connect()
    try:
        found = c.execute(
            "select epoch, row, reward from tells t join experiments e on e.id=t.exp "
            "where e.name=?",
            (name,),
        )
        return {f"{epoch}.{row}": reward for epoch, row, reward in found}
    finally:
        c.close()


def lost(acked, stored):
    """Acknowledged rewards that are not there, or not with their value."""
    return [key for key, y in acked.items() if stored.get(key.rsplit(".", 1)[0]) != y]
