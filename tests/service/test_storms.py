"""Storms: processes killed at random under load. Nothing lost, nothing twice, the same bits."""

import json
import os
import random
import signal
import subprocess
import time

import pytest

from evenhand.service.database import database
from tests.service.conftest import new_postgresql
from tests.service.running import Clients, Service, lost, stored_rewards

NEW = {"name": "x", "arms": [f"arm {i}" for i in range(20)], "k": 5, "seed": 1}


AWAY = ((503, "none"), (200, "not wanted"))  # what tells hear while the database is away


def entries(service):
    """Length of the log."""
    c = database(
        service.url if "://" in service.url else str(service.folder / service.url)
    ).connect()
    try:
        return c.execute("select coalesce(max(seq), 0) from log")[0][0]
    finally:
        c.close()


def storm(services, clients, kills, rng, longest):
    """Kill children of services at random moments of their work, of each kind at least one.

    A folder is killed after it has done something: the last to go waits for one if none has gone.
    """
    killed, end, mark = {"web_process": 0, "folder": 0}, time.monotonic() + longest, 0
    while sum(killed.values()) < kills and time.monotonic() < end + 60 * (not killed["folder"]):
        more, patience = len(clients.acked) + rng.randrange(60), time.monotonic() + 5.0
        while len(clients.acked) <= more and time.monotonic() < patience:
            time.sleep(rng.uniform(0.0, 0.02))
        children = rng.choice(services).children()
        waits = not killed["folder"] and sum(killed.values()) == kills - 1
        chosen = rng.random() < 0.5 or waits
        if chosen and "folder" in children and entries(services[0]) > mark + 4:
            what, mark = "folder", entries(services[0])
        elif "web_process" in children and not waits:
            what = "web_process"
        else:
            continue
        os.kill(children[what], signal.SIGKILL)
        killed[what] += 1
    return killed


def settled(service, patience=20.0):
    """Wait until all rewards told are counted."""
    end = time.monotonic() + patience
    source = database(service.url if "://" in service.url else str(service.folder / service.url))
    c = source.connect()
    try:
        while c.execute("select count(*) from tells where fold is null") != [(0,)]:
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        c.close()


def judged(services, clients, killed):
    """Stop all, check all that must hold, and say how much was tried."""
    for service in services:
        service.stop()
    said = services[0].checked()
    stored = stored_rewards(services[0])
    print(
        json.dumps(
            {
                "killed": killed,
                "shown": len(clients.seen),
                "acknowledged": len(clients.acked),
                "unlearnt": clients.unlearnt,
                "failed requests": clients.failed,
                "entries": said.entries,
            }
        )
    )
    assert clients.twice == []
    assert lost(clients.acked, stored) == []
    assert said.wrong == []
    assert said.unfolded == 0
    assert said.rewards == len(stored) >= len(clients.acked) > 0
    return said


def test_a_short_storm(tmp_path):
    service = Service(tmp_path).start()
    try:
        assert service.call("POST", "/v1/experiments", NEW)[0] == 201
        with Clients([service]) as clients:
            killed = storm([service], clients, 6, random.Random(1), 8.0)
        settled(service)
    finally:
        service.stop()
    judged([service], clients, killed)
    assert min(killed.values()) > 0


@pytest.mark.slow
def test_a_long_storm(tmp_path):
    service = Service(tmp_path).start()
    kills = int(os.environ.get("EVENHAND_KILLS", "500"))
    try:
        service.call("POST", "/v1/experiments", NEW)
        with Clients([service], n=8) as clients:
            killed = storm([service], clients, kills, random.Random(2), 8.0 * kills)
        settled(service)
    finally:
        service.stop()
    judged([service], clients, killed)
    assert sum(killed.values()) == kills


@pytest.fixture
def hosts(tmp_path, postgresql):
    """Two services on one PostgreSQL, as if on two hosts."""
    url = new_postgresql(postgresql)
    services = [Service(tmp_path, url, workers=2), Service(tmp_path, url, workers=2)]
    try:
        yield [service.start() for service in services]
    finally:
        for service in services:
            if service.process is not None:
                service.stop()


def start_again(postgresql):
    """Start a server that crashed; recovery may take longer than one call waits."""
    for _ in range(60):
        try:
            return postgresql.ensure_postgres_running()
        except (subprocess.SubprocessError, AssertionError):  # it is not ready yet
            time.sleep(1.0)
    raise TimeoutError("PostgreSQL does not come back")


@pytest.mark.slow
def test_a_long_storm_on_postgresql(hosts, postgresql):
    kills = int(os.environ.get("EVENHAND_KILLS", "500"))
    hosts[0].call("POST", "/v1/experiments", NEW)
    rng, total = random.Random(3), {"web_process": 0, "folder": 0, "postgresql": 0}
    with Clients(hosts, n=8) as clients:
        while sum(total.values()) < kills:
            for what, n in storm(hosts, clients, 20, rng, 160.0).items():
                total[what] += n
            os.kill(postgresql.get_pid(), signal.SIGQUIT)  # at once, without a checkpoint
            total["postgresql"] += 1
            time.sleep(rng.uniform(0.5, 2.0))
            start_again(postgresql)
            time.sleep(5.0)
    settled(hosts[0])
    judged(hosts, clients, total)


@pytest.mark.slow
def test_a_folder_that_wakes_up_late_is_refused(hosts):
    hosts[0].call("POST", "/v1/experiments", NEW)
    stopped = 0
    with Clients(hosts, n=4) as clients:
        for _ in range(4):
            time.sleep(2.0)
            for service in hosts:
                folder = service.children().get("folder")
                if folder:
                    os.kill(folder, signal.SIGSTOP)
                    time.sleep(5.0)  # beyond its lease: the other takes over
                    os.kill(folder, signal.SIGCONT)
                    stopped += 1
        time.sleep(2.0)
    settled(hosts[0])
    judged(hosts, clients, {"stopped": stopped})
    words = [line for service in hosts for line in service.said().splitlines()]
    leads = [json.loads(line) for line in words if '"leads"' in line]
    assert max(said["fence"] for said in leads) >= 3  # it changed hands


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [60.0])
def test_asks_are_answered_while_the_database_is_away(hosts, postgresql, seconds):
    hosts[0].call("POST", "/v1/experiments", NEW)
    with Clients(hosts, n=4) as clients:
        time.sleep(3.0)
    ids = set(clients.seen)
    os.kill(postgresql.get_pid(), signal.SIGQUIT)
    end, asked, unlearnt, away = time.monotonic() + seconds, 0, 0, 0
    try:
        while time.monotonic() < end:
            status, said = hosts[0].call("POST", "/v1/experiments/x/ask", {"n": 2})
            assert status == 200
            asked += 1
            unlearnt += sum(not row["learns"] for row in said["decisions"])
            row = said["decisions"][0]
            body = {"tells": [{"id": row["id"], "reward": 1.0}]}
            status, said = hosts[0].call("POST", "/v1/experiments/x/tell", body)
            words = said.get("results", ["none"])[0]
            assert (status, words) in AWAY or time.monotonic() < end - seconds + 2.0
            away += status == 503
            time.sleep(0.01)
    finally:
        start_again(postgresql)
    print(json.dumps({"asked": asked, "unlearnt": unlearnt, "told to try again": away}))
    assert unlearnt > asked
    with Clients(hosts, n=4) as after:
        time.sleep(10.0)
    assert len(after.acked) > 20
    assert not ids & set(after.seen)
    settled(hosts[0])
    clients.acked |= after.acked
    judged(hosts, clients, {"postgresql": 1})
