"""What the README prints runs as printed."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_runs_and_is_short(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= 15
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert float(printed.split()[-1]) < 0.01


def test_the_commands_stand_at_the_top():
    top = (ROOT / "README.md").read_text().split("```")[1]
    targets = re.findall(r"^make (\w+)", top, re.MULTILINE)
    assert targets == ["test", "demo"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
