"""Results of a store in, figures out: test log loss and AUC over the bag size, as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from unbag.lab._methods import Way
from unbag.lab._plan import Experiment
from unbag.lab._results import Metric, Runs, best_cells, full_runs, in_order
from unbag.lab._tasks import TASKS

LOOKS = {  # colours of Okabe and Ito, which everyone can tell apart
    "matching": ("#0072B2", "o"),
    "easy": ("#E69F00", "s"),
    "upm": ("#009E73", "D"),
    "anchored": ("#CC79A7", "^"),
    "likelihood": ("#56B4E9", "P"),
}
OURS = ("#D55E00", "v")  # anchored with the square or the Brier loss
OTHERS = (("#444444", "X"), ("#8C564B", "*"), ("#B8A800", "h"))
GREY = "#777777"
STYLE: Any = {
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "svg.fonttype": "none",
}
End = tuple[str, str, float]
"""Name, colour and height of what is named at the right edge."""


def name_of(metric: Metric, experiment: Experiment) -> str:
    """What the axis shows."""
    counts = experiment.task in TASKS and TASKS[experiment.task].kind == "total"
    return (
        "test AUC" if metric == "test_auc" else "test Poisson loss" if counts else "test log loss"
    )


def draw(
    everything: Sequence[Runs],
    experiments: Sequence[Experiment],
    metric: Metric,
    *,
    smallest: int = 1,
) -> Figure:
    """One panel for each experiment; bags of at least `smallest`."""
    columns = min(len(experiments), 3)
    rows, alone = -(-len(experiments) // columns), len(experiments) == 1
    with rc_context(STYLE):
        size = (5.6, 3.6) if alone else (3.3 * columns, 2.9 * rows + 0.5)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, experiment in zip(panels, experiments, strict=False):
            draw_panel(
                panel, full_runs(everything, experiment), metric, smallest=smallest, alone=alone
            )
        for panel in panels[len(experiments) :]:
            panel.remove()
        if not alone:
            _legend(figure)
    return figure


def draw_panel(
    panel: Axes, mine: Sequence[Runs], metric: Metric, *, smallest: int, alone: bool
) -> None:
    """Curves with bands of one standard error; labels and the trivial predictor are lines
    across."""
    curves = [r for r in mine if r.way.method != "labels" and r.size >= smallest]
    cells, ends = best_cells(curves, metric), []
    ways = in_order([way for way, _ in cells])
    for way in ways:
        points = [(size, found) for (its, size), found in cells.items() if its == way]
        ends.append(_curve(panel, way, _look(way, ways), points))
    ends += _lines_across(panel, mine, metric)
    _axes(panel, curves, metric)
    if alone:
        _direct_labels(panel, ends)


def _look(way: Way, ways: Sequence[Way]) -> tuple[str, str]:
    if way.method == "anchored" and way.loss in ("square", "brier"):
        return OURS
    calm = [each for each in ways if each.method == "anchored" and each.loss in ("square", "brier")]
    first = {each.method: each for each in reversed(ways) if each not in calm}
    others = [
        each
        for each in ways
        if each not in calm and (each.method not in LOOKS or first[each.method] != each)
    ]
    return OTHERS[others.index(way) % len(OTHERS)] if way in others else LOOKS[way.method]


def _curve(panel: Axes, way: Way, look: tuple[str, str], points: Sequence) -> End:
    size, mean, error = (
        np.array(column) for column in zip(*((k, f.mean, f.error) for k, f in points), strict=True)
    )
    colour, marker = look
    panel.plot(
        size, mean, color=colour, marker=marker, markersize=3.5, linewidth=1.3, label=way.title
    )
    error = np.nan_to_num(error)
    panel.fill_between(size, mean - error, mean + error, color=colour, alpha=0.18, linewidth=0)
    return way.title, colour, float(mean[-1])


def _lines_across(panel: Axes, mine: Sequence[Runs], metric: Metric) -> list[End]:
    level = {"trivial predictor": mine[0].trivial if metric == "test_loss" else 0.5} if mine else {}
    labels = list(best_cells([r for r in mine if r.way.method == "labels"], metric).values())
    level |= {"labels": labels[0].mean} if labels else {}
    for name, value in level.items():
        style = "--" if name == "labels" else ":"
        panel.axhline(value, color=GREY, linewidth=0.9, linestyle=style, zorder=0, label=name)
    return [(name, GREY, value) for name, value in level.items()]


def _axes(panel: Axes, curves: Sequence[Runs], metric: Metric) -> None:
    """Sizes as powers of two below; how many bags that makes above."""
    bags = dict(sorted((r.size, r.bags) for r in curves))
    panel.set_xscale("log", base=2)
    panel.set_xticks(list(bags), [f"$2^{{{np.log2(k):.3g}}}$" for k in bags])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel("bag size")
    panel.set_ylabel(name_of(metric, curves[0].experiment))
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    panel.set_axisbelow(True)
    above = panel.secondary_xaxis("top")
    above.set_xticks(
        list(bags), [_short(count) for count in bags.values()], fontsize=6.5, color=GREY
    )
    above.xaxis.set_minor_locator(NullLocator())
    above.tick_params(length=0, pad=1)
    above.spines["top"].set_visible(False)
    above.set_xlabel(
        f"number of bags; {curves[0].experiment.details}", fontsize=6.5, color=GREY, labelpad=2
    )
    panel.set_title(curves[0].experiment.data, fontsize=10, fontweight="bold", pad=22)


def _short(count: int) -> str:
    """A number of bags in four characters or fewer.

    >>> _short(254), _short(2035), _short(32561)
    ('254', '2.0k', '33k')
    """
    return (
        f"{count / 1000:.0f}k"
        if count >= 10_000
        else f"{count / 1000:.1f}k"
        if count >= 1000
        else str(count)
    )


def _direct_labels(panel: Axes, ends: Sequence[End]) -> None:
    """Names at the right edge, moved apart where they would overlap."""
    low, high = panel.get_ylim()
    gap = 0.058 * (high - low)
    places: list[float] = []
    for _, _, y in (ordered := sorted(ends, key=lambda end: end[2])):
        places.append(max(y, places[-1] + gap if places else -np.inf))
    down = max(0.0, places[-1] - high) if places else 0.0
    for (name, colour, y), place in zip(ordered, places, strict=True):
        line = {
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 0.6,
            "shrinkA": 1,
            "shrinkB": 0,
            "relpos": (0, 0.5),
        }
        panel.annotate(
            name, (1.0, y), xycoords=("axes fraction", "data"), xytext=(1.05, place - down),
            textcoords=("axes fraction", "data"), color=colour, va="center", fontsize=8, annotation_clip=False,
            arrowprops=line,
        )  # fmt: skip
    panel.set_ylim(low, high)


def _legend(figure: Figure) -> None:
    shown = [
        pair
        for panel in figure.axes
        for pair in zip(*panel.get_legend_handles_labels(), strict=True)
    ]
    handles = {label: handle for handle, label in shown}
    last = [name for name in ("labels", "trivial predictor") if name in handles]
    names = [name for name in handles if name not in last] + last
    figure.legend(
        [handles[n] for n in names],
        names,
        loc="outside lower center",
        ncols=min(len(names), 5),
        frameon=False,
    )


def save(figure: Figure, path: Path) -> Path:
    """Write the figure as SVG, the same bytes for the same figure; `path` has no ending."""
    target = path.with_name(f"{path.name}.svg")
    with rc_context(STYLE | {"svg.hashsalt": "unbag"}):
        figure.savefig(target, facecolor="white", bbox_inches="tight", metadata={"Date": None})
    return target
