"""Pictures: functions that draw on a matplotlib Axes, the same for figures, files and report pages.

Each takes numbers and an Axes and returns nothing. Colours are those of the style in force
(`matplotlib.rcParams`), so that a user's own style, the lab's and the page's light and dark all
apply. matplotlib is imported when the first picture is drawn, because it takes half a second.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 3)), (0, (9, 3)))
MOST_BARS, MOST_POINTS = 12, 300
LONG_TAIL = 10  # a number that reaches so many times its median has a logarithmic axis
LONGEST_NAME = 56  # characters that fit across a figure of the page
STREAM_METRICS = {"log_loss": "log loss", "auc": "AUC"}


class CurveLook(NamedTuple):
    """How a curve looks: no two differ by colour alone.

    Parameters
    ----------
    colour, marker : str
        As matplotlib names them.
    dashes : str or tuple
        The style of the line.
    """

    colour: str
    marker: str = "o"
    dashes: Any = "-"


class Series(NamedTuple):
    """Points in order.

    Parameters
    ----------
    name : str
        For the legend; empty for none.
    x, y : sequence of float
        The points; a line is broken where y is NaN.
    low, high : sequence of float, optional
        A band around a line, or the intervals of points.
    look : CurveLook, optional
        By default the next one of the style in force.
    """

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    low: Sequence[float] | np.ndarray | None = None
    high: Sequence[float] | np.ndarray | None = None
    look: CurveLook | None = None


class Level(NamedTuple):
    """A line across.

    Parameters
    ----------
    name : str
        For the legend; empty for none.
    y : float
        Its height.
    dashes : str
        The style of the line.
    """

    name: str
    y: float
    dashes: str = "--"


class Interval(NamedTuple):
    """A value with its interval.

    Parameters
    ----------
    name : str
        What it is of.
    value, low, high : float
        The value and its interval.
    chosen : bool
        Whether to ring it.
    """

    name: str
    value: float
    low: float
    high: float
    chosen: bool = False


def new_figure(width: float = 6.4, height: float = 3.6) -> Figure:
    """An empty figure, outside of pyplot's list of open ones.

    Parameters
    ----------
    width, height : float
        In inches.
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def look(number: int) -> CurveLook:
    """How the curve of this number looks in the style in force."""
    from matplotlib import rcParams

    colours = rcParams["axes.prop_cycle"].by_key().get("color", ["black"])
    return CurveLook(colours[number % len(colours)], dashes=DASHES[number % len(DASHES)])


def limits(
    values: Sequence[float] | np.ndarray, *, room: float = 0.04, outliers: bool = False
) -> tuple[float, float]:
    """The range of values with a little room.

    Parameters
    ----------
    values : sequence of float
        Those that are not finite do not count.
    room : float
        Share of the range that is added on both sides.
    outliers : bool
        Whether far outliers, such as runs that diverged, stay inside.

    >>> limits([1.0, 2.0, 3.0], room=0), limits([0.3, 0.31, 0.32, 0.33, 90.0], room=0)
    ((1.0, 3.0), (0.3, 0.39))
    >>> limits([0.3, 0.31, 0.32, 0.33, 90.0], room=0, outliers=True)
    (0.3, 90.0)
    """
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    if len(known) == 0:
        return 0.0, 1.0
    low, high = known.min(), known.max()
    first, third = np.quantile(known, [0.25, 0.75])
    reach = 3 * (third - first)
    if reach and not outliers:
        low, high = max(low, first - reach), min(high, third + reach)
    margin = room * (high - low)
    if high == low:
        margin = 0.5 * abs(high) or 0.5
    return float(low - margin), float(round(high + margin, 12))


def _tidy(
    axes: Axes, x: str, y: str, *, whole: bool = False, grid: Literal["x", "y"] = "y"
) -> None:
    """Names, a light grid and no box; ticks of x at whole numbers where only these have a
    meaning."""
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid)
    axes.set_axisbelow(True)
    if whole:
        axes.locator_params(axis="x", integer=True)


