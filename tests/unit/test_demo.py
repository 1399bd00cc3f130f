import pytest

from evenhand.__main__ import main


def test_the_demo_prints_every_arm_and_five_sets(capsys):
    main()
    lines = capsys.readouterr().out.splitlines()
    table = [line.split() for line in lines if "#" in line]
    assert len(table) == 20
    assert sum(float(row[3]) for row in table) == pytest.approx(5, abs=1e-3)
    assert len(lines) == 3 + 20 + 2 + 5
