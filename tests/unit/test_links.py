"""The checker of the documentation's links sees what is broken."""

import re
from pathlib import Path

from docs.check_links import broken


def test_a_site_whose_links_lead_somewhere(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="top"></h1><a href="b.html#x">b</a><a href="#top">')
    (tmp_path / "b.html").write_text(
        '<p id="x"><a href="https://example.org">out</a><img src="i.svg">'
    )
    (tmp_path / "i.svg").write_text("")
    assert broken(tmp_path) == []


def test_broken_links_anchors_and_foreign_scripts_are_named(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="gone.html">1</a><a href="b.html#gone">2</a><img src="no.svg">'
        '<script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text("<p>")
    assert broken(tmp_path) == [
        "a.html: loads https://example.org/x.js from elsewhere",
        "a.html: gone.html does not exist",
        "a.html: b.html#gone has no such anchor",
        "a.html: no.svg does not exist",
    ]


def test_includes_are_written_as_the_site_reads_them():
    """A formatter that takes them for Python spoils them; the site then shows the line itself."""
    root = Path(__file__).parents[2]
    lines = [line for page in root.glob("docs/*.md") for line in page.read_text().splitlines()]
    includes = [line for line in lines if line.strip().startswith("--8")]
    assert len(includes) >= 6
    for line in includes:
        path = re.fullmatch(r' *--8<-- "([^:"]+)(?::\d*:\d*|:([a-z]+))?"', line)
        assert path, line
        assert (root / path[1]).is_file()
        assert not path[2] or f"--8<-- [start:{path[2]}]" in (root / path[1]).read_text()
