"""The client: nothing but the standard library, and it tries again."""

import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[2] / "client" / "src"
sys.path.insert(0, str(CLIENT))
from evenhand_client import Client, Refused, Unreachable  # noqa: E402


def test_it_needs_neither_numpy_nor_numba():
    heavy = "{'numpy', 'numba', 'evenhand'}"
    code = f"import sys, evenhand_client; print(sorted({heavy} & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, env={"PYTHONPATH": str(CLIENT)}, capture_output=True, text=True)
    assert said.stdout.strip() == "[]", said.stderr


class Moody(BaseHTTPRequestHandler):
    """Fails in some way before it answers."""

    moods: list[int | None]

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        mood = self.moods.pop(0)
        if mood is None:
            self.connection.close()
            return
        body = b'{"results":["duplicate"]}' if mood == 200 else b'{"detail":"n must be 1"}'
        self.send_response(mood)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def moody():
    server = HTTPServer(("127.0.0.1", 0), Moody)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_it_tries_again_where_that_may_help(moody):
    Moody.moods = [None, 503, 429, 200]
    with Client(moody, "k") as client:
        assert client.experiment("x").tell("1.2.x", 1.0) == "duplicate"
    assert Moody.moods == []
    Moody.moods = [422, 200]
    with Client(moody, "k") as client, pytest.raises(Refused, match="n must be 1") as found:
        client.experiment("x").tell("1.2.x", 1.0)
    assert found.value.status == 422
    Moody.moods = [503] * 20
    with Client(moody, "k", patience=0.3) as client, pytest.raises(Unreachable, match=r"0\.3 s"):
        client.experiment("x").tell("1.2.x", 1.0)


def test_it_speaks_with_the_service(service):
    with Client(f"http://127.0.0.1:{service.port}", service.key) as client:
        home = client.create("home", ["ada", "bob/1", "cy"], 2, seed=1)
        row = home.ask(once="visit 1")
        assert home.ask(once="visit 1") == row
        assert home.tell(row.id, 1.0) == "accepted"
        assert home.tell_many([(row.id, 1.0), ("x", 1.0)]) == ["duplicate", "unknown"]
        assert len(home.ask_many(5)) == 5
        assert home.shown([row.id]) == ["not wanted"]
        assert home.change("pause", arms=["cy"])["done"]
        assert home.explain("bob/1")["arm"] == "bob/1"
        assert {one["arm"] for one in home.policy()["arms"]} >= {"ada", "bob/1"}
        assert home.merits()["arms"]
        with pytest.raises(Refused, match="nobody"):
            home.explain("nobody")


def test_the_page_about_the_service_runs_as_printed(service, monkeypatch, capsys):
    page = (CLIENT.parents[1] / "docs" / "service.md").read_text()
    page = page.replace("127.0.0.1:8000", f"127.0.0.1:{service.port}").replace("home", "house")
    shell, python = (
        re.search(rf"^```{n}\n(.*?)^```", page, re.S | re.M)[1] for n in ("bash", "py")
    )
    said = subprocess.run(
        ["bash", "-ec", shell], cwd=service.folder, capture_output=True, text=True, timeout=30
    )
    assert '"name":"house"' in said.stdout
    assert '"decisions":[{"id":' in said.stdout
    monkeypatch.chdir(service.folder)
    exec(compile(python, "service.md", "exec"), {})
    assert capsys.readouterr().out.count("show together") == 20
