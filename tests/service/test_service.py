"""The service as its users meet it, over HTTP, started by one command."""

import json
import subprocess
import sys
import time

import pytest

from evenhand.service import check, upkeep
from evenhand.service.database import database

ARMS = ["ada", "bob", "cy", "dee", "eve/1", 'f"lo']


def experiment(service, name):
    """Make one; return its path when there is a first report of it."""
    new = {"name": name, "arms": ARMS, "k": 2, "seed": 3}
    status, said = service.call("POST", "/v1/experiments", new)
    assert status == 201, said
    path, end = f"/v1/experiments/{name}", time.monotonic() + 60.0
    while service.call("GET", f"{path}/explain/{ARMS[0]}")[0] == 404:
        assert time.monotonic() < end
        time.sleep(0.1)
    return path


@pytest.fixture(scope="session")  # like the service, which would refuse its name a second time
def x(service):
    """An experiment that no test changes."""
    return experiment(service, "x")


def ask(service, x, n=1, **headers):
    status, said = service.call("POST", f"{x}/ask", {"n": n}, **headers)
    assert status == 200, said
    return said["decisions"]


def tell(service, x, *rows):
    body = {"tells": [{"id": key, "reward": reward} for key, reward in rows]}
    status, said = service.call("POST", f"{x}/tell", body)
    assert status == 200, said
    return said["results"]


def test_one_command_and_the_key_is_for_its_owner_alone(service):
    file = service.folder / "evenhand.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert (service.folder / "evenhand.db").stat().st_mode & 0o777 == 0o600
    assert service.key not in service.said()
    second = subprocess.run(
        service.command, cwd=service.folder, capture_output=True, text=True, timeout=30
    )
    assert second.returncode == 1
    assert f"evenhand.db is served already, by process {service.process.pid}" in second.stderr


def test_every_row_gets_a_word(service, x):
    (row,) = ask(service, x)
    assert set(row["arms"]) <= set(ARMS)
    key = row["id"]
    assert tell(service, x, (key, 0.5), (key, 0.5), (key, 0.25)) == [
        "accepted", "duplicate", "conflict",
    ]  # fmt: skip
    assert tell(service, x, (key, 0.5)) == ["duplicate"]
    forged = key[:-1] + ("a" if key[-1] != "a" else "b")
    assert tell(service, x, (forged, 1), ("", 1), ("é" * 10, 1), (key, 2)) == [
        "unknown", "unknown", "unknown", "refused",
    ]  # fmt: skip
    status, said = service.call("GET", f"{x}/receipts/{key}")
    assert status == 200
    assert said["arms"] == row["arms"]
    assert said["told"]["reward"] == 0.5
    (other,) = ask(service, x)
    assert tell(service, x, (other["id"], None)) == ["accepted"]  # will never come


def test_a_receipt_is_bound_to_its_experiment(service, x):
    service.call("POST", "/v1/experiments", {"name": "y", "arms": ARMS, "k": 2, "seed": 3})
    (row,) = ask(service, x)
    assert tell(service, "/v1/experiments/y", (row["id"], 1.0)) == ["unknown"]


def test_the_same_idempotency_key_gives_the_same_rows(service, x):
    first, again = (ask(service, x, 3, Idempotency_Key="k1") for _ in range(2))
    assert first == again
    assert ask(service, x, 3, Idempotency_Key="k2") != first
    status, said = service.call("POST", f"{x}/ask", {"n": 4}, Idempotency_Key="k1")
    assert (status, said["title"]) == (409, "Conflict")
    other = service.call("POST", "/v1/keys", {"name": "other", "scopes": ["ask"]})[1]["key"]
    status, said = service.call("POST", f"{x}/ask", {"n": 3}, key=other, Idempotency_Key="k1")
    ids = {row["id"] for row in first}
    assert ids.isdisjoint(row["id"] for row in said["decisions"])  # else it could tell of them


def test_files_are_for_their_owner_alone(service):
    """Whoever may read a file can lock it, and hold up all commits."""
    for file in service.folder.glob("evenhand.*"):
        assert file.stat().st_mode & 0o077 == 0, file


