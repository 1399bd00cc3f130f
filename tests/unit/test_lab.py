"""Experiments, results, figures and the report, at tiny size."""

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks import again
from typer.testing import CliRunner

import evenhand
from evenhand import __version__, cli, fair_policy, kshapley, theory
from evenhand.cli import app
from evenhand.games import synthetic
from evenhand.lab.cells import Cell, run_cell
from evenhand.lab.experiments import parse
from evenhand.lab.figures import draw
from evenhand.lab.games import build_game
from evenhand.lab.learners import KINDS
from evenhand.lab.paper import figures
from evenhand.lab.paper.claims import check
from evenhand.lab.paper.differences import Comparison, Differences, write_differences
from evenhand.lab.paper.experiments import load_preset, preset_names
from evenhand.lab.paper.report import write_report
from evenhand.lab.runner import cluster, local, run_missing
from evenhand.lab.series import mean, series, shares_by_rank, spread
from evenhand.lab.store import SCHEMA, Store
from evenhand.learners import Learner
from evenhand.randomness.streams import stream

TINY = """
name = "tiny"
title = "a tiny experiment"
replications = 3
horizons = [600, "1e3"]

[[learner]]
label = "fair"
kind = "iw-ksvfair"
eta = 0.5

[[learner]]
kind = "urs"

[[panel]]
title = "small"
k = 2
game = { kind = "synthetic", m = 5 }
"""


@pytest.fixture(scope="module")
def tiny():
    return parse(TINY, "tiny.toml")


@pytest.fixture(scope="module")
def tiny_results(tiny, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("tiny"))
    run_missing(tiny.all_cells(), store, local(1))
    return store


def equal_but_for_timing(one, other):
    drop = ["seconds", "machine", "versions"]
    return one.drop(drop).equals(other.drop(drop))


def test_presets_share_cells():
    names = "both-ways both-ways-cuda evenhand fig1 fig2 fig4 fig5 fig6 fig7 fig8 lower-bound"
    drift = "drift-changes drift-facebook drift-smooth drift-stand-in drift-still roster"
    names = sorted([*names.split(), *drift.split(), "full-pages", "rare-rewards", "timing"])
    assert preset_names() == names
    fig1, fig7 = (load_preset(n) for n in ("fig1", "fig7"))
    assert {c.id for c in fig7.all_cells()} < {c.id for c in fig1.all_cells()}
    assert fig1.horizons == [round(10 ** (4 + i / 2)) for i in range(9)]
    assert len(fig1.all_cells()) == 9 * 9 * 10
    horizons = {h for n in names for h in load_preset(n).horizons}
    assert max(horizons) == 10**8


@pytest.mark.parametrize(
    "name",
    [
        *"fig1 fig2 fig4 fig5 fig6 fig7 both-ways both-ways-cuda lower-bound timing".split(),
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in "evenhand full-pages rare-rewards".split()
        ),
    ],
)
def test_presets_run_and_are_drawn_at_tiny_size(name, tmp_path):
    """Every line of every preset, at a horizon its constants still allow."""
    preset = load_preset(name)
    panels = []
    for panel in preset.panels:
        game = dict(panel.game)
        if game["kind"] in ("facebook", "facebook-cuda"):
            game |= {"kind": "facebook-stand-in", "reference_sets": 20_000}
        elif game["kind"] == "stand-in-cut":
            game |= {"reference_sets": 20_000}
        panels.append(dataclasses.replace(panel, game=game))
    small = dataclasses.replace(
        preset, panels=panels, horizons=[10_000 if name == "fig6" else 2000], replications=1
    )
    store = Store(tmp_path)
    run_missing(small.all_cells(), store, local(1))
    results = store.read()
    assert len(results) == len(small.all_cells())
    assert np.isfinite(results["regret"].to_numpy()).all()
    figure = draw(small, results, figures.KINDS)
    figure.savefig(tmp_path / "figure.png", dpi=50)  # quick
    assert (tmp_path / "figure.png").stat().st_size > 5000
    claims = check([small], results)
    assert len(claims) == CLAIMS[name]
    longer = dataclasses.replace(small, horizons=[*small.horizons, 10**6])
    assert len(check([longer], results)) == CLAIMS[name]  # with horizons still to come
    for claim in claims:
        assert claim.where == name
        assert "nan" not in claim.measured


