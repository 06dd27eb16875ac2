"""A table of events in, the same with the bag of each out: the hash of `unbag.design_bags` as an
expression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import design_bags
from unbag.sql._columns import ibis, text_column, total
from unbag.sql._faults import as_lines

DIGITS = 15


class Designed(NamedTuple):
    """The events with a column `bag`, and the checks of their ids and strata; nothing has run
    yet."""

    events: Any
    checks: Any


def design(
    events: Any,
    id: str,
    *,
    size: int,
    stratum: str | None = None,
    salt: str = "",
    expected: Any = None,
) -> Designed:
    """Assign events to random bags within strata by the hash of `unbag.design_bags`, in any SQL.

    A closed set is cut by the order of the first 15 hexadecimal digits of the MD5 of
    "salt|stratum|id"; arriving events, of which `expected` will come, by the same digits as a
    number modulo the number of bags. The bags are those of `design_bags`, text for text.

    Parameters
    ----------
    events : a table of Ibis without a column `bag`.
    id, stratum : its columns, text or whole numbers.
    size, salt, expected : see `unbag.design_bags`.

    >>> import ibis
    >>> design(ibis.table({"click": "int64"}, name="events"), "click", size=64).events.columns
    ('click', 'bag')
    """
    _check(events, size, stratum, salt, expected)
    api = ibis()
    ids = text_column(events, id, thing="events")
    strata = api.literal("") if stratum is None else text_column(events, stratum, thing="events")
    marked = events.mutate(unbag_id=ids, unbag_stratum=strata)
    text = api.literal(salt + "|") + marked.unbag_stratum + "|" + marked.unbag_id
    marked = marked.mutate(unbag_hash=text.hexdigest("md5").substr(0, DIGITS))
    marked = marked.mutate(unbag_count=marked.count().over(api.window(group_by="unbag_stratum")))
    place = (_closed(marked, size) if expected is None else _arriving(marked, size, expected)).cast(
        "string"
    )
    name = place if stratum is None else marked.unbag_stratum + "/" + place
    return Designed(
        marked.select(*events.columns, bag=name), _faults(marked, size, stratum, expected)
    )


def _check(events: Any, size: int, stratum: str | None, salt: str, expected: Any) -> None:
    """Let `design_bags` refuse what it refuses, by an id for each stratum that is expected."""
    if "bag" in events.columns:
        raise broken(
            "Events to design must have no bag yet",
            "they have a column 'bag'",
            "Rename or drop it.",
        )
    if isinstance(expected, Mapping):
        design_bags(
            list(expected),
            size=size,
            stratum=list(expected) if stratum else None,
            salt=salt,
            expected=expected,
        )
    elif expected is not None:
        design_bags(
            ["a"], size=size, stratum=["a"] if stratum else None, salt=salt, expected=expected
        )
    else:
        design_bags(["a"], size=size, salt=salt, expected=2 * size if isinstance(size, int) else 0)


def _closed(marked: Any, size: int) -> Any:
    """number = (rank * n) // count; in whole numbers only, because engines divide these as
    fractions."""
    api = ibis()
    order = api.window(group_by=marked.unbag_stratum, order_by=[marked.unbag_hash, marked.unbag_id])
    bags = _whole(marked.unbag_count, size)
    steps = api.row_number().over(order) * bags
    return _whole(steps, marked.unbag_count)


def _whole(a: Any, b: Any) -> Any:
    """The whole part of a / b."""
    return ((a - a % b) / b).cast("int64")


def _arriving(marked: Any, size: int, expected: Any) -> Any:
    """number = hash mod n, with the hash read digit by digit, which all engines can."""
    api = ibis()
    digit = lambda i: api.literal("0123456789abcdef").find(marked.unbag_hash.substr(i, 1))
    # as text, because Spark takes the position of a letter, and a short number, as integers of 32
    # bits
    power = lambda i: api.literal(str(16 ** (DIGITS - 1 - i))).cast("int64")
    number = total([digit(i) * power(i) for i in range(DIGITS)])
    bags = lambda count: int(np.round(count / size))
    if not isinstance(expected, Mapping):
        return number % bags(expected)
    return number % marked.unbag_stratum.cases(
        *((str(name), bags(n)) for name, n in expected.items()), else_=None
    )


def _faults(marked: Any, size: int, stratum: str | None, expected: Any) -> Any:
    api = ibis()
    by_id = marked.group_by("unbag_stratum", "unbag_id").aggregate(
        n=marked.count(), all=marked.unbag_count.min()
    )
    first = by_id.group_by("unbag_stratum").aggregate(low=by_id.all.min())
    closed, never = expected is None, api.literal(False)
    named = api.literal("all events") if stratum is None else "stratum " + first.unbag_stratum
    known = [str(name) for name in expected] if isinstance(expected, Mapping) else []
    of_events = {
        "events": (api.literal(True), None),
        "no_events": (api.literal(True), None),
        "event_without_id": (marked.unbag_id.isnull(), None),
        "event_without_stratum": (marked.unbag_stratum.isnull(), None),
        "stratum_not_expected": (
            ~marked.unbag_stratum.isin(known) if known else never,
            "stratum " + marked.unbag_stratum,
        ),
    }
    twice = (by_id.n > 1) & by_id.unbag_id.notnull() if closed else never
    return as_lines(
        [
            (marked, of_events),
            (by_id, {"event_twice": (twice, "event " + by_id.unbag_id)}),
            (first, {"small_stratum": (first.low < 2 * size if closed else never, named)}),
        ]
    )