def test_what_is_learnt_can_be_read(service, x):
    for _ in range(3):
        tell(service, x, *((row["id"], 0.5) for row in ask(service, x, 100) if row["learns"]))
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        told = service.call("GET", f"{x}/diagnostics")[1]["told"]
        if told >= 300:
            break
        time.sleep(0.1)
    policy = service.call("GET", f"{x}/policy")[1]
    assert sum(arm["due"] for arm in policy["arms"]) == pytest.approx(2.0)
    assert sum(arm["given"] for arm in policy["arms"]) == pytest.approx(2.0)
    assert [arm["arm"] for arm in policy["arms"]] == ARMS
    merits = service.call("GET", f"{x}/merits")[1]
    assert all(arm["merit"] is not None for arm in merits["arms"])
    status, said = service.call("GET", f"{x}/explain/eve%2F1")
    assert status == 200
    assert said["arm"] == "eve/1"
    assert said["mean_reward_with_it"] == pytest.approx(0.5)
    assert said["text"].startswith("Share: It is due")
    status, table = service.call("GET", f"{x}/export.csv")
    lines = table.decode().splitlines()
    assert lines[0] == "epoch,row,arms,reward,told_at,by_default"
    assert len(lines) - 1 >= 300
    import io

    import polars

    frame = polars.read_parquet(io.BytesIO(service.call("GET", f"{x}/export.parquet")[1]))
    assert len(frame) >= len(lines) - 1
    assert service.call("GET", f"{x}/series")[0] == 200


def test_changes_take_hold_within_a_second(service):
    x = experiment(service, "changing")
    ask(service, x, 50)  # leases, and rows in memory
    status, said = service.change(x, {"call": "retire", "arms": ["ada"]})
    assert (status, said["done"]) == (200, True)
    time.sleep(1.0)
    assert all("ada" not in row["arms"] for row in ask(service, x, 300))
    change = {"call": "add", "arms": ["gil"]}
    assert service.change(x, change)[0] == 200
    shares = {name: 0.0125 for name in [*ARMS[1:]]} | {"gil": 1 - 0.0125 * 5}
    status, said = service.change(x, {"call": "shares", "shares": shares})
    assert status == 409  # gil cannot have more than half of the places of two
    shares = {name: 0.11 for name in [*ARMS[1:]]} | {"gil": 0.45}
    status, said = service.change(x, {"call": "shares", "shares": shares})
    assert status == 200, said
    time.sleep(1.0)
    rows = ask(service, x, 900)
    full = [row["arms"] for row in rows if len(row["arms"]) == 2]
    share = sum("gil" in arms for arms in full) / len(full)
    assert abs(share - 0.9) < 4 * (0.9 * 0.1 / len(full)) ** 0.5
    assert service.change(x, {"call": "terms", "terms": None})[0] == 200
    status, said = service.change(x, {"call": "retire", "arms": ["nobody"]})
    assert (status, "nobody" in said["detail"]) == (404, True)


def test_terms_can_be_given_from_the_beginning(service):
    groups = {"first": {"arms": ["ada", "bob"], "cap": 0.3}}
    terms = {"unit": "shares", "floors": {"cy": 0.4, "*": 0.02}, "groups": groups}
    new = {"name": "t", "arms": ARMS, "k": 2, "seed": 3, "terms": terms}
    status, said = service.call("POST", "/v1/experiments", new)
    assert status == 201, said
    rows = ask(service, "/v1/experiments/t", 300)
    full = [row["arms"] for row in rows if len(row["arms"]) == 2]
    share = sum("cy" in arms for arms in full) / len(full)
    assert share > 0.8 - 4 * (0.8 * 0.2 / len(full)) ** 0.5
    pair = sum(("ada" in arms) + ("bob" in arms) for arms in full) / len(full)
    assert pair < 0.6 + 4 * (0.6 / len(full)) ** 0.5  # a third of 2 places each without terms: 0.67
    for wrong, words in (
        ({"unit": "shares", "floors": {"nobody": 0.1}}, "nobody"),
        ({"unit": "shares", "floors": 0.3}, "floors"),
    ):
        status, said = service.call("POST", "/v1/experiments", new | {"name": "u", "terms": wrong})
        assert (status, words in said["detail"]) == (422, True), said
    status, said = service.call("POST", "/v1/experiments", new | {"name": "u", "learner": "urs"})
    assert (status, "terms" in said["detail"]) == (422, True), said


