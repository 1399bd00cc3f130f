"""Check that every link of the built site leads somewhere: ``python docs/check_links.py site``.

Links and anchors inside the site are followed; nothing may be loaded from elsewhere.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links out of a page, things it loads, and anchors in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {"", "__codelineno"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to, loads or names."""
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "src" in given:
            self.loads.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon"):
            self.loads.append(given["href"])


def broken(site: Path) -> list[str]:
    """Everything that leads nowhere, one line each."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        shown = path.relative_to(site.resolve())
        for load in page.loads:
            if urlsplit(load).scheme in ("http", "https"):
                found.append(f"{shown}: loads {load} from elsewhere")
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or shown.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{shown}: {link} does not exist")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                if not parts.fragment.startswith("__codelineno"):
                    found.append(f"{shown}: {link} has no such anchor")
    return found


if __name__ == "__main__":
    problems = broken(Path(sys.argv[1]))
    print("\n".join(problems) or "all links lead somewhere")
    sys.exit(bool(problems))
