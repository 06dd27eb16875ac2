"""Numbers in, as few digits out as a reader can use."""

from __future__ import annotations

from math import floor, isfinite, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.metrics._intervals import Estimate


def short(value: float) -> str:
    """Three digits that matter, and commas in thousands.

    >>> short(0.012345), short(1234.5), short(7), short(0.5), short(float("nan"))
    ('0.0123', '1,234', '7', '0.5', 'unknown')
    """
    if not isfinite(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def digits(error: float) -> int:
    """Decimals that show an error's first digit, and the second where the first is small; 4 at
    most.

    >>> digits(0.0541), digits(0.0187), digits(2.0), digits(0.0), digits(300.0)
    (2, 3, 1, 4, 0)
    """
    if not (isfinite(error) and error > 0):
        return 4
    power = floor(log10(error))
    return min(4, max(0, (1 if error < 3 * 10.0**power else 0) - power))


def value_of(estimate: Estimate, decimals: int | None = None) -> str:
    """The value, with the digits that its error leaves, or so many."""
    d = digits(estimate.error) if decimals is None else decimals
    return f"{estimate.value:.{d}f}" if isfinite(estimate.value) else "unknown"


def range_of(estimate: Estimate, decimals: int | None = None) -> str:
    """The interval, with the same digits."""
    if not (isfinite(estimate.low) and isfinite(estimate.high)):
        return "unknown"
    d = digits(estimate.error) if decimals is None else decimals
    return f"{estimate.low:.{d}f} to {estimate.high:.{d}f}"


def many(count: float, thing: str) -> str:
    """A number with its noun.

    >>> many(1, "bag"), many(12000, "event")
    ('1 bag', '12,000 events')
    """
    return f"{count:,.0f} {thing}{'' if round(count) == 1 else 's'}"
