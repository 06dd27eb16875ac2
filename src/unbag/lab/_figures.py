"""Figures in the style of papers: test log loss and AUC over the bag size, panels of experiments,
their legends and their files."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from io import StringIO
from math import ceil, log2
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from unbag.lab._methods import LOOKS, OUR_LOOK, Way
from unbag.lab._plan import Experiment
from unbag.lab._results import BestCells, Metric, Runs, cells_of, in_order
from unbag.lab._tasks import TASKS
from unbag.plots import CurveLook, Point, Result, draw_experiment, new_figure, size_ticks
from unbag.report import lean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER: Any = {  # the style of figures in papers
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": "#777777",
    "xtick.labelcolor": "black",
    "lines.linewidth": 1.3,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "svg.fonttype": "none",
    "svg.hashsalt": "unbag",  # the same figure, the same file
}
GREY = "#777777"
OTHERS = (CurveLook("#444444", "X"), CurveLook("#8C564B", "*"), CurveLook("#B8A800", "h"))
POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def name_of(metric: Metric, experiment: Experiment) -> str:
    """What the axis shows."""
    if metric == "test_auc":
        return "test AUC"
    if experiment.task in TASKS and TASKS[experiment.task].kind == "total":
        return "test Poisson loss"
    return "test log loss"


def draw(
    everything: Sequence[Runs],
    experiments: Sequence[Experiment],
    metric: Metric,
    *,
    sizes: Sequence[int] | None = None,
) -> Figure:
    """One panel for each experiment.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    experiments : sequence of Experiment
        Those to draw.
    metric : {"test_loss", "test_auc"}
        What to draw.
    sizes : sequence of int, optional
        Zoom: only bags of these sizes, and only as much of the axis as their curves take.
    """
    results = [r for e in experiments if (r := result_of(everything, e, metric)) is not None]
    if sizes is None:
        return experiments_figure(results)
    return experiments_figure([_only(result, sizes) for result in results], zoom=True)


def _only(result: Result, sizes: Sequence[int]) -> Result:
    methods = {
        name: kept
        for name, points in result.methods.items()
        if (kept := [point for point in points if point.size in sizes])
    }
    bags = {size: count for size, count in result.bags.items() if size in sizes}
    return result._replace(methods=methods, bags=bags)


def result_of(everything: Sequence[Runs], experiment: Experiment, metric: Metric) -> Result | None:
    """The best results of an experiment by method and bag size; None when there are none.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    experiment : Experiment
        Which of them.
    metric : {"test_loss", "test_auc"}
        What counts.
    """
    cells = cells_of(everything, experiment, metric)
    if not cells.learned:
        return None
    ways = in_order([way for way, _ in cells.learned])
    methods: dict[str, list[Point]] = {way.title: [] for way in ways}
    for (way, size), cell in sorted(cells.learned.items()):
        methods[way.title].append(Point(size, cell.mean, cell.error, cell.edge))
    levels = {"trivial predictor": cells.trivial}
    if cells.labels is not None:
        levels["labels"] = cells.labels.mean
    sizes = {size for _, size in cells.learned}
    return Result(
        data=experiment.data,
        details=details_of(cells),
        metric=name_of(metric, experiment),
        better={"test_loss": "lower", "test_auc": "higher"}[metric],
        bags={size: count for size, count in cells.bags.items() if size in sizes},
        methods=methods,
        levels=levels,
        looks={way.title: _look(way, ways) for way in ways},
    )


def details_of(cells: BestCells) -> str:
    """What belongs into every caption: network, start and epochs, repetitions, whether the network
    is the paper's, and the rows where they are fewer."""
    experiment, repetitions = cells.experiment, f"{cells.repetitions} repetitions"
    task, parts = TASKS.get(experiment.task), [experiment.details, repetitions]
    if task is None or not task.paper_rows:
        return "; ".join(parts)
    if task.model == experiment.model:
        parts.append("the paper's network")
    if cells.rows < 0.9 * task.paper_rows and not experiment.rows:
        parts.append(f"{cells.rows:,} of the paper's {task.paper_rows:,} rows")
    return "; ".join(parts)


def _look(way: Way, ways: Sequence[Way]) -> CurveLook:
    """The look of a method; further curves of a method take one of the others."""
    if way.is_ours:
        return OUR_LOOK
    first = {each.method: each for each in reversed(ways) if not each.is_ours}
    others = [
        each
        for each in ways
        if not each.is_ours and (each.method not in LOOKS or first[each.method] != each)
    ]
    if way in others:
        return OTHERS[others.index(way) % len(OTHERS)]
    return LOOKS[way.method]


