"""`relate`: targets of all events, weights of all bags and checks, as expressions of Ibis.

The weights are the formulas of `unbag.weights` with windows over strata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import ibis

from unbag._rules import broken
from unbag.bags import label_variance
from unbag.methods import Method
from unbag.sql._checks import find_faults
from unbag.sql._columns import OWN, check_own_names, constant, id_column, number_column, total
from unbag.sql._match import Request, make_request, match_bags, read_events, read_reports
from unbag.tables import ColumnNames, Columns, as_columns

WITHIN, ALL_BAGS = ibis.window(group_by="stratum"), ibis.window()


class Related(NamedTuple):
    """Three expressions that nothing has run yet.

    Parameters
    ----------
    targets : ibis.Table
        The events of all bags with a report, with columns weight_1, weight_2, target and
        sample_weight; for class counts weight_<column> and target_<column> of each class.
    bags : ibis.Table
        One line for each such bag: bag, size, stratum and W_0, W_1, ... (of anchored, those of the
        residual).
    checks : ibis.Table
        One line for each thing that is refused or left out; see `confirm`.
    """

    targets: Any
    bags: Any
    checks: Any


def relate(
    events: Any,
    reports: Any,
    on: str | Sequence[str] | Columns,
    *,
    method: Method | None = None,
    reference: str | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    typed: bool = True,
    **columns: Unpack[ColumnNames],
) -> Related:
    """From reports to signed weights and pseudo-labels, as expressions that any SQL engine of Ibis
    can run.

    The same numbers as `unbag.join`, `unbag.weights` and `unbag.weights.pseudo_labels` give:

        bags = join(...).reported()
        W = upm(bags.size, *bags.components(), weight=..., stratum=...)[bags.bag]
        target = W_2 / W_1,  sample_weight = W_1

    with all bags as one batch, `noise_weights` where noise is declared, and the prior of each
    stratum.

    Parameters
    ----------
    events, reports : ibis.Table
        Tables of a connection, or `ibis.table(schema, name=...)` to write SQL only.
    on : str, sequence of str or Columns
        The column with the bag's id, in both. Ids, strata and statuses are text, whole numbers or
        dates.
    method : {"anchored", "upm", "easy"}, optional
        How weights are made; by default anchored, as in training, and upm where there is no
        reference to anchor at.
    reference : str or sequence of str, optional
        Column of the events with a prediction that was made without the labels of the event's own
        bag (of another fold, or yesterday's model); for class counts one column for each.
    keep : sequence of str, optional
        Columns of the events to hand on; by default all.
    typed : bool
        Whether both tables know the types of their ids, so that text in one and whole numbers in
        the other are refused; False where one comes from CSV files: ids are then compared as text.
    **columns : ColumnNames
        Which other column is what, as for `unbag.join`.

    >>> import ibis
    >>> events = ibis.table({"day": "string", "age": "int64"}, name="events")
    >>> reports = ibis.table({"day": "string", "sales": "int64"}, name="reports")
    >>> relate(events, reports, on="day", total="sales").targets.columns
    ('day', 'age', 'weight_1', 'weight_2', 'target', 'sample_weight')
    """
    said = as_columns(on, columns)
    check_own_names(events.columns, "events")
    check_own_names(reports.columns, "reports")
    request = make_request(events, reports, said, method=method, reference=reference, typed=typed)
    ours, theirs = read_events(events, request), read_reports(reports, request)
    bags = match_bags(ours, theirs, request)
    weighed = _weigh_bags(bags, request)
    kept = list(events.columns)
    if keep is not None:
        kept = list(keep)
    return Related(
        _targets(events, weighed, request, kept),
        weighed,
        find_faults(ours, theirs, bags, weighed, request),
    )


def _weigh_bags(bags: Any, request: Request) -> Any:
    """Weights W of each bag that is usable: one column for each component.

    N is the number of instances of the stratum, `all` that of all strata.
    """
    parts = range(len(request.parts))
    needed = ["bag", "size", "stratum", "noise", *(f"a_{i}" for i in parts)]
    needed += [f"g_{i}" for i in range(len(request.reference))]
    usable = bags.filter(bags.usable).select(*needed)
    usable = usable.mutate(N=usable.size.sum().over(WITHIN), all=usable.size.sum().over(ALL_BAGS))
    sums = {f"p_{i}": (usable.size * usable[f"a_{i}"]).sum().over(WITHIN) for i in parts}
    usable = usable.mutate(**{name: sum_ / usable.N for name, sum_ in sums.items()})
    usable = _with_bag_weights(usable, request)
    if request.method == "anchored":
        usable = _residuals(usable, request)
    formula = {"easy": _easy}.get(request.method, _upm)
    weights = {f"W_{i}": formula(usable, i) for i in parts}
    return usable.select("bag", "size", "stratum", "all", **weights)


def _with_bag_weights(usable: Any, request: Request) -> Any:
    """The weight w of each bag in its stratum: equal, or under noise proportional to 1 / (Var y +
    noise / k)."""
    one = constant(1) / usable.count().over(WITHIN)
    if request.columns.noise is None:
        return usable.mutate(w=one)
    p = [usable[f"p_{i}"] for i in range(len(request.parts))]
    if request.columns.counts is None:
        p = p[1:]  # p_0 is 1
    variances = [label_variance(each, request.columns.reports_are) for each in p]
    # Var y is averaged over strata, one by one: a bag stands for 1 / (bags of its stratum)
    usable = usable.mutate(v=total(variances) / len(p), one=one)
    variance = (usable.v * usable.one).sum().over(ALL_BAGS) / usable.one.sum().over(ALL_BAGS)
    usable = usable.mutate(variance=ibis.greatest(variance, constant(1e-6)))
    usable = usable.mutate(raw=constant(1) / (usable.variance + usable.noise / usable.size))
    return usable.mutate(w=usable.raw / usable.raw.sum().over(WITHIN))


def _residuals(usable: Any, request: Request) -> Any:
    """Reports and priors less the reference: a - mean of g in the bag, p - mean of g in the
    stratum."""
    sums = [usable[f"g_{i}"] for i in range(len(request.reference))]
    if len(sums) < len(request.parts):  # (1, g): the leading 1 has no column
        sums = [usable.size.cast("float64"), *sums]
    less = {}
    for i, g in enumerate(sums):
        less[f"p_{i}"] = usable[f"p_{i}"] - g.sum().over(WITHIN) / usable.N
        less[f"a_{i}"] = usable[f"a_{i}"] - g / usable.size
    return usable.mutate(**less)


def _upm(usable: Any, i: int) -> Any:
    """W = share (w (a - p) + sum of the other bags' g),  g = w (p - k (a - p)) / (N - k)."""
    centred, p = usable[f"a_{i}"] - usable[f"p_{i}"], usable[f"p_{i}"]
    others = (usable.N - usable.size).nullif(0)  # 0 for a lone bag, which the checks refuse
    g = usable.w * (p - usable.size * centred) / others
    return usable.N / usable.all * (usable.w * centred + g.sum().over(WITHIN) - g)


def _easy(usable: Any, i: int) -> Any:
    """W = share w (a - p + p / k)."""
    a, p = usable[f"a_{i}"], usable[f"p_{i}"]
    return usable.N / usable.all * usable.w * (a - p + p / usable.size)


def _targets(events: Any, weighed: Any, request: Request, keep: list[str]) -> Any:
    """The events with the weights of their bag, and what follows from these."""
    bag = id_column(events, request.columns.keys, text=request.text, thing="events")
    marked = events.mutate(**{OWN + "bag": bag})
    names = [name for name in weighed.columns if name == "all" or name.startswith("W_")]
    weights = weighed.select(
        **{OWN + name: weighed[name] for name in names}, **{OWN + "own": weighed.bag}
    )
    rows = marked.inner_join(weights, marked[OWN + "bag"] == weights[OWN + "own"])
    W = _row_weights(rows, request)
    new = {f"weight_{part}": each for part, each in zip(request.parts, W, strict=True)}
    if request.columns.counts is None:
        new |= {"target": W[1] / W[0], "sample_weight": W[0]}
    else:
        scale = total(W)
        new |= {f"target_{part}": W[i] / scale for i, part in enumerate(request.parts)}
        new["sample_weight"] = scale
    _check_names(events, keep, list(new))
    return rows.select(*keep, **new)


def _row_weights(rows: Any, request: Request) -> list[Any]:
    """W of the row's bag; anchored adds g / (number of all instances)."""
    W = [rows[f"{OWN}W_{i}"] for i in range(len(request.parts))]
    if request.method != "anchored":
        return W
    g = [number_column(rows[name]) for name in request.reference]
    if len(g) < len(W):
        g = [constant(1), *g]
    return [own + each / rows[OWN + "all"] for own, each in zip(W, g, strict=True)]


def _check_names(events: Any, keep: list[str], new: list[str]) -> None:
    wrong = [f"{name!r} is not in the events" for name in keep if name not in events.columns]
    # engines take Target for target
    results = {name.lower() for name in new}
    wrong += [f"{name!r} is the name of a result" for name in keep if name.lower() in results]
    if wrong:
        raise broken(
            f"A column to keep must be one of the events, and not {', '.join(new)}",
            wrong[0],
            "Rename it, or name others with {keep}.",
        )


def as_sql(expression: Any, *, dialect: str = "duckdb") -> str:
    """The text of an expression, to paste into a warehouse.

    Parameters
    ----------
    expression : ibis.Table
        What `relate` or `design` gave.
    dialect : str
        duckdb, spark, or another that Ibis knows.

    >>> import ibis
    >>> print(as_sql(ibis.table({"a": "int64"}, name="events"), dialect="duckdb"))
    SELECT
      *
    FROM "events"
    """
    name = {"spark": "pyspark"}.get(dialect, dialect)
    try:
        if name == "pyspark":  # whose SQL depends on options that are there once it is loaded
            getattr(ibis, name)
        return str(ibis.to_sql(expression, dialect=name))
    except (AttributeError, ImportError, ValueError, ibis.common.exceptions.IbisError) as error:
        raise broken(
            "A dialect must be one that Ibis can write here",
            f"{dialect!r} cannot be ({error})",
            'Use duckdb; or spark after pip install "unbag[spark]".',
        ) from error