def _soft() -> str:
    """The colour of what stands back."""
    from matplotlib import rcParams

    return rcParams["xtick.color"]


def _ring(axes: Axes, x: Sequence[float], y: Sequence[float], name: str = "") -> None:
    """Rings, which the legend names."""
    from matplotlib import rcParams

    style = {"markersize": 9, "markerfacecolor": "none", "markeredgecolor": rcParams["text.color"]}
    axes.plot(x, y, "o", label=name, **style)


def draw_legend(axes: Axes) -> None:
    """The names of the curves above the frame, in as many columns as their lengths allow."""
    handles, names = axes.get_legend_handles_labels()
    figure: Any = axes.get_figure()
    if not names:
        return
    room = 11 * figure.get_figwidth()  # letters
    columns = max(1, int(room / (max(map(len, names)) + 6)))
    figure.legend(handles, names, loc="outside upper left", ncols=columns, frameon=False)


def draw_curves(
    axes: Axes,
    series: Sequence[Series],
    *,
    x: str,
    y: str,
    levels: Sequence[Level] = (),
    marks: Sequence[tuple[float, float]] = (),
    mark: str = "chosen",
    dots: bool = False,
    bars: bool = False,
    outliers: bool = False,
    most: float = np.inf,
) -> None:
    """Curves with bands, or with bars at their points.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    series : sequence of Series
        The curves.
    x, y : str
        Names of the axes.
    levels : sequence of Level
        Lines across.
    marks : sequence of (float, float)
        Points to ring, such as what was chosen.
    mark : str
        What the legend calls them.
    dots : bool
        Whether each point has a dot.
    bars : bool
        Whether `low` and `high` are the ends of bars instead of the edges of a band.
    outliers : bool
        Whether the picture reaches as far as the farthest value.
    most : float
        The picture ends at this height.
    """
    for i, each in enumerate(series):
        _draw_curve(axes, each, each.look or look(i), dots=dots, bars=bars)
    for level in levels:
        style = {"color": _soft(), "linestyle": level.dashes, "linewidth": 1.2, "zorder": 0}
        axes.axhline(level.y, label=level.name, **style)
    ringed = [point for point in marks if isfinite(point[1])]
    if ringed:
        _ring(axes, *zip(*ringed, strict=True), name=mark)
    parts = [part for s in series for part in (s.y, s.low, s.high) if part is not None]
    low, high = limits(np.concatenate([*parts, [level.y for level in levels]]), outliers=outliers)
    axes.set_ylim(low, max(min(high, most), low + 1e-9))
    _tidy(axes, x, y, whole=True)


def _draw_curve(axes: Axes, series: Series, look: CurveLook, *, dots: bool, bars: bool) -> None:
    x, y = np.asarray(series.x, float), np.asarray(series.y, float)
    known = np.pad(np.isfinite(y), 1)
    alone = known[1:-1] & ~known[:-2] & ~known[2:]  # no line reaches such a point
    dotted = np.flatnonzero(alone | (dots & known[1:-1])).tolist()
    style: dict[str, Any] = {"color": look.colour, "linestyle": look.dashes}
    if dotted:
        style |= {"marker": look.marker, "markersize": 4, "markevery": dotted}
    # matplotlib leaves out of legends what begins with an underscore
    axes.plot(x, y, label=" " * series.name.startswith("_") + series.name, **style)
    if series.low is not None and series.high is not None:
        low, high = (np.asarray(part, float) for part in (series.low, series.high))
        if bars:
            axes.vlines(x, low, high, color=look.colour, linewidth=1)
        else:
            axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)


