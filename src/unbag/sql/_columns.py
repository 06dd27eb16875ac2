"""Ibis tables and what the user says of their columns in, columns of one type and one name out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from unbag._rules import broken
from unbag.methods import LINEAR, Method, check_method
from unbag.tables._columns import Asked, ids_are_text
from unbag.tables._reports import check_cut
from unbag.tables._sources import Table
from unbag.tables._values import as_moments, as_numbers

OWN = "unbag_"  # begins the names of columns that live inside the expression only
CLOCK = "[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
ZONE = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
TIME = f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]{CLOCK}{ZONE}?)?$"


@dataclass(frozen=True)
class Asking:
    """Which column is what, which method, and the letters of the expression.

    Parameters
    ----------
    columns : as `unbag.join` takes them.
    method : upm, easy or anchored. reference : for anchored, the column(s) of the events with a
        prediction.
    accept_bias, cap : see `unbag.Bags`.
    text : whether bag ids are compared as text. cut : a moment as a number, NaN when there is none.
    """

    columns: Asked
    method: Method
    reference: tuple[str, ...]
    accept_bias: bool
    cap: float | None
    text: bool
    cut: float

    @property
    def parts(self) -> tuple[str, ...]:
        """What the components are called: the classes of a histogram, else 1 and 2."""
        return tuple(self.columns.counts) if self.columns.counts is not None else ("1", "2")


def ask(
    events: Any,
    reports: Any,
    columns: Asked,
    *,
    method: Method,
    reference: Any,
    accept_bias: bool,
    cap: float | None,
    typed: bool,
) -> Asking:
    """Check names and types of the columns before anything is run."""
    check_method(method, among=LINEAR, thing="A method in SQL")
    ours, theirs = _as_table(events, "events", typed), _as_table(reports, "reports", typed)
    variance = columns.noise if isinstance(columns.noise, str) else None
    numbers = [*columns.values, columns.size, variance]
    predictions = _references(columns, method, reference)
    ours.need([columns.on, columns.stratum, columns.time, columns.id, *predictions])
    theirs.need([columns.on, *numbers, columns.status, columns.as_of])
    for table, names in ((ours, predictions), (theirs, numbers)):
        for name in filter(None, names):
            as_numbers(table.source[name], name=name, thing=table.thing)
    for table, name in ((ours, columns.time), (theirs, columns.as_of)):
        if name is not None:
            as_moments(table.source[name], name=name, thing=table.thing)
    text, cut = ids_are_text(ours, theirs, columns.on), check_cut(ours, theirs, columns)
    return Asking(columns, method, predictions, accept_bias, cap, text, cut)


def _as_table(table: Any, thing: str, typed: bool) -> Table:
    """An empty table of the same schema, so that the checks of `join` on names and types serve here
    too."""
    return Table(thing, table.schema().to_pyarrow().empty_table(), typed)


def _references(columns: Asked, method: str, reference: Any) -> tuple[str, ...]:
    names = (reference,) if isinstance(reference, str) else tuple(reference or ())
    wanted = 0 if method != "anchored" else len(columns.values)
    if len(names) != wanted:
        raise broken(
            f"Method {method} must have {wanted or 'no'} column(s) with a reference prediction",
            f"{len(names)} came",
            "Name with reference= one of the events, or one for each class; only anchored has any.",
        )
    return names


def ibis() -> Any:
    """The module, or an error that says how to install it."""
    try:
        return import_module("ibis")
    except ImportError as error:
        raise ImportError(
            'SQL must have Ibis: it is not installed. Use pip install "unbag[sql]".'
        ) from error


def id_column(table: Any, name: str, *, text: bool, thing: str) -> Any:
    """Bag ids as text or as whole numbers; the empty text is missing."""
    return text_column(table, name, thing=thing) if text else table[name].cast("int64")


def text_column(table: Any, name: str, *, thing: str) -> Any:
    """Values as text, written in the same way by all engines."""
    column, kind = table[name], table[name].type()
    if not (kind.is_string() or kind.is_integer() or kind.is_date() or kind.is_boolean()):
        raise broken(
            "Ids, strata and statuses in SQL must be text, whole numbers or dates",
            f"{name!r} of the {thing} has type {kind}",
            "Cast it first, because engines write other types in their own ways.",
        )
    return column.cast("string").nullif("")


def number_column(column: Any) -> Any:
    """Values as numbers; what is no number, also NaN, is missing."""
    if column.type().is_string():
        column = column.try_cast("float64")
    number = column.cast("float64")
    return ibis().ifelse(number.isnan(), ibis().null("float64"), number)


def moment_column(column: Any) -> Any:
    """Times as numbers or moments that can be compared; what is neither, also NaN, is missing.

    Text must look like 2026-11-16 or 2026-11-16 05:30, as for `join`, because each engine takes
    other forms in its own way. The zone is written out, UTC where there is none: engines would drop
    it, or take that of the session.
    """
    if not column.type().is_string():
        return number_column(column) if column.type().is_numeric() else column
    zone = ibis().ifelse(column.re_search(f":.*{ZONE}$"), "", "Z")
    clock = ibis().ifelse(column.length() == len("2026-11-16"), " 00:00:00", "")
    text = ibis().ifelse(column.re_search(TIME), column + clock + zone, ibis().null("string"))
    return text.try_cast("timestamp('UTC')")


def constant(value: float) -> Any:
    """A number in double precision for every engine; Spark would read 1.0 as a decimal, and divide
    it as one."""
    return ibis().literal(repr(float(value))).cast("float64")


def later(column: Any, cut: float) -> Any:
    """Whether a time is the cut or later."""
    if column.type().is_numeric():
        return number_column(column) >= cut
    if column.type().is_date():
        column = column.cast("timestamp")
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=cut)
    return column >= ibis().literal(
        moment if column.type().timezone else moment.replace(tzinfo=None), column.type()
    )


def total(columns: Sequence[Any]) -> Any:
    """The sum of a few columns."""
    whole, *rest = columns
    for column in rest:
        whole = whole + column
    return whole
