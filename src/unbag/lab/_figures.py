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

from unbag.lab._catalogue import LOOKS, OUR_LOOK, TASKS, Way, has_papers_network
from unbag.lab._plan import Experiment
from unbag.lab._results import BestCells, Metric, in_order
from unbag.plots import CurveLook, Level, Series, draw_curves, new_figure
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
LEVELS = ("labels", "the truth", "trivial predictor")  # lines across
POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def name_of(metric: Metric, experiment: Experiment) -> str:
    """What the axis shows."""
    if metric == "test_auc":
        return "test AUC"
    if experiment.task in TASKS and TASKS[experiment.task].kind == "total":
        return "test Poisson loss"
    return "test log loss"


def details_of(cells: BestCells, *, network: bool = True) -> str:
    """What belongs into every caption: network, start and epochs, repetitions, whether the network
    is the paper's, and the rows where the paper has more and the plan did not ask for fewer.

    Parameters
    ----------
    cells : BestCells
        Of one experiment.
    network : bool
        Whether to say which network it is; the title of a panel says it already.
    """
    experiment, task = cells.experiment, TASKS.get(cells.experiment.task)
    wanted = (task and task.paper_rows) or 0
    parts = [experiment.details, f"{cells.repetitions} repetitions"]
    if not network:
        parts[0] = parts[0].removeprefix(f"{experiment.model}, ")
    elif wanted and has_papers_network(experiment.task, experiment.model):
        parts.append("the paper's network")
    if not experiment.rows and cells.rows < 0.9 * wanted:
        parts.append(f"{cells.rows:,} of the paper's {wanted:,} rows")
    return "; ".join(parts)


NETWORKS = {
    "linear": "linear", "perceptron": "1 hidden layer of 32", "deep": "4 hidden layers of 300",
    "cnn": "CNN", "cnn-bfloat16": "CNN, steps in bfloat16",
}  # fmt: skip


def network_of(experiment: Experiment) -> str:
    """Which network it is, and whether the paper took it."""
    own, task = NETWORKS.get(experiment.model, experiment.model), TASKS.get(experiment.task)
    if task is None or not task.paper_rows:
        return own
    if has_papers_network(experiment.task, experiment.model):
        return f"{own}, the paper's network"
    return f"{own}; the paper: {NETWORKS.get(task.model, task.model)}"


def _look(way: Way, ways: Sequence[Way]) -> CurveLook:
    """The look of a method; further curves of a method take one of the others."""
    if way.is_ours:
        return OUR_LOOK
    others = [each for each in ways if not each.is_ours]
    first = {each.method: each for each in reversed(others)}
    others = [each for each in others if each.method not in LOOKS or first[each.method] != each]
    if way in others:
        return OTHERS[others.index(way) % len(OTHERS)]
    return LOOKS[way.method]


def _short(count: int) -> str:
    """A number of bags in four characters or fewer.

    >>> _short(254), _short(2035), _short(32561)
    ('254', '2.0k', '33k')
    """
    if count < 1000:
        return str(count)
    decimals = int(count < 10_000)
    return f"{count / 1000:.{decimals}f}k"


def experiments_figure(
    results: Sequence[BestCells], *, sizes: Sequence[int] | None = None
) -> Figure:
    """One panel for each experiment, in the style of papers.

    Parameters
    ----------
    results : sequence of BestCells
        What to draw. One alone has its names at the right edge, several share a legend.
    sizes : sequence of int, optional
        Zoom: only bags of these sizes, and no more of the y axis than their curves need.
    """
    from matplotlib import rc_context

    columns = min(len(results), 3)
    rows, size, width = ceil(len(results) / columns), (5.6, 3.6), 90
    if len(results) > 1:
        size, width = (3.3 * columns, 2.9 * rows + 0.5), 56  # a longer line is wider than a panel
    captions = [f"number of bags; {details_of(cells, network=False)}" for cells in results]
    if len(results) == 1:
        captions[0] += "; bars: one standard error; hollow: at an end of rates or epochs"
    wrapped = [textwrap.wrap(caption, width) for caption in captions]
    with rc_context(PAPER):
        figure = new_figure(*size)
        for i, cells in enumerate(results):
            panel = figure.add_subplot(rows, columns, i + 1)
            learned = {k for _, k in cells.learned}
            there = [k for k in cells.bags if k in learned and (sizes is None or k in sizes)]
            _draw_panel(panel, cells, there)
            # The number of bags of each size stands above the frame, with caption and title.
            above, style = panel.secondary_xaxis("top"), {"fontsize": 6.5, "color": GREY}
            above.set_xticks(there, [_short(cells.bags[k]) for k in there], **style)
            above.set_xticks([], minor=True)
            above.tick_params(length=0, pad=1)
            above.spines["top"].set_visible(False)
            above.set_xlabel("\n".join(wrapped[i]), labelpad=2, **style)
            pad = 14 + 8 * max(map(len, wrapped))  # so that titles stand level
            panel.set_title(cells.experiment.data, fontsize=10, fontweight="bold", pad=pad + 11)
            place: Any = {
                "xycoords": "axes fraction",
                "textcoords": "offset points",
                "ha": "center",
            }
            panel.annotate(network_of(cells.experiment), (0.5, 1), (0, pad), fontsize=8, **place)
            if sizes is not None:
                panel.set_ylim(*_zoom(cells, there))
                _point_at_levels(panel)
        if len(results) > 1:
            share_legend(figure)
        else:
            _name_ends(figure.axes[0])
    return figure