def draw_points(
    axes: Axes,
    series: Sequence[Series],
    *,
    x: str,
    y: str,
    levels: Sequence[Level] = (),
    whole: bool = True,
) -> None:
    """Points with their intervals.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    series : sequence of Series
        Points with `low` and `high`; each has the colour of its number.
    x, y : str
        Names of the axes.
    levels : sequence of Level
        A line across for each of the series, in its colour.
    whole : bool
        Whether only whole numbers have a meaning along x.
    """
    for i, each in enumerate(series):
        place, value, low, high = (np.asarray(part, float) for part in each[1:5])
        reach = np.maximum([value - low, high - value], 0)
        own = look(i).colour
        axes.errorbar(
            place, value, reach, fmt="o", markersize=4, capsize=2, color=own, label=each.name
        )
    for i, level in enumerate(levels):
        axes.axhline(level.y, color=look(i).colour, linestyle=level.dashes, linewidth=1, zorder=0)
    _tidy(axes, x, y, whole=whole)


def draw_calibration(axes: Axes, bands: Series, *, source: str = "bags") -> None:
    """Observed against predicted in bands of the score; a calibrated model lies on the diagonal.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    bands : Series
        Predicted (x) and observed (y) means of the bands, with intervals.
    source : str
        Where the observed means come from.
    """
    reach = 1.08 * max(1e-9, np.nanmax(bands.x), np.nanmax(bands.y))
    axes.plot([0, reach], [0, reach], color=_soft(), linestyle="--", linewidth=1.2, zorder=0)
    draw_points(axes, [bands], x="predicted", y=f"observed, from {source}", whole=False)
    low, high = limits(np.concatenate([bands.low, bands.high, [0, reach]]))  # pyright: ignore[reportArgumentType, reportCallIssue]
    axes.set(xlim=(0, reach), ylim=(min(low, 0) * (min(low, 0) < -0.05 * reach), max(high, reach)))


def draw_drift(
    axes: Axes,
    start: np.ndarray,
    prior: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    overall: np.ndarray,
) -> None:
    """The prior of each window of time with its interval, and that of all windows.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    start : array (windows,)
        The first moment of each window.
    prior, low, high : array (windows,) or (windows, classes)
        The prior and its interval.
    overall : array () or (classes,)
        The prior of all windows together.
    """
    window = np.arange(1, len(start) + 1)
    columns = [np.reshape(part, (len(start), -1)).T for part in (prior, low, high)]
    names = [""]
    if np.ndim(prior) > 1:
        names = [f"class {r}" for r in range(np.shape(prior)[1])]
    series = [Series(name, window, *part) for name, *part in zip(names, *columns, strict=True)]
    levels = [Level("", float(value)) for value in np.ravel(overall)]
    time = f"window of time, from {_moment(start[0])} to {_moment(start[-1])}"
    draw_points(axes, series, x=time, y="prior", levels=levels)
    if len(names) > 1:
        axes.legend(fontsize="small", frameon=False)


def _moment(value: object) -> str:
    """The day of a date; other times as they are."""
    text = str(value)
    is_date = len(text) > 10 and text[4:5] == "-"
    if is_date:
        return text[:10]
    return text


def draw_features(axes: Axes, names: Sequence[str], F: Sequence[float]) -> None:
    """F of the features that differ most between bags, the worst first.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    names : sequence of str
        Names of the features.
    F : sequence of float
        Variance between bags against that within.
    """
    shown = np.asarray(F, float)[:MOST_BARS]
    place = np.arange(len(shown))
    axes.barh(place, shown, color=look(0).colour)
    axes.set_yticks(place, [name[:24] for name in names[:MOST_BARS]])
    axes.invert_yaxis()
    axes.axvline(1, color=_soft(), linestyle="--", linewidth=1.2, label="random bags")
    if shown.max() > 50:  # or the small ones could not be seen
        axes.set_xscale("log")
    _tidy(axes, "F: variance between bags / within bags", "", grid="x")
    axes.legend(fontsize="small", frameon=False)


