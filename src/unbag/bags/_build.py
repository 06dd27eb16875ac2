"""Bags from rows: rows with the ids of their bags, or labelled rows to be put into random bags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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
    """Shuffle labelled rows into bags, and keep of the labels only what each bag would report.

    The rows keep their order. Leftover rows that fill no bag are dropped, as in the paper;
    `bags.dropped` is their number. `bags.rows` says which row each instance was, so that labels can
    be revealed later.

    Parameters
    ----------
    X : array, sparse matrix or table, optional
        Features, one row per instance.
    y : array
        Labels: 0 or 1 (binary), counts (total) or class numbers (histogram).
    size : int or sequence of int
        Of every bag, or of each bag in turn.
    seed : int
        Which of the possible bags.
    kind : {"binary", "total", "histogram"}
        What the bags report.
    classes : int, optional
        Number of classes for histograms; by default the largest label + 1.
    stratum : array, optional
        Of each row; every bag then lies within one stratum. Sizes must be equal.
    cap : float, optional
        For totals, the largest count one instance can have.
    offset : array of float, optional
        Of each row, added to its score; see `Bags`.

    >>> random_bags(None, [0, 1, 1, 0, 1, 0, 0], size=2, seed=0)
    Bags(3 bags of 2; 6 instances; binary, prior 0.3333; 1 leftover rows dropped)
    """
    y = _labels(y, kind, classes)
    groups, names = [np.arange(len(y))], None
    if stratum is not None:
        names, number = np.unique(as_ids(stratum, "stratum"), return_inverse=True)
        rows(len(number), len(y), thing="stratum", of="row")
        groups = [np.flatnonzero(number == s) for s in range(len(names))]
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(group) for group in groups]
    sizes = [_sizes(len(order), size) for order in orders]
    chosen = np.concatenate([o[: s.sum()] for o, s in zip(orders, sizes, strict=True)])
    size_of_bag = np.concatenate(sizes)
    if len(size_of_bag) == 0:
        raise broken(
            "Bags must fit into the rows",
            f"bags of {size} given for {len(y)} rows",
            "Make the bags smaller.",
        )
    where = np.argsort(chosen)
    kept = chosen[where]
    bag = np.repeat(np.arange(len(size_of_bag)), size_of_bag)[where]
    known: dict[str, Any] = {}
    for name, values in (("X", X), ("offset", offset)):
        if isinstance(values, list | tuple):
            values = np.asarray(values)
        if values is not None:
            known[name] = take_rows(values, kept)
    if names is not None:
        known["stratum"] = np.repeat(np.arange(len(groups)), [len(s) for s in sizes])
    report = mean_by(bag, y[kept], size_of_bag)
    dropped = len(y) - len(kept)
    return Bags(
        bag, report, kind, stratum_names=names, cap=cap, rows=kept, dropped=dropped, **known
    )


def _labels(y: Any, kind: Kind, classes: int | None) -> np.ndarray:
    """Labels as numbers whose mean over a bag is its report."""
    try:
        y = np.asarray(y, float)
    except (TypeError, ValueError):
        words = np.asarray(y).dtype
        raise broken(
            "Labels must be numbers",
            f"an array of type {words} given",
            "Write y == 'yes', say, for binary labels, and class numbers from 0 for more classes.",
        ) from None
    if y.ndim != 1:
        raise broken(
            "Labels must be one number for each row",
            f"an array of shape {y.shape} given",
            "Write y.argmax(axis=1), say, for columns of zeros and ones.",
        )
    if kind == "binary":
        rule, bad = "A binary label must be 0 or 1", ~np.isin(y, (0, 1))
        remedy = "Use {kind:histogram} or {kind:total}."
    elif kind == "total":
        rule, bad = "A count must be finite and not negative", ~(np.isfinite(y) & (y >= 0))
        remedy = "Use counts."
    else:
        rule, bad = "A class must be a whole number from 0", ~(y >= 0) | (y % 1 != 0)
        remedy = "Use class numbers."
    refuse(rule, bad, thing="row", given=y, remedy=remedy)
    if kind != "histogram":
        return y
    classes = classes or int(y.max()) + 1
    remedy = "Raise {classes}, or leave it out."
    refuse(f"A class must be below {classes}", y >= classes, thing="row", given=y, remedy=remedy)
    return np.eye(classes)[y.astype(int)]


def _sizes(count: int, size: int | Sequence[int]) -> np.ndarray:
    """The sizes of the bags that so many rows fill."""
    sizes = np.asarray(size, int)
    if sizes.ndim == 0:
        if sizes < 1:
            raise broken("A bag size must be positive", f"{size} given", "Use 64, say.")
        sizes = np.full(count // sizes, sizes)
    remedy = "Leave empty bags out."
    refuse("A bag size must be positive", sizes < 1, thing="bag", given=sizes, remedy=remedy)
    if sizes.sum() > count:
        raise broken(
            "Bag sizes must fit into the rows",
            f"they add up to {sizes.sum()} for {count} rows",
            "Leave some out.",
        )
    return sizes


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
    bag_id : array of int or str
        One per row.
    report : array or mapping, optional
        What each bag reported: one value per row, the same throughout a bag, or a mapping from
        bag id.
    y : array, optional
        Instead of reports, labels of the rows; each bag reports their mean.
    X : array, sparse matrix or table, optional
        Features, one row per row.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    size : array or mapping, optional
        Reported sizes, to be checked against the rows.
    noise, stratum : array or mapping, optional
        Per row or by bag id, like the reports; one number is the noise of every bag, and strata
        may have any ids.
    prior : float or array, optional
        Label marginal if known; with strata, one for each in sorted order.
    classes : int, optional
        Number of classes of `y`; by default the largest label + 1.
    cap : float, optional
        For totals, the largest count one instance can have.
    status : array or mapping, optional
        Of each report; bags that a mapping leaves out are observed. The others need no report.
    accept_bias : bool
        Whether reports hidden for their value may be left out; see `Reports`.
    offset : array of float, optional
        Of each row, added to its score; see `Bags`.

    >>> from_rows(["b", "a", "b"], {"a": 1.0, "b": 0.5})
    Bags(2 bags of 1 to 2; 3 instances; binary, prior 0.6667)
    """
    ids = as_ids(bag_id, "bag id")
    if X is not None:
        rows(len(ids), X.shape[0], thing="bag", of="row")
    grouped = _Grouped(*np.unique(ids, return_index=True, return_inverse=True))
    if (report is None) == (y is None):
        raise broken(
            "Bags must have either reports or labels",
            "both or neither given",
            "Give {report} or {y}.",
        )
    if isinstance(status, Mapping):  # those that it leaves out are observed
        status = dict.fromkeys(grouped.names.tolist(), "observed") | dict(status)
    status = grouped.per_bag(status, "status")
    if status is not None:  # bags without a report may be absent from mappings
        report, noise = (grouped.with_gaps(values, status) for values in (report, noise))
    report = grouped.per_bag(report, "report")
    if y is not None:
        report = grouped.means(_labels(y, kind, classes))
    stratum_names, stratum = None, grouped.per_bag(stratum, "stratum")
    if stratum is not None:
        stratum_names, stratum = np.unique(as_ids(stratum, "stratum"), return_inverse=True)
    grouped.check_sizes(grouped.per_bag(size, "size"))
    return Bags(
        grouped.bag,
        report,  # pyright: ignore[reportArgumentType]  (there is one: checked above)
        kind,
        X=X,
        noise=grouped.per_bag(noise, "noise"),
        stratum=stratum,
        stratum_names=stratum_names,
        known_prior=prior,
        cap=cap,
        names=grouped.names,
        rows=np.arange(len(grouped.bag)),
        status=status,
        accept_bias=accept_bias,
        offset=offset,
    )


