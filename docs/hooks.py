"""Maths as MathML, made when the site is built: no script runs and nothing is fetched to see it."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
BIG = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])")  # MathML stretches brackets by itself


def on_page_content(content: str, **_: Any) -> str:
    """Replace what the arithmatex extension marked."""
    content = INLINE.sub(lambda found: mathml(found[1], "inline"), content)
    return BLOCK.sub(lambda found: mathml(found[1], "block"), content)


def mathml(latex: str, display: str) -> str:
    """MathML of a formula; a formula that cannot be read stops the build."""
    source = BIG.sub("", html.unescape(latex)).strip()
    return convert(" ".join(source.split()), display=display)
