"""Pictures of runs: exposure, regret, convergence, what happened in a world that changes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from evenhand.checks import ROUNDING
from evenhand.learners import Learner
from evenhand.palette import SERIES, looks
from evenhand.plot.axes import NORMAL_95, SOFT, new_axes, own_look
from evenhand.policy import fair_policy
from evenhand.simulation import Run
from evenhand.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LINES = 40  # arms that convergence draws
MAX_SHOWN = 6  # arms that course draws, if none are chosen
MAX_MARKS = 12  # changes of one kind that course labels
MARKED = 8  # points of a curve that have a marker, about
MAX_LABELS = 30  # arms whose names are written next to them


def exposure(source: Run | Learner, *, ax: "Axes | None" = None) -> "Axes":
    r"""Draw each arm's share of exposure against the share it is due.

    On the diagonal every arm gets what it is due. An arm with n of the N memberships in queried
    sets has the vertical interval :math:`(n \pm 1.96 \sqrt{K n}) / N`: what drawing again by the
    same policies could have changed, taking the up to K queries of a round as one draw, which is
    the widest case. An arm further off the diagonal is not there by chance of the draw.

    Of a run the share due is known. Of a learner it is what its estimated merits call for, as by
    :func:`evenhand.fair_policy` with negative estimates as 0; the horizontal interval is that of
    1.96 standard errors of the arm's own merit, none where the learner knows no standard error.

    Parameters
    ----------
    source
        What :func:`evenhand.simulate` returned, or a learner at work that estimates merits.
    ax
        Axes to draw on; new ones of a new figure if not given.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> from evenhand.learners import URS
    >>> run = evenhand.simulate(URS(m=4, k=1, seed=1), additive([0.1, 0.2, 0.3, 0.4]), 1000, seed=1)
    >>> exposure(run).get_xlabel()
    'share due'
    """
    shown = _of_run(source) if isinstance(source, Run) else _of_learner(source)
    total = shown.selections.sum()
    if total == 0:
        raise ValueError("source must hold selections, got none; make at least one query")
    got, error = shown.selections / total, NORMAL_95 * np.sqrt(shown.k * shown.selections) / total
    beyond = 0.0 if shown.due_error is None else np.nan_to_num(shown.due_error[1])
    top = 1.08 * max((shown.due + beyond).max(), (got + error).max())
    ax, look = new_axes(ax), own_look(shown.learner)
    ax.plot([0, top], [0, top], color=SOFT, linewidth=1, zorder=1)
    ax.errorbar(
        shown.due,
        got,
        xerr=shown.due_error,
        yerr=[np.minimum(error, got), error],
        ecolor=(look.colour, 0.4),
        elinewidth=1.5,
        **look.line(linestyle="none", markersize=4),
    )
    _label(ax, shown.names, shown.due, got)
    ax.set(
        title=shown.title,
        xlabel="share due" if shown.due_error is None else "share due, as estimated",
        ylabel="share of exposure",
        xlim=(0, top),
        ylim=(0, top),
        aspect="equal",
    )
    return ax


class _Exposure(NamedTuple):
    """What a picture of exposure shows."""

    k: int
    due: Floats  # (m,)
    due_error: Floats | None  # (2, m), below and above
    selections: Ints  # (m,)
    names: tuple[str, ...] | None
    title: str
    learner: str


def _of_run(run: Run) -> _Exposure:
    title = f"alignment {run.alignment:.3f} after {run.queries:,} queries"
    return _Exposure(
        round(run.target.sum()), run.due, None, run.selections, run.names, title, run.learner
    )


def _of_learner(learner: Any) -> _Exposure:
    kind = type(learner).__name__
    if not hasattr(learner, "estimate"):
        raise TypeError(f"source must be what evenhand.simulate returned or a learner, got {kind}")
    found, k = learner.estimate(), learner.k
    if not np.any(found.merit > 0.0):
        raise ValueError(
            f"source must have estimated a merit above 0, got none from {kind}; "
            "tell it more rewards, or take a learner that estimates merits"
        )
    due, merit = _called_for(found.merit, k), np.nan_to_num(found.merit)
    scale = (due[merit > 0.0] / merit[merit > 0.0]).max()  # share per merit of arms not capped
    reach = NORMAL_95 * np.array([[-1.0], [1.0]]) * found.stderr
    low, high = np.clip(scale * (merit + reach), 0.0, 1.0 / k)
    error = np.maximum([due - low, high - due], 0.0)
    title = f"{kind} after {learner.queries:,} queries"
    return _Exposure(k, due, error, found.asked, found.names, title, getattr(learner, "name", ""))


def _label(ax: "Axes", names: tuple[str, ...] | None, x: Floats, y: Floats) -> None:
    """Write the arms' names next to their points, where there are few."""
    if names is not None and len(names) <= MAX_LABELS:
        for name, point in zip(names, zip(x, y, strict=True), strict=True):
            ax.annotate(
                name,
                point,
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=8,
                parse_math=False,
            )


