"""Events and reports as Ibis tables in; targets of all events, weights of all bags and checks out,
as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from unbag._rules import broken
from unbag.bags import Kind
from unbag.methods import Method
from unbag.sql._columns import OWN, Asking, ask, constant, ibis, id_column, number_column, total
from unbag.sql._counts import match_bags, read_events, read_reports
from unbag.sql._faults import find_faults
from unbag.sql._weights import weigh_bags
from unbag.tables._columns import Asked, Sizes


class Related(NamedTuple):
    """Three expressions that nothing has run yet.

    targets : the events of all bags with a report, with columns weight_1, weight_2, target and
        sample_weight; for class counts weight_<column> and target_<column> of each class.
    bags : one line for each such bag: bag, size, stratum and W_0, W_1, ... (of anchored, those of
        the residual).
    checks : one line for each thing that is refused or left out; see `confirm`.
    """

    targets: Any
    bags: Any
    checks: Any


def relate(
    events: Any,
    reports: Any,
    on: str,
    *,
    total: str | None = None,
    counts: Sequence[str] | None = None,
    proportion: str | None = None,
    kind: Kind | None = None,
    size: str | None = None,
    noise: str | float | None = None,
    status: str | None = None,
    as_of: str | None = None,
    stratum: str | None = None,
    time: str | None = None,
    id: str | None = None,
    cut: Any = None,
    wrong_sizes: Sizes = "refuse",
    cap: float | None = None,
    accept_bias: bool = False,
    method: Method = "upm",
    reference: str | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    typed: bool = True,
) -> Related:
    """From reports to signed weights and pseudo-labels, as expressions that any SQL engine of Ibis
    can run.

    The same numbers as `unbag.join`, `unbag.weights` and `unbag.weights.pseudo_labels` give:

        bags = join(...).reported();  W = upm(bags.size, *bags.components(), weight=...,
        stratum=...)[bags.bag] target = W_2 / W_1,  sample_weight = W_1

    with all bags as one batch, `noise_weights` where noise is declared, and the prior of each
    stratum.

    Parameters
    ----------
    events, reports : tables of Ibis, of a connection or `ibis.table(schema, name=...)` to write SQL
        only.
    on, total, counts, proportion, kind, size, noise, status, as_of, stratum, time, id, cut,
    wrong_sizes, cap,
    accept_bias : see `unbag.join`. Ids, strata and statuses are text, whole numbers or dates.
    method : upm, easy, or anchored, which needs a reference.
    reference : column of the events with a prediction that was made without the labels of the
        event's own bag (of another fold, or yesterday's model); for class counts one column for
        each.
    keep : columns of the events to hand on; by default all.
    typed : whether both tables know the types of their ids, so that text in one and whole numbers
        in the other are refused; False where one comes from CSV files: ids are then compared as
        text.

    >>> import ibis
    >>> events = ibis.table({"day": "string", "age": "int64"}, name="events")
    >>> reports = ibis.table({"day": "string", "sales": "int64"}, name="reports")
    >>> relate(events, reports, on="day", total="sales").targets.columns
    ('day', 'age', 'weight_1', 'weight_2', 'target', 'sample_weight')
    """
    columns = Asked(
        on,
        total,
        counts,
        proportion,
        kind,
        size,
        noise,
        status,
        as_of,
        stratum,
        time,
        id,
        cut,
        wrong_sizes,
    )
    further = {
        "method": method,
        "reference": reference,
        "accept_bias": accept_bias,
        "cap": cap,
        "typed": typed,
    }
    asking = ask(events, reports, columns, **further)
    ours, theirs = read_events(events, asking), read_reports(reports, asking)
    bags = match_bags(ours, theirs, asking)
    weighed = weigh_bags(bags, asking)
    kept = list(events.columns) if keep is None else list(keep)
    return Related(
        _targets(events, weighed, asking, kept),
        weighed,
        find_faults(ours, theirs, bags, weighed, asking),
    )


def _targets(events: Any, weighed: Any, asking: Asking, keep: list[str]) -> Any:
    """The events with the weights of their bag, and what follows from these."""
    marked = events.mutate(
        **{OWN + "bag": id_column(events, asking.columns.on, text=asking.text, thing="events")}
    )
    weights = weighed.select(
        *(c for c in weighed.columns if c == "all" or c.startswith("W_")), own=weighed.bag
    )
    weights = weights.rename({OWN + name: name for name in weights.columns})
    rows = marked.inner_join(weights, marked[OWN + "bag"] == weights[OWN + "own"])
    W = _row_weights(rows, asking)
    named = {f"weight_{part}": each for part, each in zip(asking.parts, W, strict=True)}
    histogram = asking.columns.counts is not None
    scale = total(W) if histogram else W[0]
    by_class = {f"target_{part}": each / scale for part, each in zip(asking.parts, W, strict=True)}
    own = by_class if histogram else {"target": W[1] / scale}
    new = named | own | {"sample_weight": scale}
    _check_names(events, keep, list(new))
    return rows.select(*keep, **new)


def _row_weights(rows: Any, asking: Asking) -> list[Any]:
    """W of the row's bag; anchored adds g / (number of all instances)."""
    W = [rows[f"{OWN}W_{i}"] for i in range(len(asking.parts))]
    if asking.method != "anchored":
        return W
    g = [number_column(rows[name]) for name in asking.reference]
    g = g if len(g) == len(W) else [constant(1), *g]
    return [own + each / rows[OWN + "all"] for own, each in zip(W, g, strict=True)]


def _check_names(events: Any, keep: list[str], new: list[str]) -> None:
    unknown, double = (
        [name for name in keep if name not in events.columns],
        sorted(set(keep) & set(new)),
    )
    if unknown or double:
        wrong = (
            f"{unknown[0]!r} is not in the events"
            if unknown
            else f"{double[0]!r} is the name of a result"
        )
        raise broken(
            f"A column to keep must be one of the events, and not {', '.join(new)}",
            f"{wrong}",
            "Rename it, or name others with keep=.",
        )


def as_sql(expression: Any, *, dialect: str = "duckdb") -> str:
    """The text of an expression, to paste into a warehouse.

    >>> import ibis
    >>> print(as_sql(ibis.table({"a": "int64"}, name="events"), dialect="duckdb"))
    SELECT
      *
    FROM "events"
    """
    api, name = ibis(), {"spark": "pyspark"}.get(dialect, dialect)
    try:
        if name == "pyspark":
            getattr(
                api, name
            )  # Spark's options, which its SQL depends on, are there once it is loaded
        return str(api.to_sql(expression, dialect=name))
    except (AttributeError, ImportError, ValueError, api.common.exceptions.IbisError) as error:
        raise broken(
            "A dialect must be one that Ibis can write here",
            f"{dialect!r} cannot be ({error})",
            'Use duckdb; or spark after pip install "unbag[spark]".',
        ) from error
