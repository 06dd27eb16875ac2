"""What y may be: labels, what each row's bag reported, or both report and bag in one array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, Kind, from_rows


class RowReports(NamedTuple):
    """What is said of each row.

    Parameters
    ----------
    y : numpy.ndarray
        Its label, or what its bag reported.
    bag, stratum, noise : numpy.ndarray or None
        Of the row's bag, the same throughout it.
    classes : sequence or None
        What the columns of a table of class shares are called.
    """

    y: np.ndarray
    bag: Any = None
    stratum: Any = None
    noise: Any = None
    classes: Any = None


@dataclass(frozen=True, eq=False, slots=True)
class BagReport:
    """What one bag says, as the y of each of its rows; it has no order, so that nothing takes it
    for a label.

    Parameters
    ----------
    bag : object
        Its id.
    report : float or numpy.ndarray
        A proportion, a mean count or class shares.
    size : int
        How many rows it has.
    stratum, noise : optional
        See `BagClassifier.fit`.
    classes : sequence, optional
        What the shares are of.
    """

    bag: Any
    report: Any
    size: int
    stratum: Any = None
    noise: Any = None
    classes: Any = None


def bag_targets(report: Any, bag: Any, *, stratum: Any = None, noise: Any = None) -> np.ndarray:
    """A `y` that carries the bags: what scikit-learn's tools hand on without metadata routing.

    Parameters
    ----------
    report : array or frame
        Of each row what its bag reported: a proportion, a mean count or a row of class shares.
    bag : array
        Id of each row's bag.
    stratum, noise : array, optional
        Of each row's bag, see `BagClassifier.fit`.

    Returns
    -------
    numpy.ndarray
        Of each row the `BagReport` of its bag, which knows how many rows the bag has: one that a
        splitter has cut is refused.

    >>> int(bag_targets([0.5, 0.5, 1.0], ["a", "a", "b"])[0].size)
    2
    """
    shares, classes = as_shares(report)
    bags = from_rows(bag, shares, kind=KINDS[shares.ndim], stratum=stratum, noise=noise)
    names: Any = bags.names
    columns: dict[str, Any] = {"bag": names, "report": bags.report, "size": bags.size}
    if bags.noise is not None:
        columns["noise"] = bags.noise
    if bags.stratum is not None:
        columns["stratum"] = np.asarray(bags.stratum_names)[bags.stratum]
    each = np.empty(len(bags), object)
    for j in range(len(bags)):
        own = {name: values[j] for name, values in columns.items()}
        each[j] = BagReport(**own, classes=classes)
    return each[bags.bag]


# of reports by their dimensions; a proportion is checked when it is learned from
KINDS: dict[int, Kind] = {1: "total", 2: "histogram"}


def carries_bags(y: Any) -> bool:
    """Whether `bag_targets` made this y."""
    return isinstance(y, np.ndarray) and y.size > 0 and isinstance(y.flat[0], BagReport)


def row_reports(y: Any, bag: Any = None, stratum: Any = None, noise: Any = None) -> RowReports:
    """The parts of y, whichever way it carries them.

    Parameters
    ----------
    y : array or frame
        Labels, reports, or what `bag_targets` made.
    bag, stratum, noise : array, optional
        Of each row.
    """
    if not carries_bags(y):
        shares, names = as_shares(_of_rows(y, bag))
        return RowReports(shares, bag, stratum, noise, names)
    if bag is not None:
        raise broken("A y of bag_targets must come alone", "bag given too", "Leave {bag} out.")
    own = {name: np.array([getattr(one, name) for one in y]) for name in ("bag", "report", "size")}
    _check_whole(own["bag"], own["size"])
    more = [np.array([getattr(one, name) for one in y]) for name in ("stratum", "noise")]
    further = [None if values[0] is None else values for values in more]
    return RowReports(own["report"], own["bag"], *further, classes=y[0].classes)


def _of_rows(y: Any, bag: Any) -> Any:
    """Reports of bags that are indexed by the bags' names, as in pandas, for each row."""
    if bag is None or not hasattr(y, "reindex") or len(y) == len(bag):
        return y
    names = np.unique(np.asarray(bag))
    known = np.isin(names, np.asarray(y.index))
    if not known.any():
        return y  # its index says nothing of bags; then its length is refused
    if not known.all() or not y.index.is_unique:
        given = f"bag {names[~known][0]} has none" if not known.all() else ""
        given = given or f"bag {y.index[y.index.duplicated()][0]} has several"
        rule = "Reports indexed by the bags must have one entry for each bag"
        remedy = "Add it, or keep one of them; rows of a bag without a report must be left out."
        raise broken(rule, given, remedy)
    return y.loc[np.asarray(bag)]


