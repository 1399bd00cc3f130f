"""What the README prints runs as printed."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_examples_run_and_are_short(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for code in blocks:
        assert len([line for line in code.splitlines() if line.strip()]) <= 15
        exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[-1]) < 0.1


def test_the_commands_stand_at_the_top():
    targets = re.findall(r"^make (\w+)", README.split("```")[1], re.MULTILINE)
    assert targets == ["test", "demo"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
