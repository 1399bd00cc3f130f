"""The examples run, are short, and show what they say they show."""

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"


def numbers(text, pattern):
    found = re.findall(pattern, text)
    assert found, f"no {pattern!r} in:\n{text}"
    return [tuple(map(float, one)) if isinstance(one, tuple) else float(one) for one in found]


def own_game(out):
    assert out.index("Eli") < out.index("Ada") < out.index("Ben")
    shares = numbers(out, r"due in (\d+)%")
    assert max(shares) == 100  # one is capped
    assert sum(shares) == pytest.approx(300, abs=3)


def federated_clients(out):
    rows = numbers(out, r"(\d+)\s+(\d+)\s+(\d+)%\s+([\d.]+)%\s+([\d.]+)%")
    assert len(rows) == 20
    assert all(abs(due - got) < 2.5 for *_, due, got in rows)
    ((due, got),) = numbers(out, r"five: due ([\d.]+)%, given ([\d.]+)%")
    assert got < 12  # a quarter of the clients
    assert due < got


def homepage_slate(out):
    rows = numbers(out, r"\w+\s+(\d+)\s+([\d.]+)%\s+([\d.]+)%\s+([\d.]+)%")
    assert all(abs(due - got) < 0.5 for _, due, got, _ in rows)
    assert abs(rows[0][3] - rows[0][1]) > 0.5  # click rates alone favour the crowded genre
    assert numbers(out, r"merit: ([\d.]+)")[0] > 0.95


def seed_users(out):
    assert "Valjean" in out.splitlines()[1]
    assert numbers(out, r"merit: ([\d.]+)")[0] > 0.8


def production_loop(out):
    assert "the same bits: True" in out
    assert re.findall(r"(\d) receipts", out) == ["3", "3", "0"]


def service_clients(out):
    ((noted, counted),) = numbers(
        out, r"(\d+) clicks acknowledged[^:]*: \d+ entries replayed, (\d+) rewards"
    )
    assert 0 < noted <= counted
    assert "all holds" in out


def data_values(out):
    order = [int(i) for i in re.findall(r"hospital (\d)", out)]
    assert set(order[-3:]) == {7, 8, 9}  # those who mix up labels
    ours, theirs = numbers(out, r"mean error ([\d.]+)")
    assert ours < theirs


def season(out):
    rows = numbers(out, r"(?:due|given) +" + r" +".join([r"([\d.]+)%"] * 9))
    assert len(rows) == 8
    for due, got in zip(rows[::2], rows[1::2], strict=True):
        assert all(abs(a - b) < 6 for a, b in zip(due, got, strict=True))
    assert rows[1][-1] == rows[7][5] == 0  # before the nuts join, after the tea has left
    ((first, even),) = numbers(out, r"at first: ([\d.]+)%, an even share is ([\d.]+)%")
    assert first == pytest.approx(even, rel=0.2)
    assert numbers(out, r"in any query: ([\d.]+)%") == [5.0]
    assert numbers(out, r"due: ([\d.]+)% of all places")[0] < 10
    (half_life,) = numbers(out, r"half after ([\d.]+) visitors")
    assert 200 < half_life < 20_000  # a year is 60 000


SHOWN = {f.__name__: f for f in (own_game, federated_clients, homepage_slate, seed_users)}
SHOWN |= {f.__name__: f for f in (production_loop, data_values, season, service_clients)}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_shows_something(path, capfd, monkeypatch):
    assert len(path.read_text().splitlines()) <= 80
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    SHOWN[path.stem](capfd.readouterr().out)
