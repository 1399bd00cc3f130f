"""A visit of a page: who came, what for, and how the answer is drawn."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from evenhand import __version__
from evenhand.pages.render import render
from evenhand.service.requests import Answer
from evenhand.service.sessions import Session
from evenhand.service.worker import View, Worker

HTML = "text/html; charset=utf-8"


@dataclass(slots=True)
class Visit:
    """A request for a page."""

    worker: Worker
    session: Session
    named: list[str]  # names in the path
    asked: dict[str, str]  # behind the ?
    form: dict[str, str]
    headers: list[tuple[bytes, bytes]]
    safe: bool  # came by TLS
    path: str

    @property
    def view(self) -> View:
        """The experiment of the path."""
        return self.worker.view(self.named[0])

    @property
    def may_change(self) -> bool:
        """Whether the key may do more than look."""
        return self.session.key is not None and "admin" in self.session.key.scopes

    def asked_again(self, **other: Any) -> str:
        """Return the query of this page with other values; None drops one."""
        values = {name: x for name, x in (self.asked | other).items() if x not in (None, "")}
        return urlencode(values)

    def whole(self, name: str, default: int, most: int = 2**53) -> int:
        """Return a whole number of the query, in [1, most]."""
        said = self.asked.get(name, "")
        good = said.isascii() and said.isdigit() and len(said) < 17
        return min(max(int(said), 1), most) if good else default

    def page(self, template: str, **values: Any) -> Answer:
        """Draw a template."""
        return Answer(render(template, **shown(self.session), **values).encode(), 200, HTML)


def shown(session: Session) -> dict[str, Any]:
    """Return what every page shows."""
    user = None
    if session.key is not None:
        key = session.key
        sees_all = "admin" in key.scopes and key.experiment is None
        user = {"name": key.name, "csrf": session.csrf, "sees_all": sees_all}
    return {"user": user, "version": f"Evenhand {__version__}", "alone": False}


def see_other(path: str) -> Answer:
    """Send the browser elsewhere."""
    return Answer(b"", 303, HTML, [(b"location", path.encode())])
