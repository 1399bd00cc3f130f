"""What is done when the site is built: maths becomes MathML, the benchmarks' figure comes along.

No script runs and nothing is fetched to see a formula.
"""

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

GROWTH = Path("benchmarks", "figures", "growth.svg")

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
THIN = '<mspace width="0.17em"/>'
BEFORE = re.compile(r"(</m[a-z]+>)(?=(?:<msub>)?<mi>(?:log|exp)</mi>)")
ALONE = r"(?<!<msub>)(?<!<msup>)<mi>(?:log|exp)</mi>"  # an index must stay the second of its pair
INDEXED = r"<msub><mi>log</mi><m[in]>\w+</m[in]></msub>"
AFTER = re.compile(rf"({INDEXED}|{ALONE})(?=<m(?:i|frac|sqrt|under|sub|sup))")
BIG = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])")  # MathML stretches brackets by itself


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the figure that the page of results, included in the page on speed, links to."""
    root = Path(config.config_file_path).parent
    files.append(File.generated(config, "figures/growth.svg", abs_src_path=str(root / GROWTH)))
    return files


def on_page_content(content: str, **_: Any) -> str:
    """Replace what the arithmatex extension marked."""
    content = INLINE.sub(lambda found: mathml(found[1], "inline"), content)
    return BLOCK.sub(lambda found: mathml(found[1], "block"), content)


def mathml(latex: str, display: str) -> str:
    """MathML of a formula; a formula that cannot be read stops the build."""
    source = BIG.sub("", html.unescape(latex)).strip()
    return spaced(convert(" ".join(source.split()), display=display))


def spaced(markup: str) -> str:
    """Set functions apart from what they stand beside, as TeX does."""
    markup = BEFORE.sub(lambda at: at[1] if at[1] == "</mo>" else at[1] + THIN, markup)
    return AFTER.sub(lambda at: at[1] + THIN, markup)