_WHERE_LABELS = {"report": "; where these are labels of the rows, their mean in each bag"}


class _Grouped(NamedTuple):
    """Rows by bag: the bags' names, the first row of each, and the bag number of each row."""

    names: np.ndarray
    first: np.ndarray
    bag: np.ndarray

    def per_bag(self, values: Any, what: str) -> np.ndarray | None:
        """One value for each bag, from a mapping or from rows that agree within each bag."""
        if values is None:
            return None
        if isinstance(values, Mapping):
            return self._from_mapping(values, what)
        values = np.asarray(values)
        if what == "noise" and values.ndim == 0:  # one variance for all, as `join` takes it
            values = np.full(len(self.bag), values)
        rows(len(values), len(self.bag), thing=what, of="row")
        expected = values[self.first][self.bag]
        # NaN agrees with NaN: all rows of a pending bag may have it
        agrees = (values == expected) | ((values != values) & (expected != expected))
        differs = ~agrees.reshape(len(values), -1).all(axis=1)
        if differs.any():
            row = int(np.argmax(differs))
            offender = f"{self.names[self.bag[row]]!s} has {expected[row]} and {values[row]}"
            raise broken(
                f"A {what} must be the same for all rows of a bag",
                f"bag {offender} {_such_bags(len(np.unique(self.bag[differs])))}",
                f"Give every row its bag's {what}{_WHERE_LABELS.get(what, '')}.",
            )
        return values[self.first]

    def _from_mapping(self, values: Mapping[Any, Any], what: str) -> np.ndarray:
        keys = self.names.tolist()
        missing = [key for key in keys if key not in values]
        if missing:
            raise broken(
                f"Every bag must have a {what}",
                f"bag {missing[0]} has none {_such_bags(len(missing))}",
                "Add it, or leave the rows of that bag out.",
            )
        empty = sorted(set(values) - set(keys), key=str)
        if empty:
            raise broken(
                "A bag must hold at least one instance",
                f"bag {empty[0]} has a {what} and no rows {_such_bags(len(empty))}",
                f"Drop its {what}, or add its rows.",
            )
        return np.asarray([values[key] for key in keys])

    def means(self, y: np.ndarray) -> np.ndarray:
        """The mean label of each bag, of labels of the rows."""
        rows(len(y), len(self.bag), thing="y", of="row")
        return mean_by(self.bag, y, np.bincount(self.bag))

    def with_gaps(self, values: Any, status: np.ndarray) -> Any:
        """A mapping with NaN for the bags that are not observed and not in it; else the values."""
        if not isinstance(values, Mapping) or len(values) == 0:
            return values
        nothing = np.full_like(np.asarray(next(iter(values.values())), float), np.nan)
        return dict.fromkeys(self.names[status != "observed"].tolist(), nothing) | dict(values)

    def check_sizes(self, reported: np.ndarray | None) -> None:
        if reported is None:
            return
        counted = np.bincount(self.bag)
        refuse(
            "A reported size must be the number of rows of the bag",
            reported != counted,
            thing="bag",
            given=[f"{r} reported and {c} rows" for r, c in zip(reported, counted, strict=True)],
            remedy="Find the missing or doubled rows: the estimate is biased without them.",
            names=self.names,
        )


