"""Figures in the style of papers: panels of experiments, their legends and their files."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from io import StringIO
from math import ceil, log2
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from unbag.plots import Result, draw_experiment, new_figure, size_ticks
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
POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _draw_panel(axes: Axes, result: Result) -> None:
    """An experiment with bag sizes as powers of two, and the numbers of bags above the frame."""
    draw_experiment(axes, result)
    sizes = list(result.bags)
    size_ticks(axes, sizes, ["2" + f"{log2(size):.3g}".translate(POWERS) for size in sizes])
    _number_of_bags(axes, result, sizes)


def _number_of_bags(axes: Axes, result: Result, sizes: Sequence[int]) -> None:
    """A second axis above: how many bags each size leaves."""
    above, style = axes.secondary_xaxis("top"), {"fontsize": 6.5, "color": GREY}
    size_ticks(above, sizes, [_short(result.bags[size]) for size in sizes], **style)
    above.tick_params(length=0, pad=1)
    above.spines["top"].set_visible(False)
    # a longer line would be wider than a panel
    lines = textwrap.wrap(f"number of bags; {result.details}", 50)
    above.set_xlabel("\n".join(lines), labelpad=2, **style)
    axes.set_title(result.data, fontsize=10, fontweight="bold", pad=14 + 8 * len(lines))


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

    with rc_context(PAPER):
        if len(results) == 1:
            figure = new_figure(5.6, 3.6)
            panel = figure.subplots()
            _draw_panel(panel, results[0])
            if zoom:
                _zoom(panel, results[0])
            _name_ends(panel)
            return figure
        columns = min(len(results), 3)
        rows = ceil(len(results) / columns)
        figure = new_figure(3.3 * columns, 2.9 * rows + 0.5)
        for i, result in enumerate(results, 1):
            panel = figure.add_subplot(rows, columns, i)
            _draw_panel(panel, result)
            if zoom:
                _zoom(panel, result)
        share_legend(figure)
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
    """One legend below all panels; levels last."""
    shown = [panel.get_legend_handles_labels() for panel in figure.axes]
    named = {name: line for pair in shown for line, name in zip(*pair, strict=True)}
    last = [name for name in ("labels", "trivial predictor") if name in named]
    names = [name for name in named if name not in last] + last
    handles = [named[name] for name in names]
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
