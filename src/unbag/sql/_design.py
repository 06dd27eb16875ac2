"""Events assigned to bags by the hash of `unbag.design_bags`, as an expression of Ibis."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
# (the types of Ibis expressions are known when they are made)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import ibis
import numpy as np

from unbag._rules import broken
from unbag.bags import design_bags
from unbag.sql._checks import ALWAYS, NOTHING, Look, as_lines
from unbag.sql._columns import check_own_names, text_column, total

DIGITS = 15


class Designed(NamedTuple):
    """Expressions that nothing has run yet.

    Parameters
    ----------
    events : ibis.Table
        The events with a column `bag`.
    checks : ibis.Table
        The checks of their ids and strata; see `confirm`.
    """

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
    events : ibis.Table
        Without a column `bag`.
    id, stratum : str
        Its columns, text or whole numbers.
    size, salt, expected : int, str, int or mapping
        See `unbag.design_bags`.

    >>> import ibis
    >>> design(ibis.table({"click": "int64"}, name="events"), "click", size=64).events.columns
    ('click', 'bag')
    """
    _check(events, size, stratum, salt, expected)
    strata = ibis.literal("")
    if stratum is not None:
        strata = text_column(events, stratum, thing="events")
    ids = text_column(events, id, thing="events")
    marked = events.mutate(unbag_id=ids, unbag_stratum=strata)
    text = ibis.literal(salt + "|") + marked.unbag_stratum + "|" + marked.unbag_id
    marked = marked.mutate(unbag_hash=text.hexdigest("md5").substr(0, DIGITS))
    marked = marked.mutate(unbag_count=marked.count().over(ibis.window(group_by="unbag_stratum")))
    if expected is None:
        # number = (rank * n) // count
        order = [marked.unbag_hash, marked.unbag_id]
        rank = ibis.row_number().over(ibis.window(group_by=marked.unbag_stratum, order_by=order))
        bag = _whole(rank * _whole(marked.unbag_count, size), marked.unbag_count)
        faults = _closed_faults(marked, size, stratum)
    else:
        bag, faults = _arriving(marked, size, expected), [_of_events(marked, expected)]
    name = bag.cast("string")
    if stratum is not None:
        name = marked.unbag_stratum + "/" + name
    return Designed(marked.select(*events.columns, bag=name), as_lines(faults))


def _check(events: Any, size: int, stratum: str | None, salt: str, expected: Any) -> None:
    """Let `design_bags` refuse what it refuses, by an id for each stratum that is expected."""
    check_own_names(events.columns, "events")
    if "bag" in events.columns:
        raise broken(
            "Events to design must have no bag yet",
            "they have a column 'bag'",
            "Rename or drop it.",
        )
    ids = strata = ["a"]
    if isinstance(expected, Mapping):
        ids = strata = list(expected)
    if stratum is None or expected is None:
        strata = None
    if expected is None:
        expected = 2 * size if isinstance(size, int) else 2
    design_bags(ids, size=size, stratum=strata, salt=salt, expected=expected)


def _whole(a: Any, b: Any) -> Any:
    """The whole part of a / b, because engines divide whole numbers as fractions."""
    return ((a - a % b) / b).cast("int64")


def _arriving(marked: Any, size: int, expected: Any) -> Any:
    """number = hash mod n, with the hash read digit by digit, which all engines can."""
    terms = []
    for i in range(DIGITS):
        digit = ibis.literal("0123456789abcdef").find(marked.unbag_hash.substr(i, 1))
        # as text, because Spark takes the position of a letter, and a short number, as integers of
        # 32 bits
        terms.append(digit * ibis.literal(str(16 ** (DIGITS - 1 - i))).cast("int64"))
    if not isinstance(expected, Mapping):
        return total(terms) % int(np.round(expected / size))
    bags = [(str(name), int(np.round(n / size))) for name, n in expected.items()]
    return total(terms) % marked.unbag_stratum.cases(*bags, else_=None)


def _of_events(marked: Any, expected: Any = None) -> Look:
    finds = {
        "events": (ALWAYS, NOTHING),
        "no_events": (ALWAYS, NOTHING),
        "event_without_id": (marked.unbag_id.isnull(), NOTHING),
        "event_without_stratum": (marked.unbag_stratum.isnull(), NOTHING),
    }
    if isinstance(expected, Mapping):
        strange = ~marked.unbag_stratum.isin([str(name) for name in expected])
        finds["stratum_not_expected"] = (strange, "stratum " + marked.unbag_stratum + " has none")
    return Look(marked, None, finds)


def _closed_faults(marked: Any, size: int, stratum: str | None) -> list[Look]:
    """Beside, in a closed set, ids that come twice and strata too small for two bags."""
    by_id = marked.group_by("unbag_stratum", "unbag_id").aggregate(
        n=marked.count(), all=marked.unbag_count.min()
    )
    strata = by_id.group_by("unbag_stratum").aggregate(low=by_id.all.min())
    named = ibis.literal("all events")
    if stratum is not None:
        named = "stratum " + strata.unbag_stratum
    twice = (by_id.n > 1) & by_id.unbag_id.notnull()
    words = "event " + by_id.unbag_id + " occurs again in the same stratum"
    small = named + " have " + strata.low.cast("string")
    return [
        _of_events(marked),
        Look(by_id, "unbag_id", {"event_twice": (twice, words)}),
        Look(strata, "unbag_stratum", {"small_stratum": (strata.low < 2 * size, small)}),
    ]