def draw_bag_means(axes: Axes, means: np.ndarray, name: str) -> None:
    """The means of a feature in the bags against what chance would make of them.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    means : array (bags,)
        In standard deviations of chance.
    name : str
        Name of the feature.
    """
    edge = max(4.0, float(np.abs(means).max()))
    bins, z = np.linspace(-edge, edge, 41), np.linspace(-edge, edge, 400)
    axes.hist(means, bins=bins.tolist(), density=True, color=look(0).colour, label="these bags")
    normal = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    axes.plot(z, normal, linestyle="--", color=_soft(), label="random bags")
    words = f"mean of {name[:24]} in a bag, in standard deviations of chance"
    _tidy(axes, words, "density over bags")
    axes.legend(fontsize="small", frameon=False)


def draw_predictions(axes: Axes, values: np.ndarray) -> None:
    """How predictions are distributed.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    values : array (instances,)
        Probabilities or counts; of counts the highest half per cent shares the last bar.
    """
    top = 1.0
    if values.max() > 1:
        top = float(np.quantile(values, 0.995)) or 1.0
    bottom = min(0.0, float(values.min()))
    heights, edges = np.histogram(np.minimum(values, top), bins=25, range=(bottom, top))
    share = 100 * heights / len(values)
    axes.bar(edges[:-1], share, width=0.92 * np.diff(edges), align="edge", color=look(0).colour)
    axes.set_xlim(bottom, top)
    _tidy(axes, "prediction", "share of events, %")


def draw_intervals(axes: Axes, rows: Sequence[Interval], *, x: str) -> None:
    """One line for each row: its name above, its interval and value below it, on a common axis.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    rows : sequence of Interval
        From the top.
    x : str
        Name of the axis.
    """
    name, value, low, high, chosen = (list(column) for column in zip(*rows, strict=True))
    place, own = np.arange(len(rows)), look(0).colour
    axes.hlines(place, low, high, color=own, linewidth=2)
    axes.plot(value, place, "o", color=own, markersize=5)
    for y in np.flatnonzero(chosen):
        _ring(axes, [value[y]], [float(y)])
    for y, text in enumerate(name):
        shown = textwrap.shorten(text, LONGEST_NAME, placeholder="…") + " (chosen)" * chosen[y]
        axes.annotate(shown[: LONGEST_NAME + 10], (0, y - 0.3), xycoords=("axes fraction", "data"))
    # The range of all intervals, but not so wide that the first or chosen one becomes a dot.
    ends = [v for v in (*low, *high) if isfinite(v)]
    best = next((row for row in rows if row.chosen), rows[0])
    reach = 4 * (best.high - best.low)
    if not reach > 0:
        reach = np.inf
    left, right = max(min(ends), best.value - reach), min(max(ends), best.value + reach)
    room = 0.04 * (right - left) or 0.5
    axes.set(xlim=(left - room, right + room), ylim=(len(rows) - 0.5, -0.8), yticks=[])
    axes.spines["left"].set_visible(False)
    _tidy(axes, x, "", grid="x")


def value_text(at: object, *, days: bool = False) -> str:
    """A value of a column as people read it.

    Parameters
    ----------
    at : object
        The value; None where there is none.
    days : bool
        Whether a number counts days since 1970, as the trend of a date does.

    >>> value_text(None), value_text(27.50001), value_text("phone"), value_text(365.0, days=True)
    ('(missing)', '27.5', 'phone', '1971-01-01')
    """
    if at is None:
        return "(missing)"
    if not isinstance(at, float):
        return str(at)
    if days:
        return str(np.datetime64(round(at), "D"))
    if abs(at) >= 100:
        return f"{at:,.0f}"
    return f"{at:.3g}"


