"""Columns of Ibis tables as ids, text, numbers and moments, in the same way on every engine."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
# (the types of Ibis expressions are known when they are made)

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import ibis

from unbag._rules import broken

OWN = "unbag_"  # begins the names of columns that live inside a query only
CLOCK = "[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
ZONE = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
TIME = f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]{CLOCK}{ZONE}?)?$"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_own_names(names: Sequence[str], thing: str) -> None:
    """Refuse names that a query would mix up: those like its own columns, and two that engines take
    for one, because they differ in case only."""
    ours = [name for name in names if name.lower().startswith(OWN)]
    if ours:
        raise broken(
            f"A column in SQL must not be named {OWN}..., as those that live inside the query",
            f"{ours[0]!r} of the {thing} is",
            "Rename it.",
        )
    lower = [name.lower() for name in names]
    same = [name for name in names if lower.count(name.lower()) > 1]
    if same:
        raise broken(
            "Columns in SQL must differ in more than upper and lower case",
            f"{same[0]!r} and {same[1]!r} of the {thing} do not",
            "Rename one of them.",
        )


def id_column(table: Any, keys: Sequence[str], *, text: bool, thing: str) -> Any:
    """Bag ids as text or as whole numbers, as `unbag.tables.as_ids` has them; the empty text is
    missing."""
    if not text:
        return table[keys[0]].cast("int64")
    texts = [text_column(table, name, thing=thing) for name in keys]
    if len(texts) == 1:
        return texts[0]
    first, *others = (each.replace(",", ",,") for each in texts)
    for each in others:
        first = first + ", " + each
    return first


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
    return ibis.ifelse(number.isnan(), ibis.null("float64"), number)


def number_words(column: Any) -> Any:
    """Numbers as `unbag.tables` writes them: whole ones without a fraction, nan where missing."""
    whole = column.try_cast("int64")
    text = ibis.ifelse(whole == column, whole.cast("string"), column.cast("string"))
    return text.fill_null("nan")


def moment_column(column: Any) -> Any:
    """Times as numbers or moments that can be compared; what is neither, also NaN, is missing.

    Text must look like 2026-11-16 or 2026-11-16 05:30, as for `join`, because each engine takes
    other forms in its own way. The zone is written out, UTC where there is none: engines would drop
    it, or take that of the session.
    """
    if column.type().is_numeric():
        return number_column(column)
    if not column.type().is_string():
        return column
    zone = ibis.ifelse(column.re_search(f":.*{ZONE}$"), "", "Z")
    clock = ibis.ifelse(column.length() == len("2026-11-16"), " 00:00:00", "")
    text = ibis.ifelse(column.re_search(TIME), column + clock + zone, ibis.null("string"))
    return text.try_cast("timestamp('UTC')")


def unclear(column: Any, moment: Any) -> Any:
    """What is written where no time can be read."""
    if not column.type().is_string():
        return ibis.null("string")
    return ibis.ifelse(moment.isnull(), column.nullif(""), ibis.null("string"))


def constant(value: float) -> Any:
    """A number in double precision; Spark would read 1.0 as a decimal, and divide it as one."""
    return ibis.literal(repr(float(value))).cast("float64")


def later(column: Any, cut: float) -> Any:
    """Whether a time is the cut or later."""
    if column.type().is_numeric():
        return column >= cut
    if column.type().is_date():
        column = column.cast("timestamp")
    moment = EPOCH + timedelta(microseconds=cut)
    if not column.type().timezone:
        moment = moment.replace(tzinfo=None)
    return column >= ibis.literal(moment, column.type())


def total(columns: Sequence[Any]) -> Any:
    """The sum of a few columns."""
    whole, *rest = columns
    for column in rest:
        whole = whole + column
    return whole