def check_rows(rows: RowReports, count: int) -> None:
    """Refuse a y of another length than X.

    Parameters
    ----------
    rows : RowReports
        What is said of each row.
    count : int
        The number of rows of X.
    """
    if len(rows.y) == count:
        return
    given, remedy = f"{len(rows.y)} given for {count} rows", "Give each row its own."
    if rows.bag is not None and len(rows.y) == len(np.unique(np.asarray(rows.bag))):
        given += f", as many as there are bags ({len(rows.y)})"
        remedy = (
            "Give each row what its bag reported, as in y[bag] for bags numbered from 0, or a "
            "pandas Series or DataFrame indexed by the bag ids."
        )
    raise broken("y must have one entry for each row", given, remedy)


def _check_whole(bag: np.ndarray, size: np.ndarray) -> None:
    names, first, here = np.unique(bag, return_index=True, return_counts=True)
    cut = here != size[first]
    if cut.any():
        worst = int(np.argmax(cut))
        raise broken(
            "A bag must stay whole",
            f"bag {names[worst]} has {here[worst]} of its {size[first][worst]} rows here "
            f"({cut.sum()} such)",
            "Split by bag: cv=unbag.BagKFold().",
        )


def as_shares(y: Any) -> tuple[np.ndarray, Any]:
    """y as an array, one entry per row or one column per class; and the names of these columns."""
    names = getattr(y, "column_names", getattr(y, "columns", None))
    if type(y).__module__.startswith("pyarrow") and names is not None:
        values = np.column_stack([np.asarray(column) for column in y.columns])
    else:
        values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:  # a histogram has two classes at least
        return values[:, 0], None
    if values.ndim == 1 or names is None:
        return values, None
    return values, list(names)


def as_reports(y: np.ndarray) -> np.ndarray:
    """What the bags reported as numbers; names of classes are refused.

    Parameters
    ----------
    y : numpy.ndarray
        What is said of each row.
    """
    try:
        return y.astype(float)
    except (TypeError, ValueError) as error:
        raise broken(
            "y must hold numbers, the report of each row's bag",
            f"{str(error).rpartition(': ')[2]} given",
            "Give the share or mean count of each bag; labels of single rows come without {bag}.",
        ) from None


def row_importance(sample_weight: Any, count: int, *, labelled: bool) -> np.ndarray | None:
    """Sample weights of rows that are bags of one, or nothing."""
    if sample_weight is None:
        return None
    if not labelled:
        rule = "Rows in bags must not have weights"
        remedy = "A report speaks of its whole bag; declare noise with Bags(noise=...) instead."
        raise broken(rule, "sample_weight given with bag", remedy)
    weight = np.asarray(sample_weight, float)
    if weight.ndim == 0:
        weight = np.full(count, float(weight))
    right = np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0
    if weight.shape != (count,) or not right:
        raise broken(
            "Sample weights must be finite, not negative, not all zero, and one for each of "
            f"{count} rows",
            f"an array of shape {weight.shape} and sum {weight.sum():g} given",
            "Leave the weights out for equal ones.",
        )
    return weight


LARGE = 50  # bags in which a share of two digits may be any number of rows
MOST_ROUNDED = 0.01  # how far a rounded share may be off
OFTEN = 0.2  # so many impossible shares are no slip


def impossible_shares(bags: Bags) -> str | None:
    """A sentence where exact shares are no whole numbers of rows in many small bags, as they are
    when rows were split one by one; else None.

    Parameters
    ----------
    bags : Bags
        Of shares or class shares.

    >>> from unbag import Bags
    >>> impossible_shares(Bags(np.repeat([0, 1], 7), [2 / 7, 3 / 7])) is None
    True
    >>> impossible_shares(Bags(np.repeat([0, 1], 7), [0.3, 0.4]))[:56]
    'A share must be a whole number of rows: 0.3 of 7 rows is'
    """
    small = bags.size < LARGE
    if bags.kind == "total" or bags.noise_or_zero.any() or not small.any():
        return None
    share, size = bags.report.reshape(len(bags), -1), bags.size[:, None].astype(float)
    off = np.abs(share * size - np.round(share * size)) > MOST_ROUNDED * size
    bad = small & off.any(axis=1)
    if bad.sum() <= OFTEN * small.sum():
        return None
    j = int(np.argmax(bad))
    first, rows = share[j, np.argmax(off[j])], bags.size[j]
    return (
        f"A share must be a whole number of rows: {first:.4g} of {rows} rows is {first * rows:.4g} "
        f"({bad.sum():,} such bags). If rows were split one by one, split whole bags, with "
        "bags.split or unbag.BagKFold: a part of a bag has another share. If noise was added, "
        "declare its variance with noise=."
    )
