"""Rows with bag ids, or rows with labels, in; `Bags` out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unbag._arrays import mean_by
from unbag._rules import broken, refuse, rows
from unbag.bags._bags import Bags, take_rows
from unbag.bags._reports import Kind


def random_bags(
    X: Any,
    y: Any,
    *,
    size: int | Sequence[int],
    seed: int,
    kind: Kind = "binary",
    classes: int | None = None,
    stratum: Any = None,
    cap: float | None = None,
    offset: Any = None,
) -> Bags:
    """Shuffle labelled rows into bags, keep of the labels only what each bag would report.

    The rows keep their order; leftover rows that fill no bag are dropped, as in the paper, and
    `dropped` tells how many. `bags.rows` says which row each instance was, so that labels can be
    revealed later.

    Parameters
    ----------
    X : features, one row per instance, or None.
    y : labels: 0 or 1 (binary), counts (total) or class numbers (histogram).
    size : of every bag, or the size of each bag in turn.
    seed : which of the possible bags.
    classes : number of classes for histograms; by default the largest label + 1.
    stratum : of each row; every bag then lies within one stratum. Sizes must be equal.
    offset : of each row, added to its score; see `Bags`.

    >>> random_bags(None, [0, 1, 1, 0, 1, 0, 0], size=2, seed=0)
    Bags(3 bags of 2; 6 instances; binary, prior 0.3333; 1 leftover rows dropped)
    """
    y = _labels(y, kind, classes)
    groups, names = _strata_of_rows(len(y), stratum)
    rng = np.random.default_rng(seed)
    drawn = [_cut_rows(rng.permutation(group), size) for group in groups]
    sizes = np.concatenate([np.diff(ends, prepend=0) for _, ends in drawn])
    chosen = np.concatenate([order for order, _ in drawn])
    if len(sizes) == 0:
        raise broken(
            "Bags must fit into the rows",
            f"bags of {size} came for {len(y)} rows",
            "Make the bags smaller.",
        )
    where = np.argsort(chosen)
    bag, kept = np.repeat(np.arange(len(sizes)), sizes)[where], chosen[where]
    return Bags(
        bag=bag,
        report=mean_by(bag, y[kept], sizes),
        kind=kind,
        X=None if X is None else take_rows(X, kept),
        stratum=None
        if names is None
        else np.repeat(np.arange(len(groups)), [len(ends) for _, ends in drawn]),
        stratum_names=names,
        cap=cap,
        rows=kept,
        dropped=len(y) - len(kept),
        offset=None if offset is None else np.asarray(offset)[kept],
    )


def _labels(y: Any, kind: Kind, classes: int | None) -> np.ndarray:
    """Labels as numbers whose mean over a bag is its report."""
    y = np.asarray(y, float)
    rule, bad, remedy = {
        "binary": (
            "A binary label must be 0 or 1",
            ~np.isin(y, (0, 1)),
            "kind='histogram' or kind='total'",
        ),
        "total": (
            "A count must be finite and not negative",
            ~(np.isfinite(y) & (y >= 0)),
            "counts",
        ),
        "histogram": (
            "A class must be a whole number from 0",
            ~(y >= 0) | (y % 1 != 0),
            "class numbers",
        ),
    }[kind]
    refuse(rule, bad, thing="row", given=y, remedy=f"Use {remedy}.")
    if kind != "histogram":
        return y
    classes = classes or int(y.max()) + 1
    refuse(
        f"A class must be below {classes}",
        y >= classes,
        thing="row",
        given=y,
        remedy="Raise classes=, or leave it out.",
    )
    return np.eye(classes)[y.astype(int)]


def _strata_of_rows(count: int, stratum: Any) -> tuple[list[np.ndarray], np.ndarray | None]:
    if stratum is None:
        return [np.arange(count)], None
    names, number = np.unique(as_ids(stratum, "stratum"), return_inverse=True)
    rows(len(number), count, thing="stratum", of="row")
    return [np.flatnonzero(number == s) for s in range(len(names))], names


def _cut_rows(order: np.ndarray, size: int | Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The rows that fill bags, and where each bag ends among them."""
    sizes = (
        np.full(len(order) // size, size)
        if isinstance(size, int | np.integer)
        else np.asarray(size, int)
    )
    refuse(
        "A bag size must be positive",
        sizes < 1,
        thing="bag",
        given=sizes,
        remedy="Leave empty bags out.",
    )
    ends = np.cumsum(sizes)
    if len(ends) and ends[-1] > len(order):
        raise broken(
            "Bag sizes must fit into the rows",
            f"they add up to {ends[-1]} for {len(order)} rows",
            "Leave some out.",
        )
    return order[: ends[-1] if len(ends) else 0], ends


def from_rows(
    bag_id: Any,
    report: Any = None,
    *,
    y: Any = None,
    X: Any = None,
    kind: Kind = "binary",
    size: Any = None,
    noise: Any = None,
    stratum: Any = None,
    prior: Any = None,
    classes: int | None = None,
    cap: float | None = None,
    status: Any = None,
    accept_bias: bool = False,
    offset: Any = None,
) -> Bags:
    """Bags from rows in any order, each with the id of its bag (whole numbers or strings).

    Parameters
    ----------
    bag_id : one per row.
    report : what each bag reported: one value per row, the same throughout a bag, or a mapping from
        bag id.
    y : instead of reports, labels of the rows; each bag reports their mean.
    X : features, one row per row.
    size : reported sizes, to be checked against the rows; per row or a mapping, like the reports.
    noise, stratum : per row or a mapping, like the reports; strata may have any ids.
    prior : label marginal if known; with strata, one for each in sorted order.
    status : of each report, per row or a mapping; bags that a mapping leaves out are observed. The
        others need no report. accept_bias : see `Bags`.
    offset : of each row, added to its score; see `Bags`.

    >>> from_rows(["b", "a", "b"], {"a": 1.0, "b": 0.5})
    Bags(2 bags of 1 to 2; 3 instances; binary, prior 0.6667)
    """
    names, first, bag = np.unique(as_ids(bag_id, "bag id"), return_index=True, return_inverse=True)
    if (report is None) == (y is None):
        raise broken(
            "Bags must have either reports or labels",
            "both or neither came",
            "Give {report} or {y}.",
        )
    if status is not None:
        status = _statuses(status, names, first, bag)
        report, noise = (_without_missing(values, status, names) for values in (report, noise))
    if y is not None:
        y = _labels(y, kind, classes)
        rows(len(y), len(bag), thing="y", of="row")
        report = mean_by(bag, y, np.bincount(bag))
    else:
        report = _per_bag(report, "report", names, first, bag)
    called = None
    if stratum is not None:
        ids = as_ids(_per_bag(stratum, "stratum", names, first, bag), "stratum")
        called, stratum = np.unique(ids, return_inverse=True)
    if size is not None:
        _check_sizes(_per_bag(size, "size", names, first, bag), np.bincount(bag))
    if noise is not None:
        noise = _per_bag(noise, "noise", names, first, bag)
    return Bags(
        bag,
        report,
        kind,
        X=X,
        noise=noise,
        stratum=stratum,
        stratum_names=called,
        known_prior=prior,
        cap=cap,
        names=names,
        rows=np.arange(len(bag)),
        status=status,
        accept_bias=accept_bias,
        offset=offset,
    )


def _statuses(status: Any, names: np.ndarray, first: np.ndarray, bag: np.ndarray) -> np.ndarray:
    """The status of each bag; those that a mapping leaves out are observed."""
    if isinstance(status, Mapping):
        status = dict.fromkeys(names.tolist(), "observed") | dict(status)
    return _per_bag(status, "status", names, first, bag)


def _without_missing(values: Any, status: np.ndarray, names: np.ndarray) -> Any:
    """A mapping with NaN for the bags that are not observed and not in it; anything else as it
    came."""
    if not isinstance(values, Mapping) or len(values) == 0:
        return values
    nothing = np.full_like(np.asarray(next(iter(values.values())), float), np.nan)
    return dict.fromkeys(names[status != "observed"].tolist(), nothing) | dict(values)


def as_ids(ids: Any, thing: str) -> np.ndarray:
    """Ids that can be sorted and compared, or an error: mixed types would compare as text,
    silently."""
    array = ids if isinstance(ids, np.ndarray) else np.asarray(ids, dtype=object)
    if array.ndim != 1:
        raise broken(
            f"A {thing} must be one value per row",
            f"an array of shape {array.shape} came",
            "Flatten it.",
        )
    if array.dtype == object:
        missing = np.array([value is None or value != value for value in array], bool)
        types = sorted({_type_name(value) for value in array[~missing]})
        array = np.array(list(array)) if not missing.any() and len(types) == 1 else array
    else:
        missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), bool)
        types = [array.dtype.name]
    refuse(
        f"A {thing} must not be missing",
        missing,
        thing="row",
        given=array,
        remedy="Drop such rows or give them a bag.",
    )
    if len(types) > 1:
        raise broken(
            f"A {thing} must be of one type",
            f"{' and '.join(types)} came",
            "Turn all into strings or all into integers.",
        )
    return array