CLAIMS = {
    "fig1": 15,
    "fig2": 14,
    "fig4": 6,
    "fig5": 7,
    "fig6": 2,
    "fig7": 6,
    "both-ways": 0,
    "evenhand": 0,
}
CLAIMS |= {
    "full-pages": 0,
    "rare-rewards": 0,
    "both-ways-cuda": 0,
    "evenhand": 0,
    "lower-bound": 0,
    "timing": 5,
}


def test_claims_are_read_off_the_results(tmp_path):
    """Hand-made results in which every outcome is known."""
    preset = dataclasses.replace(load_preset("fig1"), horizons=[10**4, 10**5], replications=2)
    regret = {"IW-KSVFair": 10, "IW-KSVFair (approx)": 11, "MURaS": 20, "NoIW": 9, "NoMix": 12}
    store = Store(tmp_path)
    for line in preset.panels[0].lines:
        for cell in preset.cells(preset.panels[0], line):
            record = dict.fromkeys(SCHEMA.keys() - {"game", "learner", "key", "id"})
            late = cell.horizon == 10**5
            record |= {"regret": regret.get(line.label, 100) * (5.0 if late else 1.0)}
            record |= {"alignment": 0.99 if line.label in regret else 0.5, "largest_due": 0.7}
            for name in ("k", "horizon", "replication", "seed", "machine", "versions"):
                record.pop(name)
            store.write(cell, record)
    claims = {c.paper: c for c in check([preset], store.read())}
    lowest = claims["IW-KSVFair has the lowest regret at every horizon"]
    assert not lowest.agrees
    assert lowest.measured == "not at T = 1e+04 (NoIW, 0.82 times), T = 1e+05 (NoIW, 0.82 times)"
    matched = claims["the approximation matches the exact version"]
    assert matched.agrees
    assert "(-9.1%)" in matched.measured
    assert "0.82 times" in claims["without importance weights regret is substantially larger"][2]
    assert not claims["without mixing regret is substantially larger"].agrees
    assert claims["MURaS has substantially larger regret"].agrees
    assert not claims["NoIW has lower alignment"].agrees
    assert claims["URS has lower alignment"].agrees
    assert claims["proportional marginals are at most 1"].agrees
    assert not any("nan" in c.measured for c in claims.values())


def test_a_cell_is_named_by_all_that_determines_it():
    cell = Cell({"kind": "synthetic", "m": 5}, 2, {"kind": "urs"}, 100, 1, 1)
    same = Cell({"m": 5, "kind": "synthetic"}, 2, {"kind": "urs"}, 100, 1, 1)
    assert cell.id == same.id
    other = {"learner": {"kind": "etcg"}}
    changes = ({"k": 3}, {"horizon": 101}, {"replication": 2}, {"seed": 2}, {"late": 1}, other)
    for change in changes:
        assert dataclasses.replace(cell, **change).id != cell.id


def test_a_record_holds_what_the_simulation_gave():
    cell = Cell({"kind": "synthetic", "m": 20}, 15, {"kind": "urs"}, 1000, 3, 1)
    record = run_cell(cell)
    merit = kshapley(synthetic(20, stream(1, 3, "instance")), 15)
    due = 15 * merit / merit.sum()
    assert record["largest_due"] == pytest.approx(due.max())
    assert due.max() > 1  # the paper's check fails at K = 15
    assert record["regret"] == pytest.approx(1000 * np.abs(15 / 20 - fair_policy(merit, 15)).sum())
    assert record["regret_uncapped"] == pytest.approx(1000 * np.abs(15 / 20 - due).sum())
    again = run_cell(cell)
    assert record | {"seconds": 0.0} == again | {"seconds": 0.0, "reward": record["reward"]}