def _draw_panel(axes: Axes, cells: BestCells, sizes: Sequence[int]) -> None:
    """A metric over bag sizes, which are powers of two, with bars of one standard error."""
    ways, curves = in_order([way for way, _ in cells.learned]), []
    for way in ways:
        averages = {k: cells.learned[way, k] for k in sizes if (way, k) in cells.learned}
        if averages:
            points = np.array([average[:2] for average in averages.values()])
            curves.append(curve_of_means(way, list(averages), points, _look(way, ways)))
    levels = [Level("trivial predictor", cells.trivial, ":")]
    if cells.labels is not None:
        levels.append(Level("labels", cells.labels.mean))
    y = name_of(cells.metric, cells.experiment)
    how: Any = {"dots": True, "bars": True, "outliers": True}
    draw_curves(axes, curves, x="bag size", y=y, levels=levels, **how)
    for (way, k), average in cells.learned.items():
        if average.edge and k in sizes:
            colour, marker, _ = _look(way, ways)
            style: Any = {"markerfacecolor": "white", "markeredgecolor": colour, "linestyle": ""}
            axes.plot([k], [average.mean], marker=marker, markersize=4, **style)
    name_sizes(axes, sizes)


def _point_at_levels(axes: Axes) -> None:
    """Lines across that lie outside of the frame are named at the edge that they lie behind."""
    low, high = axes.get_ylim()
    place: Any = {"xycoords": "axes fraction", "fontsize": 6.5, "color": GREY, "ha": "right"}
    pairs: Any = zip(*axes.get_legend_handles_labels(), strict=True)
    levels = {name: float(line.get_ydata()[0]) for line, name in pairs if name in LEVELS}
    above = [f"{name} {y:.3f} \N{UPWARDS ARROW}" for name, y in levels.items() if y > high]
    below = [f"{name} {y:.3f} \N{DOWNWARDS ARROW}" for name, y in levels.items() if y < low]
    axes.annotate("\n".join(above), (0.99, 0.99), va="top", **place)
    axes.annotate("\n".join(below), (0.99, 0.01), **place)


def name_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    """Bag sizes along a logarithmic axis, each with its name: 2⁰ to 2¹¹ in the paper."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, ["2" + f"{log2(size):.3g}".translate(POWERS) for size in sizes])
    axes.set_xticks([], minor=True)


def _zoom(cells: BestCells, sizes: Sequence[int]) -> tuple[float, float]:
    """As far as the curves and their bars go; but no farther on the wrong side of the trivial
    predictor than the best result is on the right one, so that no failure makes the others one
    line."""
    shown = [average for (_, k), average in cells.learned.items() if k in sizes]
    mean, error = np.array([(average.mean, average.error) for average in shown]).T
    reach = np.nan_to_num(error)
    low, high, trivial = (mean - reach).min(), (mean + reach).max(), cells.trivial
    if cells.metric == "test_auc":
        low = max(low, min(high, 2 * trivial - high))
    elif low < trivial:
        high = min(high, 2 * trivial - low)
    margin = 0.08 * (high - low) or 0.01
    return low - margin, high + margin


def curve_of_means(way: Way, x: Sequence[int], points: np.ndarray, look: CurveLook) -> Series:
    """The curve of a method, with one standard error on both sides.

    Parameters
    ----------
    way : Way
        Whose curve.
    x : sequence of int
        Places of the points.
    points : numpy.ndarray of (points, 2)
        Means and standard errors, NaN where there are too few repetitions for one.
    look : CurveLook
        Of the curve.
    """
    mean, error = points[:, 0], np.nan_to_num(points[:, 1])
    return Series(way.title, x, mean, mean - error, mean + error, look)


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
    """One legend below all panels; levels last, and what the bars are."""
    from matplotlib.lines import Line2D

    named: dict[str, Any] = {}
    hollow = False
    for panel in figure.axes:
        for line, name in zip(*panel.get_legend_handles_labels(), strict=True):
            named.setdefault(name, line)  # of the first panel that has it
        hollow |= any(line.get_markerfacecolor() == "white" for line in panel.get_lines())
    last = [name for name in LEVELS if name in named]
    names = [name for name in named if name not in last] + last
    handles = [named[name] for name in names]
    style: Any = {"color": GREY, "linestyle": ""}
    handles.append(Line2D([], [], marker="|", markersize=9, **style))
    names.append("one standard error")
    if hollow:
        handles.append(Line2D([], [], marker="o", markersize=4, markerfacecolor="white", **style))
        names.append("at an end of rates or epochs")
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