def _type_name(value: Any) -> str:
    kinds = {
        bool: "bool",
        int: "int",
        np.integer: "int",
        float: "float",
        np.floating: "float",
        str: "str",
    }
    return next(
        (name for kind, name in kinds.items() if isinstance(value, kind)), type(value).__name__
    )


def _per_bag(
    values: Any, what: str, names: np.ndarray, first: np.ndarray, bag: np.ndarray
) -> np.ndarray:
    """One value for each bag, from a mapping or from rows that agree within each bag."""
    if isinstance(values, Mapping):
        return _from_mapping(values, what, names)
    values = np.asarray(values)
    rows(len(values), len(bag), thing=what, of="row")
    of_bag = values[first]
    differs = values != of_bag[bag]
    differs = differs.any(axis=1) if differs.ndim > 1 else differs
    differs &= ~((values != values) & (of_bag[bag] != of_bag[bag])).reshape(len(values), -1).all(
        axis=1
    )
    if differs.any():
        row = int(np.argmax(differs))
        count = len(np.unique(bag[differs]))
        raise broken(
            f"A {what} must be the same for all rows of a bag",
            (
                f"bag {names[bag[row]]!s} has {of_bag[bag[row]]} and {values[row]} ({count} such "
                f"bag{('s' if count > 1 else '')})"
            ),
            f"Give every row its bag's {what}, or pass labels of the rows as {{y}}.",
        )
    return of_bag


def _from_mapping(values: Mapping[Any, Any], what: str, names: np.ndarray) -> np.ndarray:
    keys = [name.item() if hasattr(name, "item") else name for name in names]
    missing = [key for key in keys if key not in values]
    if missing:
        raise broken(
            f"Every bag must have a {what}",
            (
                f"bag {missing[0]} has none ({len(missing)} such "
                f"bag{('s' if len(missing) > 1 else '')})"
            ),
            "Add it, or leave the rows of that bag out.",
        )
    empty = sorted(set(values) - set(keys), key=str)
    if empty:
        raise broken(
            "A bag must hold at least one instance",
            (
                f"bag {empty[0]} has a {what} and no rows ({len(empty)} such "
                f"bag{('s' if len(empty) > 1 else '')})"
            ),
            f"Drop its {what}, or add its rows.",
        )
    return np.asarray([values[key] for key in keys])


def _check_sizes(reported: np.ndarray, counted: np.ndarray) -> None:
    refuse(
        "A reported size must be the number of rows of the bag",
        reported != counted,
        thing="bag",
        given=[f"{r} reported and {c} rows" for r, c in zip(reported, counted, strict=True)],
        remedy="Find the missing or doubled rows: the estimate is biased without them.",
    )
