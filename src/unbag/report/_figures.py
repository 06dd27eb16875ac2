"""Values in, pictures as inline SVG out: colours come from the page's style, so that they follow
light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from unbag.report._axes import (
    BOTTOM,
    LEFT,
    LETTER,
    LOOKS,
    RIGHT,
    WIDTH,
    Scale,
    frame,
    legend,
    line,
    picture,
    shown,
    spread,
    text,
)


class Series(NamedTuple):
    """Points in order; `low` and `high` are a band around a line, or the intervals of points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


class Level(NamedTuple):
    """A line across at one height."""

    name: str
    y: float


def draw_lines(
    series: Sequence[Series],
    words: str,
    *,
    x: str,
    y: str,
    levels: Sequence[Level] = (),
    marks: Sequence[tuple[float, float]] = (),
    powers: bool = False,
    dots: bool = False,
    most: float | None = None,
) -> str:
    """Curves with bands.

    Parameters
    ----------
    words : what is to be seen, for those who cannot see it.
    x, y : names of the axes. levels : lines across. marks : points to ring, such as what was
        chosen.
    powers : an axis of bag sizes, by powers of two. dots : show each point. most : the picture ends
        at this height.
    """
    named = [(f"look{i % LOOKS}", s.name) for i, s in enumerate(series) if s.name]
    head, top = legend([*named, *(("level", level.name) for level in levels)])
    height = top + 230 + BOTTOM
    across, up = _scales(series, [level.y for level in levels], top, height, powers=powers)
    up = up if most is None else up._replace(high=max(min(up.high, most), up.low + 1e-9))
    inside = [
        _clipped(
            across,
            up,
            "".join(_curve(s, f"look{i % LOOKS}", across, up, dots) for i, s in enumerate(series)),
        )
    ]
    inside += [
        line(LEFT, up(level.y), WIDTH - RIGHT, up(level.y), class_="stroke level")
        for level in levels
    ]
    inside += [
        f'<circle cx="{across(a):.1f}" cy="{up(b):.1f}" r="6" class="ring"/>'
        for a, b in marks
        if isfinite(b)
    ]
    return picture(height, words, frame(across, up, x, y) + "".join(inside) + head)


def _scales(
    series: Sequence[Series], more: Sequence[float], top: float, height: float, *, powers: bool
) -> tuple[Scale, Scale]:
    xs = [float(v) for s in series for v in s.x]
    ys = [
        float(v) for s in series for part in (s.y, s.low, s.high) if part is not None for v in part
    ]
    low, high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    pad = 0.0 if powers or high > low else 0.5
    bottom, ceiling = spread(
        [*ys, *more], whole=powers
    )  # results are shown whole, whatever they are
    return Scale(low - pad, high + pad, LEFT, WIDTH - RIGHT, powers, not powers), Scale(
        bottom, ceiling, height - BOTTOM, top
    )


def _clipped(across: Scale, up: Scale, inside: str) -> str:
    """An inner picture cuts off what leaves the frame."""
    box = f'x="{across.start:g}" y="{up.end:g}" width="{across.end - across.start:g}" height="{up.start - up.end:g}"'
    view = f"{across.start:g} {up.end:g} {across.end - across.start:g} {up.start - up.end:g}"
    return f'<svg {box} viewBox="{view}">{inside}</svg>'


def _curve(series: Series, look: str, across: Scale, up: Scale, dots: bool) -> str:
    """A line broken where a value is unknown, and its band."""
    place = lambda xs, ys: [(across(a), up(b)) for a, b in zip(xs, ys, strict=True) if isfinite(b)]
    parts = []
    if series.low is not None and series.high is not None:
        around = place(series.x, series.high) + place(series.x, series.low)[::-1]
        parts.append(f'<polygon points="{_points(around)}" class="band {look}"/>' if around else "")
    known = np.isfinite(np.asarray(series.y, float))
    for piece in np.split(np.arange(len(known)), np.flatnonzero(np.diff(known.astype(int))) + 1):
        if len(piece) and known[piece[0]]:
            there = place([series.x[i] for i in piece], [series.y[i] for i in piece])
            parts.append(f'<polyline points="{_points(there)}" class="stroke {look}"/>')
            parts += [_dot(a, b, look) for a, b in there if dots or len(there) == 1]
    return "".join(parts)


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in places)


