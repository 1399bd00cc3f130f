"""What a release says of itself agrees, and what is installed is typed for those who use it."""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from evenhand import __version__

ROOT = Path(__file__).parents[2]

PROGRAM = """
import numpy as np

import evenhand
from evenhand.games import shop
from evenhand.learners import EvenHand
from evenhand_client import Client, Row


def apart(seed: int) -> float:
    rng = np.random.default_rng(seed)
    game = shop(12, rng)
    learner = EvenHand(m=12, k=3, names=[f"seller {i}" for i in range(12)], seed=seed)
    batch = learner.ask(limit=10)
    learner.tell(batch, game.pull(batch.orders, batch.sizes, rng))
    due = evenhand.fair_policy(evenhand.kshapley(game, k=3), k=3)
    return float(np.abs(learner.marginals - due).sum())


def shown(client: Client) -> list[str]:
    row: Row = client.experiment("home").ask()
    return list(row.arms)


print(apart(1))
"""
WRONG = (
    "from evenhand.learners import EvenHand\n\nEvenHand(m='twelve', k=3, seed=1).ask().sets().x\n"
)


def test_one_version_everywhere():
    client = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())
    citation = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    released = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    newest = next(name for name in released if name != "Unreleased")
    assert {client["project"]["version"], citation[1], newest} == {__version__}


def test_every_file_of_others_is_in_the_notice():
    notice = (ROOT / "NOTICE").read_text()
    licences = [*ROOT.glob("tests/**/LICENSE*"), *ROOT.glob("docs/fonts/*")]
    assert len(licences) >= 4
    for path in licences:
        assert str(path.relative_to(ROOT)) in notice
    for path in re.findall(r"[\w/.-]+/[\w.-]+\.(?:js|txt|woff2)\b", notice):
        assert (ROOT / path).is_file(), path


@pytest.mark.slow  # builds and installs, from the network
def test_a_program_outside_is_checked_strictly(tmp_path):
    """Wheels in an empty environment: a user's program runs, and mypy sees its types."""
    for source in (ROOT, ROOT / "client"):
        wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, source]
        subprocess.run(wheel, check=True)
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "mypy", *tmp_path.glob("*.whl")]
    subprocess.run(install, check=True)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)

    def run(*command):
        return subprocess.run(
            [python, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    ran = run("program.py")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert 0 < float(ran.stdout) < 6
    assert "no issues found" in run("-m", "mypy", "--strict", "program.py").stdout
    found = run("-m", "mypy", "--strict", "wrong.py").stdout
    assert "[arg-type]" in found
    assert "[attr-defined]" in found