def draw_effect(axes: Axes, effect: Any, *, unit: str, classes: Sequence[str] = ("",)) -> None:
    """What one column adds to the score: a line with a band for a number, else a dot for each
    value.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    effect : Effect
        See `unbag.learners.Effect`.
    unit : str
        Of the score.
    classes : sequence of str
        What the columns of a histogram's effect are called.
    """
    at, n = effect.at, len(effect.at)
    value, error = (np.reshape(a, (n, -1)) for a in (effect.effect, effect.error))
    low, high = value - 1.96 * error, value + 1.96 * error
    number = np.array([np.nan if isinstance(v, str) or v is None else v for v in at], float)
    known = np.isfinite(number)
    if known.sum() > 1:
        number, parts = number[known], (a[known].T for a in (value, low, high))
        lines = [Series(name, number, *part) for name, *part in zip(classes, *parts, strict=True)]
        draw_curves(axes, lines, x=effect.name, y=unit, levels=[Level("", 0.0)], outliers=True)
        if effect.days:  # matplotlib counts days from 1970 too
            axes.xaxis_date()
        elif number.min() > 0 and number.max() > LONG_TAIL * np.median(number):
            axes.set_xscale("log")
        return
    order = np.argsort(-np.abs(value).max(axis=1), kind="stable")[:MOST_BARS]
    names = [f"{value_text(at[i])} {c}".strip() for i in order for c in classes]
    parts = (a[order].ravel() for a in (value, low, high))
    rows = [Interval(*row) for row in zip(names, *parts, strict=True)]
    draw_intervals(axes, rows, x=f"{effect.name}: {unit}")
    axes.axvline(0.0, color=_soft(), linestyle="--", linewidth=1.2, zorder=0)


def effects_figure(effects: Sequence[Any], *, unit: str, classes: Sequence[str] = ("",)) -> Figure:
    """The effects of columns, one below the other.

    Parameters
    ----------
    effects : sequence of Effect
        The strongest first.
    unit : str
        Of the score.
    classes : sequence of str
        What the columns of a histogram's effect are called.
    """
    figure = new_figure(6.4, 3.2 * len(effects))
    for axes, effect in zip(np.atleast_1d(figure.subplots(len(effects), 1)), effects, strict=True):
        draw_effect(axes, effect, unit=unit, classes=classes)
    return figure


def stream_column(rows: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    """A column of a stream's log.

    Parameters
    ----------
    rows : sequence of mappings
        The log, one entry per chunk.
    name : str
        Of the column; where it is None or absent there is NaN.
    """
    values = [row.get(name) for row in rows]
    return np.array(values, object).astype(float)


def draw_stream(axes: Axes, rows: Sequence[Mapping[str, Any]], metric: str) -> None:
    """A metric chunk by chunk: from reports with two standard errors, and from labels.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    rows : sequence of mappings
        The log of a stream, one entry per chunk.
    metric : {"log_loss", "auc"}
        Which metric.
    """
    kept = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_POINTS)).astype(int))
    shown = [rows[i] for i in kept]  # more points cannot be told apart
    chunk, mean = stream_column(shown, "chunk"), stream_column(shown, f"window_{metric}")
    error = 2 * stream_column(shown, f"window_{metric}_error")
    series = [
        Series("from reports", chunk, mean, mean - error, mean + error),
        Series("from labels", chunk, stream_column(shown, f"label_{metric}")),
        Series("of the true probability", chunk, stream_column(shown, f"true_{metric}")),
    ]
    known = [each for each in series if np.isfinite(each.y).any()]
    draw_curves(axes, known, x="chunk", y=STREAM_METRICS[metric])


def draw_prior(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """The prior chunk by chunk, with rings where it moved.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    rows : sequence of mappings
        The log of a stream, one entry per chunk.
    """
    chunk, prior = stream_column(rows, "chunk"), stream_column(rows, "prior")
    moved = stream_column(rows, "drift") > 0
    marks = list(zip(chunk[moved].tolist(), prior[moved].tolist(), strict=True))
    curve = [Series("", chunk, prior)]
    draw_curves(axes, curve, x="chunk", y="prior", marks=marks, mark="the prior moved")