def test_finished_cells_are_skipped_and_results_are_the_same_for_any_workers(
    tiny, tiny_results, tmp_path
):
    cells = tiny.all_cells()
    assert run_missing(cells, tiny_results, local(1)) == 0
    other = Store(tmp_path)
    assert run_missing(cells, other, local(2)) == len(cells)
    assert equal_but_for_timing(other.read(cells), tiny_results.read(cells))


def test_a_killed_run_resumes_to_the_results_of_one_that_was_not(tiny, tiny_results, tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    folder = tmp_path / "results"
    command = [sys.executable, "-c", "from evenhand.cli import entry; entry()", "run"]
    command += [str(tmp_path / "tiny.toml"), "--results", str(folder), "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + 120
    while not list(folder.glob("cells/*.parquet")) and time.time() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    part = Store(folder).read()
    assert 1 <= len(part) <= len(tiny.all_cells())
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert equal_but_for_timing(Store(folder).read(), tiny_results.read(tiny.all_cells()))


def test_bad_files_are_named_and_set_aside(tiny, tiny_results, tmp_path, caplog):
    folder = tmp_path / "copy"
    shutil.copytree(tiny_results.folder, folder)
    broken, foreign, swapped = sorted((folder / "cells").glob("*.parquet"))[:3]
    broken.write_bytes(b"PAR1 not a parquet file")
    pl.DataFrame({"a": [1]}).write_parquet(foreign)
    shutil.copy(sorted((folder / "cells").glob("*.parquet"))[4], swapped)
    store = Store(folder)
    cells = tiny.all_cells()
    assert len(store.read(cells)) == len(cells) - 3
    for path, message in zip((broken, foreign, swapped), caplog.messages, strict=True):
        assert str(path) in message
        assert (folder / "aside" / path.name).is_file()
    assert run_missing(cells, store, local(1)) == 3
    assert equal_but_for_timing(store.read(cells), tiny_results.read(cells))


def test_the_report_names_a_file_it_cannot_use(tiny_results, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(tiny_results.folder, folder)
    (tmp_path / "tiny.toml").write_text(TINY)
    broken = next((folder / "cells").glob("*.parquet"))
    broken.write_bytes(b"PAR1 not a parquet file")
    command = [sys.executable, "-m", "evenhand", "report", str(folder), str(tmp_path / "tiny.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.startswith(f"{broken} cannot be used (")
    assert done.stderr.strip().endswith(f"moved to {folder / 'aside' / broken.name}")


def test_packed_results_read_like_the_cells(tiny, tiny_results, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(tiny_results.folder, folder)
    store = Store(folder)
    path = store.pack("tiny", tiny.all_cells())
    shutil.rmtree(folder / "cells")
    assert Store(folder).read().equals(tiny_results.read())
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    assert len(pandas.read_parquet(path)) == len(tiny.all_cells())


DEADLY = """
import os
from pathlib import Path

import numpy as np

from evenhand.games import NoisyOr


def deadly(marks, deaths):
    for i in range(deaths):
        try:
            (Path(marks) / str(i)).touch(exist_ok=False)
        except FileExistsError:
            continue
        os._exit(1)
    return NoisyOr(np.linspace(0.1, 0.9, 5))
"""


@contextmanager
def two_processes():
    """A Dask cluster; gives the address of its scheduler."""
    distributed = pytest.importorskip("dask.distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", processes=True
    ) as found:
        yield found.scheduler_address


def test_a_dask_cluster_gives_the_same_bits(tiny, tiny_results, tmp_path):
    cells, store = tiny.all_cells(), Store(tmp_path)
    with two_processes() as address:
        run_missing(cells, store, cluster(address))
    assert equal_but_for_timing(store.read(cells), tiny_results.read(cells))


@pytest.mark.slow
def test_a_dead_worker_costs_its_cell_only(tiny, tiny_results, tmp_path):
    dask = pytest.importorskip("dask")
    (tmp_path / "deadly.py").write_text(DEADLY)
    kind, cells, deadly = f"{tmp_path / 'deadly.py'}:deadly", tiny.all_cells(), []
    for name, deaths in (("once", 1), ("always", 100)):
        (tmp_path / name).mkdir()
        game = {"kind": kind, "marks": str(tmp_path / name), "deaths": deaths}
        deadly.append(Cell(game, 2, {"kind": "urs"}, 600, 1, 1))
    store = Store(tmp_path / "results")
    said = r"1 cells killed their workers, the first is Cell\(urs on .*always"
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        two_processes() as address,
        pytest.raises(RuntimeError, match=said),
    ):
        run_missing([*cells, *deadly], store, cluster(address))
    assert equal_but_for_timing(store.read(cells), tiny_results.read(cells))
    assert store.finished(deadly) == {deadly[0].id}


def test_kept_cells_are_drawn_from_every_line_and_compared_number_by_number(
    tiny, tiny_results, tmp_path
):
    results = tiny_results.read()
    drawn = again.sample(results, 2, 1000, seed=1)
    assert sorted(drawn["learner"].value_counts()["count"]) == [2, 2]
    assert {cell.id for cell in again.cells_of(drawn)} == set(drawn["id"])
    assert again.same_bits(drawn, drawn.sort("horizon"))
    assert set(again.distances(drawn, drawn).values()) == {0.0}
    off = drawn.with_columns(regret=pl.col("regret") * (1 + 1e-6))
    assert not again.same_bits(drawn, off)
    assert 1e-9 < max(again.distances(off, drawn).values()) <= 1.1e-6
    twice = drawn.with_columns(seconds=2 * pl.col("seconds"))
    long = drawn.with_columns(horizon=pl.lit(10**6))
    before, here = again.core_hours(long, long, twice)
    assert here == pytest.approx(2 * before)


def test_figures_show_the_results(tiny, tiny_results):
    results = tiny_results.read()
    figure = draw(tiny, results)
    (panel,) = tiny.panels
    drawn = {line.get_label(): line for line in figure.axes[0].get_lines()}
    for line in panel.lines:
        values = results.filter(pl.col("learner") == json.dumps(line.config, sort_keys=True))
        expected = values.group_by("horizon").agg(pl.col("regret").mean()).sort("horizon")
        np.testing.assert_array_equal(drawn[line.label].get_xdata(), expected["horizon"])
        np.testing.assert_allclose(drawn[line.label].get_ydata(), expected["regret"], rtol=1e-12)
        one = series(results, tiny, panel, line)
        np.testing.assert_allclose(spread(one.regret), np.std(one.regret, axis=1, ddof=1))
        np.testing.assert_allclose(mean(one.regret), np.mean(one.regret, axis=1))


def test_a_figure_waits_until_every_line_has_a_result(tiny, tiny_results):
    results = tiny_results.read()
    assert draw(tiny, results) is not None
    assert draw(tiny, results.filter(~pl.col("learner").str.contains("urs"))) is None
    assert draw(load_preset("fig1"), results) is None


def test_the_report_is_one_page_that_needs_nothing_else(tiny, tiny_results, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(tiny_results.folder, folder)
    write_differences(folder, updates=20)
    page = write_report(folder, [tiny]).read_text()
    assert "a tiny experiment" in page
    assert "Set probabilities of the enumerated" in page
    assert page.count("<svg") == 2
    assert 'src="http' not in page
    assert 'href="http' not in page
    for name in ("tiny", "fig3"):
        for ending in ("svg", "pdf", "png"):
            assert (folder / "figures" / f"{name}.{ending}").is_file()
    assert write_report(folder, [tiny]).read_text() == page  # to the last id


def test_the_report_opens_in_a_browser(tiny, tiny_results, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium on this machine")
    folder = tmp_path / "copy"
    shutil.copytree(tiny_results.folder, folder)
    page = write_report(folder, [tiny])
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom", page.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "<h1>Report</h1>" in dom
    assert "a tiny experiment" in dom


def test_differences_are_counted_like_numpy_would():
    rng = np.random.default_rng(0)
    one, other = rng.random(1000), rng.random(1000)
    other[:7] = one[:7]
    found = Differences()
    found.add(one, other, 1010)
    record = found.record()
    gaps = np.abs(one - other)
    assert record["n"] == 1010
    assert record["zero"] == 17
    assert sum(record["counts"]) == 993
    assert record["mean"] == pytest.approx(gaps.sum() / 1010)
    assert record["largest"] == gaps.max()
    assert record["median"] == pytest.approx(np.median(gaps[gaps > 0]), rel=0.13)


def test_designs_hardly_differ(tmp_path):
    record = json.loads(write_differences(tmp_path, updates=50).read_text())
    assert record["n"] == 50 * 15504
    assert record["largest"] < 1e-6


def test_a_comparison_that_was_stopped_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.lab.paper.differences.KEPT_EVERY", 8)

    def stop_at_20(updates):
        if updates == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_differences(tmp_path, stop_at_20, updates=30)
    seen = []
    path = write_differences(tmp_path, seen.append, updates=30)
    assert seen == list(range(17, 31))
    whole = Comparison()
    for _ in range(30):
        whole.step()
    assert json.loads(path.read_text()) == whole.found.record()
    assert [p.name for p in tmp_path.iterdir()] == ["differences.json"]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_experiments_on_a_card_are_run_only_by_name(tmp_path):
    assert [n for n in preset_names() if load_preset(n).needs_gpu] == ["both-ways-cuda"]
    assert not parse(TINY.replace('"synthetic", m = 5', '"mine:make-cuda"'), "t").needs_gpu
    cut = ("--max-horizon", 1e4, "--replications", 1, "--results", tmp_path, "--dry-run")
    assert "facebook-cuda" not in invoke("reproduce", *cut).stdout
    assert "8 cells, 0 finished, 8 to run" in invoke("reproduce", "both-ways-cuda", *cut).stdout


def test_the_command_line(tmp_path):
    assert invoke("--version").stdout.strip() == f"evenhand {__version__}"
    cut = ("--max-horizon", 1e4, "--replications", 1, "--results", tmp_path / "none")
    done = invoke("reproduce", "fig1", *cut, "--dry-run")
    assert "9 cells, 0 finished, 9 to run" in done.stdout
    assert len(done.stdout.splitlines()) >= 10
    (tmp_path / "tiny.toml").write_text(TINY)
    folder = tmp_path / "results"
    assert invoke("run", tmp_path / "tiny.toml", "--results", folder, "--workers", 1).exit_code == 0
    table = invoke("results", folder).stdout
    assert "regret" in table
    assert table.count("1e+03") == 2
    assert "1e+03" not in invoke("results", folder, "--max-horizon", 600).stdout
    narrow = invoke("results", folder, "--learner", "eta=0.5", "--game", "m=5").stdout
    assert "iw-ksvfair" in narrow
    assert "urs" not in narrow
    assert "fair" not in invoke("results", folder, "--game", "m=6").stdout
    for command in ("results", "report"):
        refused = invoke(command, tmp_path / "nowhere")
        assert refused.exit_code == 2
        words = refused.output.replace("\u2502", " ").split()  # in a box, wrapped anywhere
        assert "does not exist" in " ".join(words)
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert "`evenhand reproduce` makes" in str(invoke(command, tmp_path / "empty").exception)
    assert "fig3 has no cells" in invoke("reproduce", "fig3", "--dry-run").stdout
    assert invoke("results", folder, "--csv", tmp_path / "out.csv").exit_code == 0
    assert len(pl.read_csv(tmp_path / "out.csv")) == 4


def test_a_missing_package_is_named_with_the_extra_that_brings_it():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for package, extra in cli.EXTRAS.items():
        assert any(one.startswith(package) for one in extras[extra])
        missing = ModuleNotFoundError(f"No module named {package!r}", name=package)
        assert cli._said(missing) == f"this command needs {package}; install evenhand[{extra}]"
    assert cli._said(ValueError("k must be 1")) == "k must be 1"


def test_the_version_is_printed_without_importing_anything_large():
    script = (
        "import sys; sys.argv[1:] = ['--version']\n"
        "from evenhand.__main__ import entry\n"
        "try:\n    entry()\nfinally:\n    print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    version, modules = done.stdout.splitlines()
    assert version == f"evenhand {__version__}"
    assert not {"numpy", "numba", "scipy", "polars"} & set(modules.split())


def test_the_package_has_what_it_names_and_nothing_else():
    for name in evenhand.__all__:
        assert name in dir(evenhand)
        assert getattr(evenhand, name) is getattr(evenhand, name)
    with pytest.raises(AttributeError, match="no attribute 'shapley'"):
        evenhand.shapley  # noqa: B018


def test_benchmarks_need_a_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "lib" / "evenhand" / "cli.py"))
    done = invoke("bench")
    assert isinstance(done.exception, FileNotFoundError)
    assert "clone the source" in str(done.exception)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()  # before any other of that name
    (tmp_path / "benchmarks" / "__main__.py").write_text("import sys; sys.exit(len(sys.argv))")
    assert invoke("bench", "designs", "merits").exit_code == 3


def test_a_game_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "mygame.py").write_text(
        "from evenhand.games import additive, Bernoulli\n"
        "def make(top=0.3):\n    return additive([0.1, 0.2, top], noise=Bernoulli())\n"
    )
    monkeypatch.chdir(tmp_path)
    text = TINY.replace('{ kind = "synthetic", m = 5 }', '{ kind = "mygame:make", top = 0.25 }')
    (tmp_path / "own.toml").write_text(text)
    done = invoke("run", "own.toml", "--workers", 1)
    assert done.exit_code == 0, done.output
    merits = Store(tmp_path / "results").read()["merit"].to_list()
    np.testing.assert_allclose(merits[0], [0.1, 0.2, 0.25])
    for wrong, message in [
        ("mygame", "module:function"),
        ("mygame:nobody", "none called 'nobody'"),
    ]:
        done = invoke("merit", wrong, 2)
        assert isinstance(done.exception, ValueError)
        assert message in str(done.exception)
    for name in ("mygame:make", "mygame.py:make"):
        table = invoke("merit", name, 2).stdout
        assert "0.300000" in table


def test_merits_are_printed_by_name_where_a_game_has_names(tmp_path, monkeypatch):
    (tmp_path / "named.py").write_text(
        "from evenhand.games import additive\n"
        "def make():\n    game = additive([0.3, -0.1])\n    game.names = ['ada', 'barnaby']\n"
        "    return game\n"
    )
    monkeypatch.chdir(tmp_path)
    done = invoke("merit", "named:make", 1)
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.stdout.splitlines()[:3]] == ["arm", "ada", "barnaby"]
    assert "negative merits count as 0 in the policy: barnaby" in done.output


def test_a_negative_merit_is_printed_and_counts_as_nothing(tmp_path, monkeypatch):
    (tmp_path / "harmful.py").write_text(
        "from evenhand.games import Carrier\n"
        "def make():\n    return Carrier([[0], [1], [0, 1]], [0.1, 0.6, -0.5], m=3)\n"
    )
    monkeypatch.chdir(tmp_path)
    done = invoke("merit", "harmful:make", 2)
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines()[1:4]]
    assert [row[1] for row in rows] == ["-0.025000", "0.475000", "0.000000"]
    assert [float(row[3]) for row in rows] == [0.5, 1.0, 0.5]
    assert "negative merits count as 0 in the policy: 0\n" in done.output
    game = '{ kind = "harmful:make" }'
    text = TINY.replace('{ kind = "synthetic", m = 5 }', game)
    experiment = parse(text, "harmful.toml")
    (cell, *_) = experiment.all_cells()
    record = run_cell(cell)
    assert record["merit"] == pytest.approx([-0.025, 0.475, 0.0])
    assert record["largest_due"] == pytest.approx(2.0)  # the second is due all
    kept = {"id": cell.id, "replication": 1, "horizon": cell.horizon}
    kept |= {name: record[name] for name in ("merit", "selections")}
    (panel, *_), (line, *_) = experiment.panels, experiment.panels[0].lines
    merit, _ = shares_by_rank(pl.DataFrame([kept]), experiment, panel, line)
    assert merit == pytest.approx([1.0, 0.0, 0.0])


def test_a_game_of_ones_own_may_ask_for_what_the_cell_is(tmp_path, monkeypatch):
    (tmp_path / "asking.py").write_text(
        "from evenhand.games import random_additive\n"
        "def make(m, rng, k, seed=5, horizon=None):\n"
        "    assert (k, seed, horizon) == (2, 5, None)  # what has a default is left alone\n"
        "    return random_additive(m, k, rng)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own = build_game({"kind": "asking:make", "m": 6}, 2, horizon=9, replication=3, seed=1)
    named = build_game({"kind": "random-additive", "m": 6}, 2, horizon=9, replication=3, seed=1)
    family = {"kind": "drawn", "family": "additive", "m": 6}
    np.testing.assert_array_equal(own.known.merit, named.known.merit)
    drawn = [build_game(family, 2, replication=r, seed=1).known.merit for r in (3, 4)]
    np.testing.assert_array_equal(own.known.merit, drawn[0])
    assert not np.array_equal(own.known.merit, drawn[1])
    with pytest.raises(ValueError, match=r"family must be one of .*, got 'addit'"):
        build_game(family | {"family": "addit"}, 2)


def test_a_learner_says_what_the_lab_must_know():
    own = {found for name, found in Learner.kinds.items() if ":" not in name}
    oracles = {name: kind for name, kind in KINDS.items() if kind.knows_world}
    assert sorted(oracles) == ["knowing", "restarted"]
    assert not any(kind.options for kind in oracles.values())
    others = {name: kind for name, kind in KINDS.items() if name not in oracles}
    assert {kind.learner for kind in others.values()} == own
    assert all(KINDS[found.name].learner is found for found in own)
    weighted = {"gamma", "eta", "floor", "growth", "weights"}
    units = {"rewards", "empty"}
    assert all(units <= kind.options for kind in others.values())
    options = {name: kind.options - units for name, kind in others.items()}
    assert options == {
        "even-hand": {"full", "sizes", "prior", "terms", "watch"},
        "even-hand-unwatched": {"full", "sizes", "prior", "terms"},
        "full-sets": {"terms"},
        "iw-ksvfair": weighted,
        "iw-ksvfair-exact": weighted,
        "no-mix": {"floor", "growth", "weights"},
        "no-iw": weighted - {"weights"},
        "muras": {"lam", "shuffled"},
        "urs": set(),
        "etcg": set(),
        "gap-e": {"c", "growth"},
        "fair-cmab": {"quotas"},
    }
    endless = {name for name, kind in others.items() if not kind.needs_horizon}
    assert endless == {"even-hand", "even-hand-unwatched", "full-sets", "urs"}


def test_what_one_holds_can_be_read(tiny, tiny_results):
    assert repr(tiny) == (
        "Experiment('tiny': 1 panels, 2 lines, horizons 600 to 1e+03, 3 replications, 12 cells)"
    )
    assert repr(tiny.all_cells()[0]) == (
        "Cell(iw-ksvfair eta=0.5 on synthetic m=5, k=2, horizon=600, replication=1, seed=1)"
    )
    assert repr(tiny_results) == f"Store('{tiny_results.folder}': 0 packed files, 12 single cells)"
    page = dataclasses.replace(tiny, name="a<b")._repr_html_()
    assert page.count("<tr>") == 3
    assert "a&lt;b" in page
    assert "and 4 more" in load_preset("evenhand")._repr_html_()


def test_an_experiment_of_ones_own_is_reported(tiny_results, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(tiny_results.folder, folder)
    (tmp_path / "tiny.toml").write_text(TINY)
    done = invoke("report", folder, tmp_path / "tiny.toml")
    assert done.exit_code == 0, done.output
    page = (folder / "report.html").read_text()
    assert "a tiny experiment" in page
    assert "What the paper says" not in page
    (tmp_path / "tiny.toml").write_text('figure = "pannels"\n' + TINY)
    wrong = invoke("report", folder, tmp_path / "tiny.toml")
    assert "tiny: unknown figure 'pannels'; did you mean 'panels'?" in str(wrong.exception)


def test_what_cannot_be_done_is_said_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(TINY)
    for option in ("--workers", "--replications"):
        refused = invoke("run", "tiny.toml", option, 0)
        assert refused.exit_code == 2
        assert option in refused.output
    Path("file").write_text("in the way")
    monkeypatch.setattr("evenhand.lab.runner.run_missing", lambda *_: pytest.fail("it ran"))
    for folder in ("file", "file/results"):
        done = invoke("run", "tiny.toml", "--results", folder)
        assert isinstance(done.exception, OSError)
        message = f"--results must be a folder that can be written, got {folder}: "
        assert str(done.exception).startswith(message)
        fig3 = invoke("reproduce", "fig3", "--results", folder)
        assert str(fig3.exception).startswith(message)
    for wrong in ("nobody:make", "nobody.py:make"):
        done = invoke("merit", wrong, 2)
        assert "is there a nobody.py in the current folder?" in str(done.exception)
    done = invoke("run", "tiny.toml", "--max-horizon", 10)
    assert "--max-horizon must be at least 600 for tiny, got 10" in str(done.exception)
    done = invoke("results", tmp_path, "--csv", tmp_path / "none" / "out.csv")
    assert f"folder {tmp_path / 'none'} does not exist; make it first" in str(done.exception)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("replications", "replicatons"), "unknown key 'replicatons'; did you mean 'replications'"),
        (('kind = "urs"', 'kind = "usr"'), "unknown learner 'usr'; did you mean 'urs'"),
        (("eta = 0.5", "etta = 0.5"), "unknown key 'etta'; did you mean 'eta'"),
        (('"synthetic"', '"sintetic"'), "unknown game 'sintetic'; did you mean 'synthetic'"),
        (("m = 5 }", "n = 5 }"), "unknown key 'n'"),
        (("k = 2", ""), "'k' is missing"),
        (("horizons", "#"), "'horizons' is missing"),
        (('"1e3"', '"soon"'), "horizons must be like 10000 or \"1e4.5\", got 'soon'"),
        (("[[panel]]", "[[panel"), "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_nearest_right_word(change, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        parse(TINY.replace(*change), "tiny.toml")


def test_errors_stand_on_one_line_unless_debugging():
    script = (
        "import sys\n"
        "from evenhand.cli import entry\n"
        "try:\n    entry()\nexcept SystemExit as end:\n    assert end.code == 1\n"
        "sys.argv.insert(1, '--debug')\n"
        "print('once more', file=sys.stderr)\n"
        "entry()"
    )
    command = [sys.executable, "-c", script, "reproduce", "fg1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said, debugging = done.stderr.split("once more\n")
    assert said.strip() == "error: unknown experiment 'fg1'; did you mean 'fig1'?"
    assert "Traceback" in debugging


def test_the_lower_bound_uses_a_new_pair_for_every_horizon():
    for horizon in (10**4, 10**6):
        cell = Cell({"kind": "hard-pair", "m": 4, "instance": 1}, 2, {"kind": "urs"}, horizon, 1, 1)
        rho = theory.hard_gap(4, 2, horizon) / (2 * 3)
        assert run_cell(cell)["merit"][1] == pytest.approx((1 / 3) / 8 + rho)


def test_the_graph_file_is_not_in_the_package():
    package = Path(__file__).parents[2] / "src"
    assert not list(package.rglob("*.edges"))
    assert not list(package.rglob("facebook_combined*"))