def _draw_panel(axes: Axes, result: Result, caption: Sequence[str], lines: int) -> None:
    """An experiment with bag sizes as powers of two, and the numbers of bags above the frame.

    caption : in lines. lines : of the longest caption beside it, so that titles stand level.
    """
    draw_experiment(axes, result)
    sizes = list(result.bags)
    size_ticks(axes, sizes, ["2" + f"{log2(size):.3g}".translate(POWERS) for size in sizes])
    # a second axis above: how many bags each size leaves
    above, style = axes.secondary_xaxis("top"), {"fontsize": 6.5, "color": GREY}
    size_ticks(above, sizes, [_short(result.bags[size]) for size in sizes], **style)
    above.tick_params(length=0, pad=1)
    above.spines["top"].set_visible(False)
    above.set_xlabel("\n".join(caption), labelpad=2, **style)
    axes.set_title(result.data, fontsize=10, fontweight="bold", pad=14 + 8 * lines)


def _short(count: int) -> str:
    """A number of bags in four characters or fewer.

    >>> _short(254), _short(2035), _short(32561)
    ('254', '2.0k', '33k')
    """
    if count < 1000:
        return str(count)
    decimals = int(count < 10_000)
    return f"{count / 1000:.{decimals}f}k"


def experiments_figure(results: Sequence[Result], *, zoom: bool = False) -> Figure:
    """One panel for each experiment, in the style of papers.

    Parameters
    ----------
    results : sequence of Result
        What to draw. One alone has its names at the right edge, several share a legend.
    zoom : bool
        Whether the y axis is only as long as the curves need, without the levels.
    """
    from matplotlib import rc_context

    columns = min(len(results), 3)
    rows, size, width = ceil(len(results) / columns), (5.6, 3.6), 90
    if len(results) > 1:
        size, width = (3.3 * columns, 2.9 * rows + 0.5), 56  # a longer line is wider than a panel
    captions = [f"number of bags; {result.details}" for result in results]
    if len(results) == 1:
        captions[0] += "; bands: one standard error"  # where there is no legend
    wrapped = [textwrap.wrap(caption, width) for caption in captions]
    with rc_context(PAPER):
        figure = new_figure(*size)
        for i, result in enumerate(results, 1):
            panel = figure.add_subplot(rows, columns, i)
            _draw_panel(panel, result, wrapped[i - 1], max(map(len, wrapped)))
            if zoom:
                _zoom(panel, result)
        if len(results) > 1:
            share_legend(figure)
        else:
            _name_ends(figure.axes[0])
    return figure


def _zoom(axes: Axes, result: Result) -> None:
    """The y axis from the lowest to the highest point of the methods."""
    means = [point.mean for points in result.methods.values() for point in points]
    low, high = min(means), max(means)
    margin = 0.08 * (high - low) or 0.01
    axes.set_ylim(low - margin, high + margin)


def _name_ends(axes: Axes) -> None:
    """Names at the right edge beside the ends of the curves that are in the frame, moved apart
    where they would overlap."""
    handles, names = axes.get_legend_handles_labels()
    pairs: Any = zip(handles, names, strict=True)
    low, high = axes.get_ylim()
    ends = [(line.get_ydata()[-1], name, line.get_color()) for line, name in pairs]
    ends = [end for end in ends if low <= end[0] <= high]
    gap, place, places = 0.058 * (high - low), -np.inf, []
    for y, *_ in sorted(ends):
        place = max(y, place + gap)
        places.append(place)
    down = max(0.0, place - high)
    for (y, name, colour), place in zip(sorted(ends), places, strict=True):
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "relpos": (0, 0.5)}
        axes.annotate(
            name,
            (1.0, y),
            xycoords=("axes fraction", "data"),
            xytext=(1.05, place - down),
            textcoords=("axes fraction", "data"),
            color=colour,
            va="center",
            fontsize=8,
            annotation_clip=False,
            arrowprops={**line, "shrinkA": 1, "shrinkB": 0},
        )


def share_legend(figure: Figure) -> None:
    """One legend below all panels; levels last, and what the bands are."""
    from matplotlib.patches import Patch

    shown = [panel.get_legend_handles_labels() for panel in figure.axes]
    named = {name: line for pair in shown for line, name in zip(*pair, strict=True)}
    last = [name for name in ("labels", "trivial predictor") if name in named]
    names = [name for name in named if name not in last] + last
    handles = [named[name] for name in names]
    handles.append(Patch(color=GREY, alpha=0.18, linewidth=0))  # as the bands of curves
    names.append("one standard error")
    columns = min(len(names), 5)
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure as SVG, the same bytes for the same figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to write.
    path : Path
        Where to, without an ending.
    """
    from matplotlib import rc_context

    text = StringIO()
    with rc_context(PAPER):
        figure.savefig(text, format="svg", facecolor="white", bbox_inches="tight")
    picture = lean(text.getvalue())
    picture.set("xmlns", "http://www.w3.org/2000/svg")
    picture.set("style", "font-family: 'DejaVu Sans', sans-serif; stroke-linejoin: round")
    target = path.with_name(f"{path.name}.svg")
    target.write_text(ElementTree.tostring(picture, encoding="unicode") + "\n")
    return target