def regret(
    runs: Run | Sequence[Run] | Mapping[str, Run | Sequence[Run]], *, ax: "Axes | None" = None
) -> "Axes":
    """Draw cumulative fairness regret against queries, log-log.

    Parameters
    ----------
    runs
        One run; several of one learner, drawn as their mean with a 95 % interval of the mean
        (Student's t); or a mapping from labels to either. Runs of one label must have the same
        checkpoints.
    ax
        Axes to draw on; new ones of a new figure if not given.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> from evenhand.learners import URS
    >>> game = additive([0.1, 0.2, 0.3, 0.4])
    >>> runs = [evenhand.simulate(URS(m=4, k=1, seed=s), game, 1000, seed=s) for s in (1, 2)]
    >>> ax = regret({"uniform": runs})
    >>> ax.get_legend_handles_labels()[1]
    ['uniform']
    """
    named = runs if isinstance(runs, Mapping) else {"": runs}
    groups = {name: _group(name, several) for name, several in named.items()}
    if not groups:
        raise ValueError("runs must hold at least one run, got none")
    ax = new_axes(ax)
    drawn = looks([group[0].learner for group in groups.values()])
    for look, (name, group) in zip(drawn, groups.items(), strict=True):
        queries, curves = group[0].checkpoints, np.array([run.regret for run in group])
        mean = curves.mean(axis=0)
        style = look.line(linewidth=1.8, markersize=4, markevery=max(1, len(queries) // MARKED))
        ax.plot(queries, mean, label=name or None, **style)
        if len(group) > 1:
            stderr = curves.std(axis=0, ddof=1) / np.sqrt(len(group))
            half = stdtrit(len(group) - 1, 0.975) * stderr
            low = np.maximum(mean - half, 1e-3 * mean)  # a logarithm has no room for 0
            ax.fill_between(queries, low, mean + half, color=look.colour, alpha=0.2, linewidth=0)
    ax.set(xscale="log", yscale="log", xlabel="queries", ylabel="cumulative fairness regret")
    if any(groups):
        ax.legend(frameon=False)
    return ax


def convergence(run: Run, *, ax: "Axes | None" = None) -> "Axes":
    r"""Draw how the exposure that the learner's estimates call for approaches what is due.

    At every checkpoint the estimates are made into shares by :func:`evenhand.fair_policy`
    (negative estimates count as 0); dotted lines are the shares due. The title gives the part of
    all exposure that the last estimates would misplace,
    :math:`\frac12 \sum_a |\hat\pi_a - \pi^*_a| / K`. Of more than 40 arms, 40 evenly spaced in
    merit are drawn.

    Parameters
    ----------
    run
        What :func:`evenhand.simulate` returned, of a learner that estimates merits, with at most
        1000 arms.
    ax
        Axes to draw on; new ones of a new figure if not given.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> from evenhand.learners import IWKSVFair
    >>> learner = IWKSVFair(m=4, k=1, horizon=2000, gamma=0.8, seed=1)
    >>> run = evenhand.simulate(learner, additive([0.1, 0.2, 0.3, 0.4]), 2000, seed=1)
    >>> len(convergence(run).lines)  # four arms, each with the share it is due
    8
    """
    _check_run(run)
    if run.changes or _moves(run).max() > ROUNDING:
        raise ValueError(
            "run must be of a game that stays as it is, got one of a world that changes; "
            "draw it with evenhand.plot.course"
        )
    if run.merit_curve is None or not np.isfinite(run.merit_curve).any():
        raise ValueError(
            "run must hold estimates of merits (a learner that makes some, at most 1000 arms), "
            "got none"
        )
    due, k = run.due, round(run.target.sum())
    wanted = np.array([_called_for(row, k) for row in run.merit_curve])
    shown = np.argsort(-due, kind="stable")
    if len(shown) > MAX_LINES:
        shown = shown[np.linspace(0, len(shown) - 1, MAX_LINES).round().astype(int)]
    ax = new_axes(ax)
    import matplotlib as mpl  # there, since there are axes

    colours = mpl.colormaps["viridis"](np.linspace(0.0, 0.9, len(shown)))
    for arm, colour in zip(shown, colours, strict=True):
        ax.axhline(due[arm], color=colour, linewidth=0.8, linestyle=":")
        ax.plot(run.checkpoints, wanted[:, arm], color=colour, linewidth=1.2)
    _label(ax, run.names, np.full(len(due), run.checkpoints[-1]), wanted[-1])
    settled = wanted[len(wanted) // 2 :]  # the first estimates swing between 0 and 1
    ax.set(
        xscale="log",
        ylim=(0, 1.1 * max(due.max(), settled.max())),
        xlabel="queries",
        ylabel="share of exposure called for",
        title=f"misplaced at the end: {0.5 * np.abs(wanted[-1] - due).sum():.1%}",
    )
    ax.set_xlim(left=min(len(due), run.checkpoints[len(wanted) // 2]))  # few arms seen before
    return ax


def course(
    run: Run, *, arms: Sequence[int | str] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw over time what arms were due, dashed, and what they were given.

    Each point is an arm's share of exposure between a checkpoint and the one before; lines break
    where an arm was not there. Dotted verticals mark what happened: arms that joined, left, paused
    or resumed, and games that changed. Gradual changes have no mark.

    Parameters
    ----------
    run
        What :func:`evenhand.simulate` returned, with at most 1000 arms.
    arms
        Which arms to draw, by number or name; by default the six whose due moved most.
    ax
        Axes to draw on; new ones of a new figure if not given.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import Abrupt, NoisyOr
    >>> from evenhand.learners import URS
    >>> world = Abrupt([NoisyOr([0.5, 0.2, 0.2]), NoisyOr([0.2, 0.5, 0.2])], times=[500])
    >>> ax = course(evenhand.simulate(URS(m=3, k=1, seed=1), world, 1000, seed=1))
    >>> len(ax.lines)  # three arms due and given, and one change
    7
    """
    _check_run(run)
    if run.due_curve is None or run.given_curve is None or len(run.checkpoints) < 2:
        raise ValueError(
            "run must hold at least two checkpoints and at most 1000 arms, "
            f"got {len(run.checkpoints)} checkpoints of {len(run.target)} arms"
        )
    shown = _chosen(run, arms)
    ax = new_axes(ax, width=8.4)
    times = run.checkpoints
    for arm, colour in zip(shown, SERIES * (len(shown) // len(SERIES) + 1), strict=False):
        here = _there(run, arm)
        due, given = (np.where(here, x[:, arm], np.nan) for x in (run.due_curve, run.given_curve))
        label = str(arm) if run.names is None else run.names[arm]
        ax.plot(times, due, color=colour, linewidth=1.3, linestyle="--", drawstyle="steps-pre")
        ax.plot(times, given, color=colour, linewidth=1.3, label=label.replace("$", r"\$"))
    _mark_changes(ax, run)
    ax.set(xlabel="queries", ylabel="share of exposure", xlim=(0, run.queries))
    ax.set_ylim(bottom=0)
    ax.locator_params(axis="x", nbins=5)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.legend(
        frameon=False, title="due (dashed) and given", loc="upper left", bbox_to_anchor=(1, 1)
    )
    return ax


def _moves(run: Run) -> Floats:
    """How far the share due to each arm moves, where it is there."""
    if run.due_curve is None or not len(run.due_curve):
        return np.zeros(len(run.target))
    return np.ptp(run.due_curve, axis=0)


def _chosen(run: Run, arms: Sequence[int | str] | None) -> list[int]:
    """Numbers of the arms to draw."""
    if arms is None:
        most = np.argsort(-_moves(run), kind="stable")[:MAX_SHOWN]
        return sorted(most.tolist())
    names = {} if run.names is None else {name: i for i, name in enumerate(run.names)}
    chosen = [names.get(arm, -1) if isinstance(arm, str) else int(arm) for arm in arms]
    for arm, found in zip(arms, chosen, strict=True):
        if not 0 <= found < len(run.target):
            raise ValueError(
                f"arms must be among the {len(run.target)} of the run, by number or name, "
                f"got {arm!r}"
            )
    return chosen


def _there(run: Run, arm: int) -> Bools:
    """At which checkpoints an arm is there."""
    here = np.ones(len(run.checkpoints), np.bool_)
    for at, what, arms in run.changes:
        if arm in arms:
            later = run.checkpoints > at
            here[later] = what in ("join", "resume")
            if what == "join":
                here[~later] = False
    return here


def _mark_changes(ax: "Axes", run: Run) -> None:
    """Draw a dotted vertical at every change, with words where there are few."""
    top = ax.get_xaxis_transform()
    places: dict[int, list[str]] = {}
    for at, what, arms in run.changes:
        who = [str(arm) if run.names is None else run.names[arm] for arm in arms]
        places.setdefault(at, []).append(f"{WORDS[what]} {', '.join(who)}".strip())
    for at, words in places.items():
        ax.axvline(at, color=SOFT, linewidth=0.9, linestyle=":", zorder=1)
        if len(places) <= MAX_MARKS:
            ax.text(
                at,
                1.01,
                "\n".join(words),
                transform=top,
                fontsize=7,
                rotation=30,
                parse_math=False,
            )


WORDS = {"game": "changes", "join": "+", "leave": "\u2212", "pause": "pauses", "resume": "resumes"}


def _called_for(merit: Floats, k: int) -> Floats:
    """Shares of exposure (sum 1) that estimates call for; arms without one count as 0."""
    return fair_policy(np.maximum(np.nan_to_num(merit), 0.0), k) / k


def _group(name: str, runs: Run | Sequence[Run]) -> list[Run]:
    """Runs drawn as one line."""
    group = [runs] if isinstance(runs, Run) else list(runs)
    if not group:
        raise ValueError(f"runs must hold at least one run for every label, got none for {name!r}")
    for run in group:
        _check_run(run)
        if not np.array_equal(run.checkpoints, group[0].checkpoints):
            raise ValueError(
                f"runs of one label must have the same checkpoints, got others for {name!r}; "
                "pass them to simulate, or give the runs labels of their own"
            )
    return group


def _check_run(run: Any) -> None:
    if not isinstance(run, Run):
        raise TypeError(f"run must be what evenhand.simulate returned, got {type(run).__name__}")
