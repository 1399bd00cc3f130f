"""Templates to pages. All values are escaped where they are put in."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evenhand.pages import words

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@cache
def environment() -> Environment:
    """Return where templates are found, with the filters they use."""
    made = Environment(
        loader=PackageLoader("evenhand.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("percent", "number", "moment", "machine_moment", "span", "rate"):
        made.filters[name] = getattr(words, name)
    made.globals |= {"static": static_url, "inlined": inlined}
    return made


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return environment().get_template(template).render(values)


@cache
def static_files() -> dict[str, bytes]:
    """All files that pages ask for, by name."""
    folder = files("evenhand.pages").joinpath("static")
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@cache
def static_url(name: str) -> str:
    """Return where the service has a file; another content has another address."""
    return f"/static/{hashlib.sha256(static_files()[name]).hexdigest()[:12]}/{name}"


@cache
def inlined(name: str) -> Markup:
    """Return a file to be put into a page that stands alone. It is ours: nothing to escape."""
    return Markup(static_files()[name].decode())