def _such_bags(count: int) -> str:
    return f"({count} such bag{'s' * (count > 1)})"


def as_ids(ids: Any, thing: str) -> np.ndarray:
    """Ids that can be sorted and compared; mixed types, which would compare as text, are refused.

    Parameters
    ----------
    ids : array or sequence
        One for each row.
    thing : str
        What messages call one of them.
    """
    array = ids
    if not isinstance(ids, np.ndarray):
        array = np.asarray(ids, dtype=object)
    if array.ndim != 1:
        raise broken(
            f"A {thing} must be one value per row",
            f"an array of shape {array.shape} given",
            "Flatten it.",
        )
    missing = array != array
    if array.dtype == object:
        missing = np.asarray(missing | (array == None), bool)  # noqa: E711  (of each entry)
    remedy = "Drop such rows or give them a bag."
    refuse(f"A {thing} must not be missing", missing, thing="row", given=array, remedy=remedy)
    if array.dtype != object:
        return array
    # NumPy's numbers count as Python's
    values = [getattr(value, "item", lambda value=value: value)() for value in array]
    types = sorted({type(value).__name__ for value in values})
    if len(types) > 1:
        raise broken(
            f"A {thing} must be of one type",
            f"{' and '.join(types)} given",
            "Turn all into strings or all into integers.",
        )
    return np.array(list(array))
