"""One web worker: a process that answers requests on a socket it was given."""

import argparse
import asyncio
import gc
import logging
import os
import resource
import socket
import sys
import threading

import numpy as np
import uvicorn

from evenhand.service import parent
from evenhand.service.connections import Server
from evenhand.service.database import DATABASE, database
from evenhand.service.logs import log_as_json
from evenhand.service.openapi import description
from evenhand.service.quick import Quick
from evenhand.service.stock import draw
from evenhand.service.web import App
from evenhand.service.worker import Worker

log = logging.getLogger(__name__)


def warm() -> None:
    """Compile what drawing rows of a plan needs, for when stock runs out."""
    from evenhand.learners import URS, EvenHand

    for learner in (URS(6, 2, seed=0), EvenHand(6, 2, seed=0)):
        draw(0, learner.publish().plan.to_bytes(), np.random.default_rng(0))
    gc.collect()
    gc.freeze()  # the compiler's many objects stay: no need to look through them again


def allow_connections() -> None:
    """Take as many connections as this process may: the usual thousand are soon held open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """Answer until SIGTERM, or until the process that started this one is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=int, required=True, help="descriptor to listen at")
    parser.add_argument("--rate", type=float, required=True, help="rows per second and key")
    parser.add_argument("--certificate")
    parser.add_argument("--private-key")
    given = parser.parse_args()
    log_as_json()
    allow_connections()
    sys.setswitchinterval(0.001)  # seconds that a commit which is done waits for the loop
    threading.Thread(target=warm, daemon=True).start()  # stock lasts until then
    app = App(Worker(database(os.environ[DATABASE]), given.rate), description())
    config = uvicorn.Config(
        app,
        http=Quick,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=2048,
        timeout_graceful_shutdown=10,
        ssl_certfile=given.certificate,
        ssl_keyfile=given.private_key,
    )
    server = Server(config)

    def stop() -> None:
        server.should_exit = True

    parent.when_alone(stop)
    listening = socket.socket(fileno=given.socket)
    asyncio_run(server, listening)


def asyncio_run(server: uvicorn.Server, listening: socket.socket) -> None:
    """Serve on a socket, with the fastest loop there is."""
    try:
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    except ImportError:
        pass
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
