"""Results of a store in, figures out: test log loss and AUC over the bag size, as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from unbag.lab.methods import Way
from unbag.lab.reporting import Experiment, Metric, Runs, best_on_test, in_order

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#555555")  # Okabe and Ito: safe for all
MARKERS = "osD^vPX"
FAMILIAR = ("matching:log", "easy:log", "upm:log", "anchored:log", "anchored:square", "likelihood:log")
NAMES: dict[Metric, str] = {"test_loss": "test log loss", "test_auc": "test AUC"}
STYLE: Any = {"font.size": 9, "svg.fonttype": "none", "pdf.fonttype": 42}


def draw(everything: Sequence[Runs], experiments: Sequence[Experiment], metric: Metric, *, smallest: int = 1) -> Figure:
    """One panel for each experiment; bags of at least `smallest`."""
    columns = min(len(experiments), 3)
    rows = -(-len(experiments) // columns)
    alone = len(experiments) == 1
    figure = Figure(figsize=(6.2 if alone else 4.0 * columns, 4.2 if alone else 3.5 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, experiment in zip(panels, experiments, strict=False):
        draw_panel(
            panel, [r for r in everything if r.experiment == experiment and not r.holdout], metric, smallest, alone
        )
    for panel in panels[len(experiments) :]:
        panel.remove()
    if not alone:
        handles = {
            label: h for panel in figure.axes for h, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def draw_panel(panel: Axes, mine: Sequence[Runs], metric: Metric, smallest: int, alone: bool) -> None:
    """Curves with bands of one standard error; labels and the trivial predictor are lines across."""
    curves = [r for r in mine if r.way.method != "labels" and r.size >= smallest]
    ends = []
    for way in in_order([r.way for r in curves]):
        points = [(r.size, found) for r in curves if r.way == way and (found := best_on_test(r, metric))]
        if points:
            ends.append((way, *_curve(panel, way, points)))
    _lines_across(panel, mine, metric)
    _axes(panel, curves, metric)
    if alone:
        _direct_labels(panel, ends)


def _look(way: Way) -> tuple[str, str]:
    number = FAMILIAR.index(str(way)) if str(way) in FAMILIAR else len(FAMILIAR)
    return COLOURS[number], MARKERS[number]


def _curve(panel: Axes, way: Way, points: Sequence) -> tuple[float, float]:
    size, mean, error = (np.array(column) for column in zip(*((k, f.mean, f.error) for k, f in points), strict=True))
    colour, marker = _look(way)
    panel.plot(size, mean, color=colour, marker=marker, markersize=4, linewidth=1.4, label=way.title)
    error = np.nan_to_num(error)
    panel.fill_between(size, mean - error, mean + error, color=colour, alpha=0.18, linewidth=0)
    return float(size[-1]), float(mean[-1])


def _lines_across(panel: Axes, mine: Sequence[Runs], metric: Metric) -> None:
    level = {"trivial predictor": mine[0].trivial if metric == "test_loss" else 0.5} if mine else {}
    labels = [found for r in mine if r.way.method == "labels" and (found := best_on_test(r, metric))]
    level |= {"labels": labels[0].mean} if labels else {}
    for name, value in level.items():
        panel.axhline(value, color="#777777", linewidth=0.9, linestyle=":" if name != "labels" else "--", zorder=0)
        panel.annotate(
            name, (0.01, value), xycoords=("axes fraction", "data"), xytext=(0, 2), textcoords="offset points",
            color="#777777", fontsize=7.5,
        )  # fmt: skip


def _axes(panel: Axes, curves: Sequence[Runs], metric: Metric) -> None:
    sizes = sorted({r.size for r in curves})
    bags = {r.size: r.bags for r in curves}
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(FixedLocator(sizes))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xticks(sizes, [f"$2^{{{np.log2(k):g}}}$" for k in sizes])
    panel.set_xlabel("bag size")
    panel.set_ylabel(NAMES[metric])
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    panel.set_axisbelow(True)
    top = panel.secondary_xaxis("top")
    top.set_xticks(sizes, [_short(bags[k]) for k in sizes], fontsize=6.5, color="#777777")
    top.tick_params(length=0, pad=1)
    top.minorticks_off()
    top.spines["top"].set_visible(False)
    if curves:
        panel.set_title(f"{curves[0].experiment.title}\n", fontsize=9, pad=4)
        panel.annotate(
            "bags:", (0, 1), xycoords="axes fraction", xytext=(-4, 3), textcoords="offset points", ha="right",
            fontsize=6.5, color="#777777",
        )  # fmt: skip


def _short(count: int) -> str:
    """1,234 as it is, 32561 as 33k.

    >>> _short(254), _short(32561)
    ('254', '33k')
    """
    return f"{count / 1000:.0f}k" if count >= 10_000 else f"{count / 1000:.1f}k" if count >= 1000 else str(count)


def _direct_labels(panel: Axes, ends: Sequence[tuple[Way, float, float]]) -> None:
    """Names at the right ends of the curves, moved apart where they would overlap."""
    low, high = panel.get_ylim()
    gap, place = 0.052 * (high - low), -np.inf
    shown = []
    for way, x, y in sorted(ends, key=lambda end: end[2]):
        place = max(y, place + gap)
        shown.append((way, x, y, place))
    shift = max(0.0, place - high)
    for way, _, y, place in shown:
        colour, _ = _look(way)
        panel.annotate(
            way.title, (1.0, y), xycoords=("axes fraction", "data"), xytext=(1.03, place - shift),
            textcoords=("axes fraction", "data"), color=colour, va="center", fontsize=8.5, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
    panel.set_ylim(low, high)


def save(figure: Figure, path: Path) -> list[Path]:
    """The figure as PDF and SVG for papers and as PNG for pages."""
    written = []
    with rc_context(STYLE):
        for ending in ("pdf", "svg", "png"):
            target = path.with_name(f"{path.name}.{ending}")
            figure.savefig(target, dpi=200, facecolor="white", bbox_inches="tight")
            written.append(target)
    return written
