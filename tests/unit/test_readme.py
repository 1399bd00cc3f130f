"""What the README and the documentation print runs as printed."""

import re
from pathlib import Path

import pytest
from docs.figures.draw import FIGURES

from evenhand.lab.experiments import load_file
from evenhand.learners import Learner

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def pages_with(language):
    found = [page for page in PAGES[1:] if blocks(page, language)]
    assert found
    return pytest.mark.parametrize(
        "page", found, ids=[str(page.relative_to(ROOT)) for page in found]
    )


def test_the_examples_of_the_readme_run_alone_and_are_short(capsys):
    for code in blocks(README, "python"):
        assert len([line for line in code.splitlines() if line.strip()]) <= 15
        exec(compile(code, "README.md", "exec"), {})
    assert float(re.search(r"due: ([\d.]+)%", capsys.readouterr().out)[1]) < 8.0


@pages_with("python")
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # a learner that a page makes is not one of ours to the tests that follow
    monkeypatch.setattr(Learner, "kinds", dict(Learner.kinds))
    names = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)


@pages_with("toml")
def test_the_experiments_of_a_page_can_be_read(page, tmp_path):
    for i, text in enumerate(blocks(page, "toml")):
        path = tmp_path / f"{i}.toml"
        path.write_text(text)
        assert load_file(path).all_cells()


def test_the_commands_stand_at_the_top():
    targets = re.findall(r"^make (\w+)", README.read_text().split("```")[1], re.MULTILINE)
    assert targets == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_every_picture_is_there_and_is_drawn_by_the_script():
    shown = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
    }
    assert shown == set((ROOT / "docs" / "img").iterdir())
    assert {path.stem for path in shown} == set(FIGURES)
