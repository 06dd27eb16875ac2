"""The rules of `unbag.tables` counted in a database: a small table with one line for each check."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
# (the types of Ibis expressions are known when they are made)

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

import ibis

from unbag._rules import Refused
from unbag.bags import WHOLE, Status, all_equal, least_variance, spread_terms, too_even
from unbag.sql._columns import constant, number_words, total
from unbag.sql._match import NEVER, Request
from unbag.tables import EVEN, LEFT_OUT, RULES, Engine, TablesReport, bag_checks, tables_report

ALWAYS, NOTHING = ibis.literal(True), ibis.null("string")
# broken when no row is counted
ABSENT = ("no_events", "no_reports", "no_sizes", "nothing_observed")

Looks = dict[str, tuple[Any, Any]]


class Look(NamedTuple):
    """A table, by what its rows are ordered, and what is looked for in it.

    `finds` has for each check what is counted (a truth value or a number of each row) and words on
    a row, or words on the whole table.
    """

    table: Any
    order: str | None
    finds: Looks


def confirm(checks: Iterable[Mapping[str, Any]], *, refuse: bool = True) -> TablesReport:
    """Read the lines of `Related.checks`: raise when anything is refused, else say what is left
    out.

    Parameters
    ----------
    checks : iterable of mappings
        Lines with check, rows and first, e.g. `related.checks.to_pyarrow().to_pylist()`.
    refuse : bool
        Whether to raise; else the report has what is refused.

    >>> confirm([{"check": "event_twice", "rows": 2, "first": "event 7 occurs again"}])
    Traceback (most recent call last):
    unbag.Refused: An event must occur once: event 7 occurs again (2 such events). Drop the copies.
    """
    report = tables_report(checks)
    if report.refused and refuse:
        raise Refused(*report.refused)
    return report


def find_faults(events: Any, reports: Any, bags: Any, weighed: Any, request: Request) -> Any:
    """One line for each check: its name, whether it is refused, how many rows break it, words on
    the first, and the rule."""
    bags = _with_strata(bags)
    looks = [_of_events(events), _of_reports(reports, request)]
    looks.append(Look(bags, "bag", _of_bags(bags, request) | _of_strata(bags, request)))
    if not request.columns.accept_bias:
        looks.append(_of_spread(bags, request))
    if request.columns.id is not None:
        looks.append(_of_ids(events))
    if request.columns.counts is not None and request.columns.noise is not None:
        looks.append(_of_weights(weighed, request))
    return as_lines(looks)


def as_lines(looks: list[Look]) -> Any:
    """What is looked for in each table, as one line for each check."""
    whole, *others = [_totals(look, i) for i, look in enumerate(looks)]
    for other in others:
        whole = whole.cross_join(other)
    lines = [
        _line(whole, name, f"{name}_{i}") for i, look in enumerate(looks) for name in look.finds
    ]
    return whole.select(line=ibis.array(lines).unnest()).unpack("line")


def _totals(look: Look, number: int) -> Any:
    """Of each find how many there are, and words on the first in order; the number keeps names of
    two looks apart."""
    words = {f"said_{name}": said for name, (_, said) in look.finds.items() if _of_rows(said)}
    marks = {f"bad_{name}": bad.cast("int64") for name, (bad, _) in look.finds.items()}
    marked = look.table.mutate(**marks, **words)
    sums = {}
    for name, (_, said) in look.finds.items():
        sums[f"{name}_{number}"] = marked[f"bad_{name}"].sum().fill_null(0)
        if _of_rows(said):
            bad, column = marked[f"bad_{name}"] > 0, marked[f"said_{name}"]
            said = column.min(where=bad)
            if look.order is not None:
                said = column.argmin(marked[look.order], where=bad)
        sums[f"{name}_{number}_first"] = said
    return marked.aggregate(**sums)


def _of_rows(words: Any) -> bool:
    """Whether words are on each row, and not on the whole table."""
    return isinstance(words, ibis.expr.types.Column)


def _line(whole: Any, name: str, column: str) -> Any:
    n, rule = whole[column], f"How many {name} there are"
    if name in ABSENT:
        n = (n == 0).cast("int64")
    if name in LEFT_OUT:
        rule = f"{LEFT_OUT[name].thing}s that {LEFT_OUT[name].many}"
    if name in RULES:
        rule = RULES[name].rule
    return ibis.struct(
        {
            "check": ibis.literal(name),
            "refused": ibis.literal(name in RULES),
            "rows": n,
            "first": whole[f"{column}_first"],
            "rule": ibis.literal(rule),
        }
    )


def _of_events(events: Any) -> Look:
    names = [name for name in events.columns if name.startswith("g_")]
    gaps = [events[name].isnull() | events[name].isinf() for name in names]
    if len(gaps) > 1:
        gaps.append((total([events[name] for name in names]) - 1).abs() > 1e-6)
    finds = {
        "events": (ALWAYS, NOTHING),
        "no_events": (ALWAYS, NOTHING),
        "event_without_bag": (events.bag.isnull(), NOTHING),
        "event_without_stratum": (events.stratum.isnull(), NOTHING),
        "event_with_unclear_time": (events.unclear.notnull(), "one event has " + events.unclear),
    }
    if gaps:
        finds["event_without_reference"] = (ibis.or_(*gaps).fill_null(True), NOTHING)
    return Look(events, None, finds)


def _of_ids(events: Any) -> Look:
    """Ids that are missing, or come twice, in one bag or in several."""
    marked = events.mutate(named=events.bag.cast("string"))
    ids = marked.group_by("id").aggregate(
        n=marked.count(), low=marked.named.min(), high=marked.named.max()
    )
    known, twice = ids.id.notnull(), ids.n > 1
    two = known & twice & (ids.low != ids.high).fill_null(False)
    ids = ids.mutate(missing=ibis.ifelse(known, 0, ids.n), two=two, again=known & twice & ~two)
    apart = "event " + ids.id + " is in bags " + ids.low + " and " + ids.high
    finds = {
        "event_without_id": (ids.missing, NOTHING),
        "event_in_two_bags": (ids.two, apart),
        "event_twice": (ids.again, "event " + ids.id + " occurs again in the same bag"),
    }
    return Look(ids, "id", finds)


def _of_reports(reports: Any, request: Request) -> Look:
    named, name = reports.bag.notnull(), reports.bag.cast("string")
    undated = NEVER
    if request.columns.as_of is not None:
        undated = named & reports.as_of.isnull()
    finds = {
        "reports": (ALWAYS, NOTHING),
        "no_reports": (ALWAYS, NOTHING),
        "report_without_bag": (~named, NOTHING),
        "report_without_time": (
            undated,
            "bag " + name + " has " + reports.unclear.fill_null("none"),
        ),
        "late_report": (named & reports.late, name),
        "older_report": (named & reports.older, name),
    }
    if request.columns.size is not None:
        none = ibis.literal("none of the reports has one")
        finds["no_sizes"] = (reports.reported_size.notnull(), none)
    return Look(reports, "bag", finds)


def _with_strata(bags: Any) -> Any:
    """The bags with the number of reports in their stratum, and one bag of each stratum that stands
    for it."""
    within = ibis.window(group_by="stratum")
    bags = bags.mutate(
        name=bags.bag.cast("string"), stratum_usable=bags.usable.cast("int64").sum().over(within)
    )
    leader = ibis.ifelse(bags.used, bags.name, NOTHING).min().over(within)
    return bags.mutate(leads=(bags.used & (bags.name == leader)).fill_null(False))


def _of_bags(bags: Any, request: Request) -> Looks:
    columns, has = request.columns, "bag " + bags.name + " has "
    values = [bags[f"value_{i}"] for i in range(len(columns.values))]
    shares = [bags[f"a_{i}"] for i in range(len(request.parts))][-len(values) :]
    finds = bag_checks(bags, values, shares, columns, RELATIONS)
    first = [
        bags.name.argmin(bags.bag, where=there).fill_null("none")
        for there in (bags.has_events, bags.has_report)
    ]
    nothing = "none has; the first of the events is " + first[0] + ", of the reports " + first[1]
    some = bags.usable | ~bags.status.isin(get_args(Status))
    strata = has + bags.stratum + " and " + bags.other
    return {check: (bad, _joined(words)) for check, (bad, words) in finds.items()} | {
        "bag_in_two_strata": (bags.stratum != bags.other, strata),
        "bag_with_two_reports": (bags.versions > 1, has + "several"),
        "nothing_observed": (some, nothing),
        "bag_without_events": (~bags.has_events, bags.name),
    }


def _joined(words: tuple[Any, ...]) -> Any:
    """Parts of a sentence on a row as one text; numbers as `join` writes them."""
    if not words:
        return NOTHING
    return total([word if isinstance(word, str) else _shown(word) for word in words])


def _shown(column: Any) -> Any:
    if column.type().is_floating():
        return number_words(column)
    return column.cast("string")


def _of_strata(bags: Any, request: Request) -> Looks:
    """Strata with no report, or with one only, found at the bag that stands for each."""
    none = ibis.ifelse(bags.stratum == "", ibis.literal("all bags"), "stratum " + bags.stratum)
    finds = {
        "stratum_without_report": (bags.leads & (bags.stratum_usable == 0), none + " have none")
    }
    if request.method != "easy":
        finds["lone_bag"] = (bags.leads & (bags.stratum_usable == 1), none + " have one")
    return finds


def _of_spread(bags: Any, request: Request) -> Look:
    """Reports, of any class, that vary less than chance allows within strata."""
    kind = request.columns.reports_are
    shares = ["a_1"]  # a_0 is 1 in every bag
    if kind == "histogram":
        shares = [name for name in bags.columns if name.startswith("a_")]
    sound = bags.filter(bags.usable, *(_finite(bags[name]) for name in ("noise", *shares)))
    each = [
        sound.select("stratum", "size", "noise", report=name, label=ibis.literal(name))
        for name in shares
    ]
    sums = _spread_sums(ibis.union(*each) if len(each) > 1 else each[0], kind)
    even = too_even(sums.squares, sums.further, sums.free).fill_null(False)
    if kind == "total":
        even = even | all_equal(sums.bags, sums.low, sums.high)
    whole = sums.aggregate(even=even.any())
    return Look(
        whole, None, {"reports_too_even": (whole.even.fill_null(False), ibis.literal(EVEN))}
    )


def _spread_sums(used: Any, kind: Any) -> Any:
    """The sums over bags that `too_even` and `all_equal` need, of each class."""
    within = ibis.window(group_by=("label", "stratum"))
    count = used.size * used.report
    small = ibis.ifelse(count.abs() < 2**53, count, 0)  # larger numbers are whole
    used = used.mutate(
        prior=count.sum().over(within) / used.size.sum().over(within),
        whole=((small - small.round()).abs() <= WHOLE).all().over(ibis.window(group_by="label")),
    )
    chance = used.size * ibis.greatest(least_variance(used.prior, kind), constant(0))
    if kind == "total":
        chance = ibis.ifelse(used.whole, chance, constant(0))
    used = used.mutate(chance=chance)
    squares, further = spread_terms(used.size, used.report, used.prior, used.noise, used.chance)
    varies = used.chance + used.noise > 0
    free = varies.sum() - used.stratum.nunique(where=varies)
    return used.group_by("label").aggregate(
        squares=squares.sum(where=varies),
        further=further.sum(where=varies),
        free=free.cast("float64").nullif(0),
        bags=used.count(),
        low=used.report.min(),
        high=used.report.max(),
    )


def _of_weights(weighed: Any, request: Request) -> Look:
    """Bags whose class weights add up to nothing positive; with labels (1, y) that cannot
    happen."""
    whole = total([weighed[f"W_{i}"] for i in range(len(request.parts))])
    if request.method == "anchored":  # a reference adds up to 1
        whole = whole + constant(1) / weighed.all
    words = "bag " + weighed.bag.cast("string") + " has none"
    return Look(weighed, "bag", {"negative_weight": ((whole <= 0).fill_null(False), words)})


def _finite(column: Any) -> Any:
    return (column.notnull() & ~column.isinf()).fill_null(False)


def _sure(comparison: Any) -> Any:
    return comparison.fill_null(False)


def _none(bad: Any) -> Any:
    return bad.cast("int64").sum().over(ibis.window()) == 0


RELATIONS = Engine(ibis.expr.types.Column.isin, _finite, ibis.ifelse, _sure, _none)