def _dot(x: float, y: float, look: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="dot {look}"/>'


def draw_points(series: Series, words: str, *, x: str, y: str, diagonal: bool = False) -> str:
    """Points with their intervals; with a diagonal, as for calibration, both axes begin at 0."""
    low, high = (
        np.asarray(series.y if part is None else part, float) for part in (series.low, series.high)
    )
    top, height = 12.0, 340.0
    reach = 1.08 * max([1e-9, *(v for v in (*series.x, *series.y) if isfinite(v))])
    known = np.isfinite(low) & np.isfinite(high)
    floor, ceiling = spread(
        [*low[known], *high[known], reach if diagonal else high[known].max()], zero=diagonal
    )
    ends = (0.0, reach) if diagonal else (min(series.x) - 0.5, max(series.x) + 0.5)
    across = Scale(*ends, LEFT, WIDTH - RIGHT, whole=not diagonal)
    up = Scale(floor, ceiling, height - BOTTOM, top)
    inside = (
        line(across(0), up(0), across(reach), up(reach), class_="stroke level") if diagonal else ""
    )
    for a, b, below, above in zip(series.x, series.y, low, high, strict=True):
        if isfinite(b):
            inside += line(
                across(a), up(below), across(a), up(above), class_="stroke look0"
            ) + _dot(across(a), up(b), "look0")
    return picture(height, words, frame(across, up, x, y) + _clipped(across, up, inside))


def draw_bars(
    edges: Sequence[float], heights: Sequence[float], words: str, *, x: str, y: str
) -> str:
    """A histogram."""
    top, height = 12.0, 250.0
    across = Scale(float(edges[0]), float(edges[-1]), LEFT, WIDTH - RIGHT)
    up = Scale(0.0, 1.06 * (max(heights) or 1.0), height - BOTTOM, top)
    bars = ""
    for a, b, h in zip(edges[:-1], edges[1:], heights, strict=True):
        box = f'x="{across(a) + 0.5:.1f}" y="{up(h):.1f}" width="{max(across(b) - across(a) - 1, 0.5):.1f}"'
        bars += f'<rect {box} height="{up.start - up(h):.1f}" class="bar look0"/>'
    return picture(height, words, frame(across, up, x, y) + bars)


class Row(NamedTuple):
    """A name, a value and its interval; `chosen` rows are ringed."""

    name: str
    value: float
    low: float
    high: float
    chosen: bool = False


def draw_intervals(rows: Sequence[Row], words: str, *, x: str) -> str:
    """One line for each row: its name above, its interval and value below it, on a common axis."""
    top = 8.0
    step, height = 34.0, top + 34.0 * len(rows) + BOTTOM
    low, high = _around(rows)
    across, bottom = Scale(low, high, 14.0, WIDTH - 14.0), height - BOTTOM
    inside = "".join(line(across(t), top, across(t), bottom, class_="grid") for t in across.ticks)
    inside += "".join(
        text(across(t), bottom + 17, shown(t), text_anchor="middle", class_="number")
        for t in across.ticks
    )
    inside += text(WIDTH / 2, bottom + 36, x, text_anchor="middle")
    lines = ""
    for i, row in enumerate(rows):
        y = top + step * i + 24
        lines += line(across(row.low), y, across(row.high), y, class_="stroke look0") + _dot(
            across(row.value), y, "look0"
        )
        lines += (
            f'<circle cx="{across(row.value):.1f}" cy="{y:.1f}" r="6.5" class="ring"/>'
            if row.chosen
            else ""
        )
        lines += text(16, y - 10, _fit(row.name) + (" (chosen)" if row.chosen else ""))
    inner = Scale(bottom, top, bottom, top)
    return picture(
        height, words, inside + _clipped(across._replace(start=0.0, end=WIDTH), inner, lines)
    )


def _around(rows: Sequence[Row]) -> tuple[float, float]:
    """The range of all intervals, but not so wide that the first or chosen one becomes a dot."""
    ends = [v for row in rows for v in (row.low, row.high) if isfinite(v)]
    best = next((row for row in rows if row.chosen), rows[0])
    reach = 4 * (best.high - best.low) or np.inf
    low, high = max(min(ends), best.value - reach), min(max(ends), best.value + reach)
    room = 0.04 * (high - low) or 0.5
    return low - room, high + room


def _fit(name: str) -> str:
    """As much of a name as there is room for."""
    room = int((WIDTH - 90) / LETTER)
    return name if len(name) <= room else name[: room - 1] + "…"
