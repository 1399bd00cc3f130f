"""Docstrings are written for any reader of numpydoc; this puts their roles into Markdown."""

import re
from pathlib import Path
from typing import Any

import griffe

MATH_BLOCK = re.compile(r"^( *)\.\. math:: (.*(?:\n\1 +\S.*)*)", re.MULTILINE)
MATH = re.compile(r":math:`(.+?)`", re.DOTALL)
SOURCE = Path(__file__).parents[1] / "src"
ROLE = re.compile(r":(func|class|meth|mod|attr):`(~?)([\w.]+)`")
# what a function returns, described without a type: the signature has it
RETURNS = re.compile(r"^( *Returns\n *-+\n)(?!.*\n +\S)((?:.*\S.*\n?)+)", re.MULTILINE)


def to_markdown(text: str) -> str:
    """Maths and cross references of a docstring as Markdown."""
    text = MATH_BLOCK.sub(lambda found: f"{found[1]}$$ {_one_line(found[2])} $$", text)
    text = MATH.sub(lambda found: f"\\({_one_line(found[1])}\\)", text)
    text = ROLE.sub(_reference, text)
    return RETURNS.sub(lambda found: f"{found[1]}:\n    {_one_line(found[2])}\n", text)


def _one_line(latex: str) -> str:
    return " ".join(latex.split())


def _reference(found: re.Match[str]) -> str:
    """A link where the full path is given and has a place on a page, else only the name."""
    role, short, path = found.groups()
    name = path.rpartition(".")[2]
    shown = name if short else path
    if not path.startswith("evenhand.") or (role == "mod" and path.count(".") > 1):
        return f"`{shown}`"
    if role != "mod" and (SOURCE / path.replace(".", "/")).with_suffix(".py").exists():
        path += f".{name}"  # a function with the name of its module
    return f"[`{shown}`][{path}]"


class Roles(griffe.Extension):
    """Rewrites every docstring as it is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
