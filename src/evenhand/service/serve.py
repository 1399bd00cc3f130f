"""``evenhand serve``: one small process that starts the others, by exec, and keeps them running."""

import logging
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from evenhand.service import keys, locks, parent
from evenhand.service.database import DATABASE, Database, SQLite, database
from evenhand.service.logs import log_as_json

SILENT = 20.0  # seconds without a sign of life until a folder is ended
GRACE = 15.0  # seconds that children have to finish
log = logging.getLogger(__name__)


@dataclass
class Settings:
    """What a service is started with."""

    database: str = "evenhand.db"
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    folder: bool = True
    rate: float = 100_000.0
    certificate: Path | None = None
    private_key: Path | None = None


@dataclass
class Child:
    """A process that is started again when it ends."""

    name: str
    database: str
    command: list[str]
    descriptors: tuple[int, ...] = ()
    beats: int | None = None  # where it shows signs of life
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0
    seen: float = 0.0
    wait: float = 0.0
    pipes: list[IO[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start it; its standard input ends when this process does."""
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            pass_fds=self.descriptors,
            env=os.environ | {DATABASE: self.database},
            start_new_session=True,  # Ctrl-C is for this process, which stops them in order
        )
        self.started = self.seen = time.monotonic()
        log.info("started", extra={"child": self.name, "pid": self.process.pid})

    def look(self) -> None:
        """Start it again if it ended; end it if it is stopped."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.started + self.wait:
                self.start()
            return
        code = self.process.poll()
        if code is not None:
            log.warning("ended", extra={"child": self.name, "code": code})
            failed = code > 0 and now - self.started < 5.0  # by itself, not by a signal
            self.wait = min(5.0, max(0.25, 2 * self.wait)) if failed else 0.0
            self.process, self.started = None, now
        elif self.beats is not None:
            if select.select([self.beats], [], [], 0)[0]:
                os.read(self.beats, 4096)
                self.seen = now
            elif now - self.seen > SILENT:
                log.error("silent", extra={"child": self.name})
                self.process.kill()

    def end(self, how: int) -> None:
        """Send it a signal, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)

    def finish(self, until: float) -> None:
        """Wait for its end, and force it if it takes too long."""
        if self.process is not None:
            try:
                self.process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class InUse(RuntimeError):  # noqa: N818
    """Another service has the file."""


def hold(source: Database) -> IO[str] | None:
    """Hold a file for this service alone, as long as what this returns is open."""
    if not isinstance(source, SQLite):
        return None
    if not source.path.resolve().parent.is_dir():
        raise FileNotFoundError(f"folder {source.path.parent} does not exist; make it first")
    lock = locks.opened(source.path.with_name(source.path.name + "-serve"))
    if not locks.try_lock(lock):
        lock.seek(0)
        by = lock.read().strip() or "another process"
        raise InUse(
            f"{source.path} is served already, by process {by}; stop that one, or give another "
            "--database; for several hosts use postgresql://"
        )
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def first_key(source: Database) -> Path | None:
    """Make a key for everything if there is none yet; return the file it is in."""
    c = source.connect()
    try:
        with c.transaction():
            if c.execute("select 1 from keys limit 1"):
                return None
            path = key_file(source)
            if path.exists():
                raise FileExistsError(
                    f"the first key is written to {path}, but there is one already and no key in "
                    "the database: it is another's; move it elsewhere"
                )
            _, token = keys.issue(c, "first", ["admin"])
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(token + "\n")
    finally:
        c.close()
    if sys.stderr.isatty():
        print(f"first key, with all rights: {token}", file=sys.stderr)
    return path


def key_file(source: Database) -> Path:
    """Return where the first key is written."""
    if isinstance(source, SQLite):
        return source.path.with_name(source.path.stem + ".key")
    return Path("evenhand.key")


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    log_as_json()
    source = database(settings.database)
    if settings.workers > 1 and not source.many_hosts:
        raise ValueError(
            f"workers must be 1 on SQLite, got {settings.workers}; "
            "--database postgresql://... takes any number"
        )
    _check_certificate(settings.certificate, settings.private_key)
    with hold(source) or nullcontext():
        _serve(settings, source)


def _serve(settings: Settings, source: Database) -> None:
    source.migrate()
    made = first_key(source)
    if made is not None:
        log.info("first key", extra={"file": str(made)})
    listening = _listen(settings.host, settings.port)
    children = _children(settings, source, listening)
    stopping = []

    def stop(number: int, *_: Any) -> None:
        stopping.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    log.info("serving", extra={"address": "{}:{}".format(*listening.getsockname())})
    while not stopping:
        for child in children:
            child.look()
        time.sleep(0.05)
    log.info("stopping", extra={"kept": "all that was confirmed"})
    until = time.monotonic() + GRACE
    web = [child for child in children if child.beats is None]
    for some in (web, [child for child in children if child.beats is not None]):
        for child in some:  # web workers first: the folder folds what they took in
            child.end(signal.SIGTERM)
        for child in some:
            child.finish(until)
    listening.close()


def _children(settings: Settings, source: Database, listening: socket.socket) -> list[Child]:
    here = [sys.executable, "-m"]
    children = []
    if settings.folder:
        ours, theirs = os.pipe()
        command = [*here, "evenhand.service.folder", "--beat", str(theirs)]
        command += ["--holder", parent.new_name()]
        children.append(Child("folder", source.url, command, (theirs,), ours))
    listening.set_inheritable(True)
    command = [*here, "evenhand.service.web_process", "--rate", str(settings.rate)]
    command += ["--socket", str(listening.fileno())]
    if settings.certificate is not None and settings.private_key is not None:
        command += ["--certificate", str(settings.certificate)]
        command += ["--private-key", str(settings.private_key)]
    for i in range(settings.workers):
        children.append(Child(f"web-{i}", source.url, command, (listening.fileno(),)))
    return children


def _check_certificate(certificate: Path | None, private_key: Path | None) -> None:
    """Refuse half of a pair, and files that cannot be used: nobody shall be served without TLS."""
    if certificate is None and private_key is None:
        return
    if certificate is None or private_key is None:
        raise ValueError("--certificate and --private-key must be given together, got one of them")
    for option, file in (("--certificate", certificate), ("--private-key", private_key)):
        if not file.is_file():
            raise FileNotFoundError(f"{option} must be a file, but there is no {file}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, private_key, _empty)
    except (ssl.SSLError, OSError) as error:
        raise ValueError(
            "--certificate and --private-key must be PEM files that belong together, the key not "
            f"encrypted, got {certificate} and {private_key}: {error}"
        ) from None


def _empty() -> str:
    """No password: nobody is there to be asked."""
    return ""


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise OSError(
            f"cannot listen at {host}:{port}: {error}; give another --port or --host"
        ) from None
    listening.listen(2048)
    return listening
