"""Who breaks the rules on single bags: written once, for arrays and for columns of a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, or_
from typing import Any, NamedTuple, get_args

from unbag.bags import HIDDEN_BY_VALUE, Status, largest_report
from unbag.tables._columns import Columns

Finds = dict[str, tuple[Any, tuple[Any, ...]]]
WHOLE = 1e-9  # how close a count is to a whole number
LARGEST = 2.0**53  # of a number with a fraction in double precision


class Engine(NamedTuple):
    """What arrays and columns of a database do in different ways.

    Parameters
    ----------
    isin, finite, where : callable
        As those of NumPy.
    sure : callable
        A comparison, false where a number is missing: so that its opposite is true there.
    none : callable
        Whether something is true of no bag at all.
    """

    isin: Callable[[Any, Sequence[str]], Any]
    finite: Callable[[Any], Any]
    where: Callable[[Any, Any, Any], Any]
    sure: Callable[[Any], Any]
    none: Callable[[Any], Any]


def bag_checks(
    bags: Any, values: Sequence[Any], shares: Sequence[Any], columns: Columns, engine: Engine
) -> Finds:
    """Of each rule which bags break it (or what is added up), and words on a bag, part by part.

    Parameters
    ----------
    bags : BagTable or ibis.Table
        Of each bag with events `name`, `size`, `reported_size`, `noise`, `status`, and whether it
        `has_report`, is `late`, `wrong` in its size, `used`, `usable` and `exact`.
    values, shares : sequence of arrays or columns
        What the bags reported, and the same for each event.
    columns : Columns
        What the user says of the columns.
    engine : Engine
        How such columns are worked on.
    """
    has, whole = ("bag ", bags.name, " has "), reduce(add, values)
    known = engine.isin(bags.status, get_args(Status))
    hidden = engine.isin(bags.status, HIDDEN_BY_VALUE) & (not columns.accept_bias)
    variance = engine.finite(bags.noise) & (bags.noise >= 0)
    reported, leave_out = bags.has_report & bags.used, columns.wrong_sizes == "leave_out"
    sizes = (*has, bags.reported_size, " reported and ", bags.size, " in the table")
    return {
        "bags": (bags.used, ()),
        "observed": (bags.usable, ()),
        "instances": (engine.where(bags.used, bags.size, 0), ()),
        "wrong_size": (bags.wrong & (not leave_out), sizes),
        "unknown_status": (reported & ~known, (*has, bags.status)),
        "hidden_by_value": (reported & hidden, (*has, bags.status)),
        "report_not_finite": (bags.usable & ~engine.finite(whole), (*has, whole)),
        "wrong_noise": (bags.usable & ~variance, (*has, bags.noise)),
        "late_bag": (bags.late, (bags.name,)),
        "other_size": (bags.wrong & ~bags.late & leave_out, (bags.name,)),
        "bag_without_report": (bags.used & ~bags.has_report, (bags.name,)),
        "not_observed": (reported & ~bags.usable & known, (bags.name, " is ", bags.status)),
        **_fractions(bags, values, columns, engine),
        **_impossible(bags, whole, shares, columns, engine),
    }


def _fractions(bags: Any, values: Sequence[Any], columns: Columns, engine: Engine) -> Finds:
    """Counts that are none: proportions, or sums to which noise was added."""
    if columns.proportion is not None or columns.reports_are == "total":
        return {}
    # larger numbers are whole, and databases round to whole numbers, which cannot hold all of them
    small = [engine.where((v > -LARGEST) & (v < LARGEST), v, 0) for v in values]
    broken = [_outside(value - value.round(), 0, 0, WHOLE) for value in small]
    first = values[-1]
    for value, bad in zip(values[-2::-1], broken[-2::-1], strict=True):
        first = engine.where(bad, value, first)
    fraction, has = bags.usable & reduce(or_, broken), ("bag ", bags.name, " has ", first)
    if columns.total is None:
        return {"fractional_count": (fraction & bags.exact, has)}
    between = engine.sure((values[0] >= 0) & (values[0] <= 1))
    inside = engine.none(bags.usable & ~between)
    return {
        "proportion_as_total": (fraction & inside, (*has, " of ", bags.size)),
        "fractional_count": (fraction & bags.exact & ~inside, has),
    }


def _impossible(
    bags: Any, whole: Any, shares: Sequence[Any], columns: Columns, engine: Engine
) -> Finds:
    """Reports without noise that no labels could give."""
    high = largest_report(columns.reports_are, columns.cap)
    outside = reduce(or_, [_outside(share, 0, high, 1e-9) for share in shares])
    exact, has = bags.usable & bags.exact, ("bag ", bags.name, " has ")
    if columns.counts is not None:
        apart = _outside(whole - bags.size, 0, 0, 1e-6 * bags.size)
        return {"impossible_counts": (exact & (outside | apart), (*has, whole, " of ", bags.size))}
    if columns.total is not None and columns.reports_are == "binary":
        return {"impossible_total": (exact & outside, (*has, whole, " of ", bags.size))}
    if columns.proportion is None or columns.reports_are != "binary":
        return {"impossible_report": (exact & outside, (*has, shares[0]))}
    totals = engine.none(bags.usable & _outside(shares[0] - shares[0].round(), 0, 0, WHOLE))
    return {
        "total_as_proportion": (exact & outside & totals, (*has, shares[0])),
        "impossible_proportion": (exact & outside & ~totals, (*has, shares[0])),
    }


def _outside(value: Any, low: float, high: float, tolerance: Any) -> Any:
    return (value < low - tolerance) | (value > high + tolerance)