def test_keys_have_scopes_and_can_be_revoked(service, x):
    assert service.call("GET", x, key=None)[0] == 401
    assert service.call("GET", x, key="eh_wrong")[0] == 401

    def new(**options):
        status, said = service.call("POST", "/v1/keys", {"name": "t", **options})
        assert status == 201, said
        return said["id"], said["key"]

    number, asks = new(scopes=["ask"], experiment="x")
    assert service.call("POST", f"{x}/ask", {}, key=asks)[0] == 200
    assert service.call("GET", f"{x}/policy", key=asks)[0] == 403
    assert service.call("POST", "/v1/experiments/y/ask", {}, key=asks)[0] == 403
    assert service.call("POST", f"{x}/pause", key=asks)[0] == 403
    _, reads = new(scopes=["read"])
    assert service.call("GET", f"{x}/policy", key=reads)[0] == 200
    assert service.call("POST", f"{x}/ask", {}, key=reads)[0] == 403
    _, old = new(scopes=["read"], expires=time.time() - 1)
    assert service.call("GET", f"{x}/policy", key=old)[0] == 401
    assert service.call("DELETE", f"/v1/keys/{number}")[0] == 200
    assert service.call("POST", f"{x}/ask", {}, key=asks)[0] == 401
    listed = service.call("GET", "/v1/keys")[1]
    assert number not in [key["id"] for key in listed["keys"]]
    assert "hash" not in str(listed)
    for secret in (asks, reads, old, service.key):
        assert secret not in service.said()
        assert secret.encode() not in (service.folder / "evenhand.db").read_bytes()


def test_errors_name_argument_rule_and_value(service, x):
    for method, path, body, status, words in (
        ("POST", f"{x}/ask", {"n": 0}, 422, ["n", ">= 1", "got 0"]),
        ("POST", f"{x}/ask", {"m": 1}, 422, ["m"]),
        ("POST", f"{x}/tell", {"tells": [{"id": 1, "reward": 1}]}, 422, ["tells[0].id", "got 1"]),
        ("POST", "/v1/experiments", {"name": "z", "arms": ["a"], "k": 2}, 422, ["k", "2", "m=1"]),
        ("POST", "/v1/experiments", {"name": "x", "arms": ["a"], "k": 1}, 409, ["name", "x"]),
        ("POST", "/v1/experiments", {"name": "A", "arms": ["a"], "k": 1}, 422, ["name", '"A"']),
        ("POST", "/v1/experiments/no/ask", {}, 404, ["no"]),
        ("GET", f"{x}/ask", None, 405, ["POST", "GET"]),
        ("GET", "/v2", None, 404, ["openapi"]),
        ("GET", f"{x}/explain/nobody", None, 404, ["nobody"]),
    ):
        got, said = service.call(method, path, body)
        assert got == status, (path, said)
        assert said["status"] == status
        assert all(word in said["detail"] for word in words), said
    big = {"tells": [{"id": "x" * 2000, "reward": 1}] * 600}
    assert service.call("POST", f"{x}/tell", big)[0] == 413


def test_a_window_gives_the_default_to_rows_that_were_shown(service):
    new = {"name": "w", "arms": ARMS, "k": 2, "mode": "window", "window": 1.0, "seed": 1}
    assert service.call("POST", "/v1/experiments", new)[0] == 201
    w = "/v1/experiments/w"
    rows = [row for row in ask(service, w, 8) if row["learns"]]
    tell(service, w, (rows[0]["id"], 1.0))
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        said = service.call("GET", f"{w}/receipts/{rows[-1]['id']}")[1]["told"]
        if said and said["counted"]:
            break
        time.sleep(0.1)
    assert said == {"reward": 0.0, "at": said["at"], "by_default": True, "counted": True}
    assert tell(service, w, (rows[-1]["id"], 1.0)) == ["expired"]
    assert service.call("GET", f"{w}/receipts/{rows[0]['id']}")[1]["told"]["reward"] == 1.0


