"""Numbers with as few digits as a reader can use."""

from __future__ import annotations

from math import floor, isfinite, log10

from unbag.metrics import Estimate


def short(value: float) -> str:
    """Three digits that matter, and commas in thousands.

    >>> short(0.012345), short(1234.5), short(7), short(0.5), short(float("nan"))
    ('0.0123', '1,234', '7', '0.5', 'unknown')
    """
    if not isfinite(value):
        return "unknown"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def digits(error: float) -> int:
    """Decimals that show an error's first digit, and the second where the first is small; 4 at
    most.

    >>> digits(0.0541), digits(0.0187), digits(2.0), digits(0.0), digits(300.0)
    (2, 3, 1, 4, 0)
    """
    if not (isfinite(error) and error > 0):
        return 4
    power = floor(log10(error))
    second = error < 3 * 10.0**power
    return min(4, max(0, second - power))


def value_of(estimate: Estimate, decimals: int | None = None) -> str:
    """The value of an estimate as text.

    Parameters
    ----------
    estimate : Estimate
        A value with its error.
    decimals : int, optional
        By default as many as the error leaves.
    """
    return _shown(estimate.error, decimals, estimate.value)


def range_of(estimate: Estimate, decimals: int | None = None) -> str:
    """The interval of an estimate as text, with the same digits; see `value_of`."""
    return _shown(estimate.error, decimals, estimate.low, estimate.high)


def _shown(error: float, decimals: int | None, *values: float) -> str:
    if not all(map(isfinite, values)):
        return "unknown"
    if decimals is None:
        decimals = digits(error)
    return " to ".join(f"{value:.{decimals}f}" for value in values)
