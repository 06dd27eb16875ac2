"""Values in, scales, ticks and the frame of a picture out, as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log2, log10
from typing import NamedTuple

import numpy as np

WIDTH, LEFT, RIGHT, BOTTOM = (
    460.0,
    58.0,
    20.0,
    46.0,
)  # wide enough for a page, narrow enough for a phone
LETTER = 6.8  # width of a letter at 12 pixels, about
LOOKS = 6


class Scale(NamedTuple):
    """From values in [low, high] to pixels in [start, end]; by powers of two if `log`; ticks at
    `whole` numbers."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high, value = (log2(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Round values inside."""
        if self.log:
            powers = range(ceil(log2(self.low) - 1e-9), floor(log2(self.high) + 1e-9) + 1)
            return [2.0**i for i in list(powers)[:: max(1, ceil(len(powers) / 8))]]
        return round_values(self.low, self.high, whole=self.whole)


def round_values(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten between two values.

    >>> round_values(0.1, 0.47)
    [0.1, 0.2, 0.3, 0.4]
    """
    if not high > low:
        return [low]
    raw = max((high - low) / 5, 1.0 if whole else 0.0)
    power = 10.0 ** floor(log10(raw))
    step = next(
        m * power
        for m in ((1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10))
        if m * power >= raw * 0.999
    )
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def spread(
    values: Sequence[float], *, room: float = 0.04, zero: bool = False, whole: bool = False
) -> tuple[float, float]:
    """The range of values with a little room; far outliers, as of runs that diverged, are left
    outside unless `whole`.

    >>> spread([1.0, 2.0, 3.0], room=0), spread([0.3, 0.31, 0.32, 0.33, 90.0], room=0)
    ((1.0, 3.0), (0.3, 0.39))
    >>> spread([0.3, 0.31, 0.32, 0.33, 90.0], room=0, whole=True)
    (0.3, 90.0)
    """
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    if len(known) == 0:
        return 0.0, 1.0
    first, third = np.quantile(known, [0.25, 0.75])
    reach = np.inf if whole else 3 * (third - first) or np.inf
    low, high = max(known.min(), first - reach), min(known.max(), third + reach)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    margin = room * (high - low) or 0.5 * abs(high) * (high == low) or (0.5 if high == low else 0.0)
    return float(low - margin * (not zero or low < 0)), float(round(high + margin, 12))


def text(x: float, y: float, words: str, **attributes: str) -> str:
    """Words at a place; all that is not ours is escaped."""
    return f'<text x="{x:.1f}" y="{y:.1f}"{_attributes(attributes)}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, **attributes: str) -> str:
    """A straight line."""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{_attributes(attributes)}/>'
    )


def _attributes(values: dict[str, str]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"' for name, value in values.items()
    )


def shown(value: float) -> str:
    """A tick's number.

    >>> shown(0.30000000000000004), shown(2048.0), shown(2e6)
    ('0.3', '2,048', '2,000,000')
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.6g}"


def frame(x: Scale, y: Scale, x_name: str, y_name: str) -> str:
    """Both axes with grid lines, numbers and names."""
    left, right, bottom, top = x.start, x.end, y.start, y.end
    parts = [line(left, y(t), right, y(t), class_="grid") for t in y.ticks]
    parts += [
        text(left - 6, y(t) + 4, shown(t), text_anchor="end", class_="number") for t in y.ticks
    ]
    parts += [line(left, bottom, right, bottom, class_="axis")]
    parts += [line(x(t), bottom, x(t), bottom + 4, class_="axis") for t in x.ticks]
    parts += [
        text(x(t), bottom + 17, shown(t), text_anchor="middle", class_="number") for t in x.ticks
    ]
    parts += [text((left + right) / 2, bottom + 36, x_name, text_anchor="middle")]
    middle = f"rotate(-90 13 {(top + bottom) / 2:.1f})"
    return "".join(
        [*parts, text(13, (top + bottom) / 2, y_name, text_anchor="middle", transform=middle)]
    )


def legend(names: Sequence[tuple[str, str]]) -> tuple[str, float]:
    """Names with a sample of their line (class, name), in rows from the top; and the height that
    they take."""
    parts, x, y = [], 4.0, 14.0
    for look, name in names:
        width = 34 + LETTER * len(name)
        if x > 4 and x + width > WIDTH:
            x, y = 4.0, y + 18
        parts.append(line(x, y - 4, x + 22, y - 4, class_=f"stroke {look}") + text(x + 27, y, name))
        x += width + 8
    return "".join(parts), y + 12 if names else 8.0


def picture(height: float, words: str, inside: str) -> str:
    """The whole picture, with words for those who cannot see it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:.0f}" role="img"'
    )
    return f'{head} aria-label="{escape(words)}"><title>{escape(words)}</title>{inside}</svg>'