def test_pause_archive_erase_and_rotate(service):
    new = {"name": "p", "arms": ARMS, "k": 2, "learner": "urs", "seed": 1}
    assert service.call("POST", "/v1/experiments", new)[0] == 201
    p = "/v1/experiments/p"
    old = ask(service, p, 2)
    assert service.call("POST", f"{p}/pause")[1]["paused"]
    assert service.call("POST", f"{p}/ask", {})[0] == 409
    assert tell(service, p, (old[0]["id"], 1.0)) == ["accepted"]
    assert not service.call("POST", f"{p}/resume")[1]["paused"]
    assert service.call("POST", f"{p}/rotate")[0] == 200
    assert tell(service, p, (old[1]["id"], 1.0)) == ["accepted"]  # the secret before is known
    (new,) = ask(service, p)
    assert service.call("POST", f"{p}/rotate")[0] == 200
    assert tell(service, p, (old[0]["id"], 1.0), (new["id"], 1.0)) == ["unknown", "accepted"]
    assert service.call("POST", f"{p}/erase", {"arms": ["bob"]})[0] == 200
    assert all("bob" not in row["arms"] for row in ask(service, p, 50))
    assert service.call("POST", f"{p}/archive")[1]["archived"]
    late = {"tells": [{"id": new["id"], "reward": 1.0}]}
    assert service.call("POST", f"{p}/tell", late)[0] == 409
    assert service.call("POST", f"{p}/ask", {})[0] == 409


def test_it_describes_and_measures_itself(service, x):
    status, said = service.call("GET", "/openapi.json")
    assert (status, said["openapi"]) == (200, "3.1.0")
    assert "/v1/experiments/{experiment}/ask" in said["paths"]
    text = service.call("GET", "/metrics")[1].decode()
    assert 'evenhand_requests_total{route="/v1/experiments/*/ask",status="200"}' in text
    assert service.call("GET", "/healthz", key=None)[0] == 200


def test_a_backup_of_the_running_service_holds_together(service, x, tmp_path):
    source = database(str(service.folder / "evenhand.db"))
    upkeep.backup(source, tmp_path / "all.gz")
    copy = database(str(tmp_path / "copy.db"))
    upkeep.restore(tmp_path / "all.gz", copy)
    c = copy.connect()
    for (number,) in c.execute("select id from experiments"):
        assert check.check(c, number).wrong == []
    c.close()


def test_web_workers_start_without_the_compiler():
    code = "import sys, evenhand.service.web_process; print('numba' in sys.modules)"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == "False"


def test_an_arm_that_has_just_joined_is_shown_by_its_name(service):
    """A worker may lease rows of an arm before it has heard of its name."""
    new = {"name": "j", "arms": ARMS, "k": 3, "seed": 1}
    assert service.call("POST", "/v1/experiments", new)[0] == 201
    source = database(str(service.folder / "evenhand.db"))
    c = source.connect()
    (number,) = c.execute("select id from experiments where name='j'")[0]
    said = json.dumps({"n": 3, "names": ["new 1", "new 2", "new 3"]})
    with c.transaction():  # as another worker would ask for it
        c.execute(
            "insert into changes(exp, call, arguments, key, at) values(?,'add',?,'',0)",
            (number, said),
        )
    shown, deadline = set(), time.monotonic() + 20
    while not shown >= {"new 1", "new 2", "new 3"} and time.monotonic() < deadline:
        shown |= {arm for row in ask(service, "/v1/experiments/j", 20) for arm in row["arms"]}
    c.close()
    assert shown == {*ARMS, "new 1", "new 2", "new 3"}


def test_where_files_cannot_be_locked_it_says_so_and_the_rest_works():
    """As on Windows, which has no fcntl."""
    code = "import sys; sys.modules['fcntl'] = None; sys.argv[:] = ['evenhand', 'serve']; "
    code += "import evenhand.learners; from evenhand.cli import entry; entry()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the service locks files the POSIX way")
    assert "Traceback" not in done.stderr


def test_strangers_cannot_fill_the_memory_with_paths(service):
    for i in range(20):
        assert service.call("GET", f"/made-up-{i}", key=None)[0] == 401
    assert "made-up" not in service.call("GET", "/metrics")[1].decode()
