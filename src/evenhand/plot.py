"""Pictures of a run. Every function returns the matplotlib axes it drew on and shows nothing."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from evenhand.policy import fair_policy
from evenhand.simulation.loop import Run
from evenhand.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT = "#0072B2", "#9A9A9A"
# Okabe and Ito's colours, told apart by the colour-blind
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MAX_LINES = 40  # arms drawn one by one
NORMAL_95 = 1.96


def exposure(run: Run, *, ax: "Axes | None" = None) -> "Axes":
    r"""Draw each arm's share of exposure against the share it is due.

    On the diagonal every arm gets what it is due. An arm with n of the N memberships in queried
    sets has the interval :math:`(n \pm 1.96 \sqrt{K n}) / N`: what drawing again by the same
    policies could have changed, taking the up to K queries of a round as one draw, which is the
    widest case. An arm further off the diagonal is not there by chance of the draw.

    Parameters
    ----------
    run
        What :func:`evenhand.simulate` returned.
    ax
        Axes to draw on; new ones of a new figure if not given.

    Examples
    --------
    >>> import evenhand
    >>> from evenhand.games import additive
    >>> from evenhand.learners import URS
    >>> worth = [0.1, 0.2, 0.3, 0.4]
    >>> run = evenhand.simulate(
    ...     URS(m=4, k=1, seed=1), additive(worth), 1000, target=worth, seed=2
    ... )
    >>> exposure(run).get_xlabel()
    'share due'
    """
    _check_run(run)
    total = run.selections.sum()
    if total == 0:
        raise ValueError("run must hold selections, got none; simulate at least one query")
    due, got = run.target / run.target.sum(), run.selections / total
    error = NORMAL_95 * np.sqrt(run.target.sum() * run.selections) / total
    ax = _axes(ax)
    top = 1.08 * max(due.max(), (got + error).max())
    ax.plot([0, top], [0, top], color=SOFT, linewidth=1, zorder=1)
    ax.errorbar(
        due,
        got,
        yerr=np.minimum(error, [got, np.full_like(got, np.inf)]),
        fmt="o",
        markersize=4,
        color=INK,
        ecolor="#8FBFDD",
        elinewidth=1.5,
    )
    ax.set(xlim=(0, top), ylim=(0, top), xlabel="share due", ylabel="share of exposure")
    ax.set_aspect("equal")
    ax.set_title(f"alignment {run.alignment:.3f} after {run.queries:,} queries")
    return ax


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
    >>> worth = [0.1, 0.2, 0.3, 0.4]
    >>> play = lambda seed: evenhand.simulate(
    ...     URS(m=4, k=1, seed=seed), additive(worth), 1000, target=worth, seed=2
    ... )
    >>> ax = regret({"uniform": [play(1), play(2)]})
    >>> ax.get_legend_handles_labels()[1]
    ['uniform']
    """
    named = runs if isinstance(runs, Mapping) else {"": runs}
    groups = {name: _group(name, several) for name, several in named.items()}
    if not groups:
        raise ValueError("runs must hold at least one run, got none")
    ax = _axes(ax)
    for i, (name, group) in enumerate(groups.items()):
        colour = COLOURS[i % len(COLOURS)]
        queries, curves = group[0].checkpoints, np.array([run.regret for run in group])
        mean = curves.mean(axis=0)
        ax.plot(queries, mean, color=colour, linewidth=1.8, label=name or None)
        if len(group) > 1:
            stderr = curves.std(axis=0, ddof=1) / np.sqrt(len(group))
            half = stdtrit(len(group) - 1, 0.975) * stderr
            low = np.maximum(mean - half, 1e-3 * mean)  # a logarithm has no room for 0
            ax.fill_between(queries, low, mean + half, color=colour, alpha=0.2, linewidth=0)
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
    >>> worth = [0.1, 0.2, 0.3, 0.4]
    >>> learner = IWKSVFair(m=4, k=1, horizon=2000, gamma=0.8, seed=1)
    >>> run = evenhand.simulate(learner, additive(worth), 2000, target=worth, seed=2)
    >>> len(convergence(run).lines)  # four arms, each with the share it is due
    8
    """
    import matplotlib as mpl

    _check_run(run)
    if run.merits is None or not np.isfinite(run.merits).any():
        raise ValueError(
            "run must hold estimates of merits (a learner that makes some, at most 1000 arms), "
            "got none"
        )
    k = round(run.target.sum())
    due = run.target / k
    wanted = np.array([_called_for(row, k) for row in run.merits])
    shown = np.argsort(-due, kind="stable")
    if len(shown) > MAX_LINES:
        shown = shown[np.linspace(0, len(shown) - 1, MAX_LINES).round().astype(int)]
    ax = _axes(ax)
    colours = mpl.colormaps["viridis"](np.linspace(0.0, 0.9, len(shown)))
    for arm, colour in zip(shown, colours, strict=True):
        ax.axhline(due[arm], color=colour, linewidth=0.8, linestyle=":")
        ax.plot(run.checkpoints, wanted[:, arm], color=colour, linewidth=1.2)
    settled = wanted[len(wanted) // 2 :]  # the first estimates swing between 0 and 1
    ax.set(xscale="log", ylim=(0, 1.1 * max(due.max(), settled.max())))
    ax.set_xlim(left=min(len(due), run.checkpoints[len(wanted) // 2]))  # few arms seen before
    ax.set(xlabel="queries", ylabel="share of exposure called for")
    ax.set_title(f"misplaced at the end: {0.5 * np.abs(wanted[-1] - due).sum():.1%}")
    return ax


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


def _axes(ax: "Axes | None") -> "Axes":
    """Return the axes given, or new ones that no window belongs to."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "evenhand.plot needs matplotlib; install it with: pip install 'evenhand[plot]'"
        ) from None
    ax = Figure(figsize=(5.2, 4.2), layout="constrained").subplots()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    return ax
