"""Parts of compiled functions have no way in from Python: a call from there would crash."""

import ast
from pathlib import Path

import pytest

import evenhand

SOURCES = sorted(Path(evenhand.__file__).parent.rglob("*.py"))

PIECE = """
@part
def piece(x):
    return x
@compiled
def good():
    return piece(1)
"""


def decorated(node, names):
    return any(isinstance(x, ast.Name) and x.id in names for x in node.decorator_list)


def parts_of(trees):
    """Names of all parts."""
    functions = (n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    return {f.name for f in functions if decorated(f, ("part",))}


def calls_from_python(tree, parts):
    """Parts that are called outside of compiled functions."""
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and decorated(node, ("part", "compiled")):
            continue
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in parts:
            found.add(node.func.id)
        found |= calls_from_python(node, parts)
    return found


def test_only_compiled_functions_call_parts():
    texts = [source.read_text() for source in SOURCES]
    parts = parts_of(ast.parse(text) for text in texts if "@part" in text)
    assert len(parts) > 5
    callers = [text for text in texts if any(f"{part}(" in text for part in parts)]
    assert [calls_from_python(ast.parse(text), parts) for text in callers] == [set()] * len(callers)


@pytest.mark.parametrize("caller", ["x = piece(1)", "def f():\n    return [piece(i) for i in x]"])
def test_a_call_from_python_is_found(caller):
    tree = ast.parse(PIECE + caller)
    assert calls_from_python(tree, parts_of([tree])) == {"piece"}
