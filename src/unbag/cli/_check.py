"""`unbag check`: are these bags usable, and are they random?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unbag._rules import Refused, option_spelling, spelled
from unbag.cli._console import UNFIT, activity, hint_of, print_json, tell
from unbag.cli._options import WORDS, AsJson, Encoding, Features, table_verb

if TYPE_CHECKING:
    from unbag.diagnosis import Diagnosis
    from unbag.tables import Columns, JoinedBags, TablesReport

COMMAND = table_verb()


def check(
    ctx: typer.Context,
    events: Path,
    reports: Path,
    marginal: list[Path] | None = None,
    below: float | None = None,
    features: Features = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Are these bags usable and random? Lists all that is left out or refused, and how each column
    is read. No label is needed.

    With --marginal: which columns' effects these tables can tell, what is left out, and which
    tables contradict each other.

    Exit code 0: yes. 1: the tables cannot be read. 3: something is refused, or the bags are not
    random.

    Example: unbag check events.parquet reports.parquet --on bag --total sales --id event
    """
    if marginal:
        from unbag.cli._marginals import check_cells

        said = ctx.obj | {"features": features or None, "plan": encoding}
        check_cells(events, marginal, said, as_json=as_json)
        return
    from unbag.diagnosis import diagnose

    diagnosis, listed = None, []
    with activity("reading"):
        summary, bags = _joined(events, reports, ctx.obj, features or None, encoding)
        if bags is not None:
            listed, diagnosis = readings(bags, ctx.obj), diagnose(bags)
    if as_json:
        print_json(_record(summary, diagnosis) | {"columns": dict(listed)})
    else:
        judged = diagnosis and diagnosis.render(option_spelling)
        parts = (shown(summary), in_lines(listed), judged)
        print("\n\n".join(part for part in parts if part))
    if summary.refused:
        words = ctx.meta.get(WORDS, ["check"])
        hint = hint_of(Refused(*summary.refused), words)
        tell(f"hint: {hint}" * bool(hint))
    if diagnosis is None or not diagnosis.random:
        raise typer.Exit(UNFIT)


def _joined(
    events: Path, reports: Path, columns: Columns, features: Any, encoding: Any
) -> tuple[Any, JoinedBags | None]:
    """What the tables hold, and the bags unless something in the tables is refused."""
    from unbag.tables import join, plan_tables

    try:
        bags = join(events, reports, columns, features=features, plan=encoding)
        return bags.summary, bags
    except Refused as error:
        refusals = error.refusals
        try:
            said = {"features": features, "override": encoding}
            summary, _ = plan_tables(events, reports, columns, **said)
        except Refused:
            for further in refusals[1:]:  # the first is told with a hint
                tell(f"refused: {further.render(option_spelling)}")
            raise Refused(refusals[0]) from None
        if summary.usable:
            raise
        return summary, None


def shown(summary: TablesReport) -> str:
    """The report on the tables, with what is refused in words of the command line."""
    if summary.usable:
        return str(summary)
    first = str(summary).splitlines()[0]
    refused = [f"refused: {refusal.render(option_spelling)}" for refusal in summary.refused]
    return "\n".join([first, *refused, "Nothing is used until this is corrected."])


def readings(bags: JoinedBags, columns: Columns) -> list[tuple[str, str]]:
    """Each column of the events with how it is read, or why it is left out."""
    ids = dict.fromkeys(columns.no_features, "left out: the bag's id (--on)")
    if columns.id is not None:
        ids[columns.id] = "left out: the event's id (--id)"
    if columns.exposure is not None:
        ids[columns.exposure] = "the exposure, in proportion to which counts grow (--exposure)"
    if columns.score is not None:
        ids[columns.score] = "the old model's score, to which the bags teach a correction (--score)"
    planned = getattr(bags.plan, "columns", ())
    listed = {column.name: column.reading for column in planned} | ids
    return sorted(listed.items(), key=_is_left_out)


def _is_left_out(reading: tuple[str, str]) -> bool:
    return reading[1].startswith("left out")


def in_lines(listed: list[tuple[str, str]]) -> str:
    """The columns as a list to read, those that are used first."""
    if not listed:
        return ""
    used = sum(not _is_left_out(one) for one in listed)
    width = max(len(name) for name, _ in listed)
    lines = [f"Columns: {used} used, {len(listed) - used} left out"]
    return "\n".join([*lines, *(f"  {name:<{width}}  {how}" for name, how in listed)])


def _record(summary: TablesReport, diagnosis: Diagnosis | None) -> dict[str, Any]:
    record = {"usable": summary.usable, "random": None, "tables": summary}
    if diagnosis is None:
        return record
    parts = ("random", "verdict", "expected_bias", "features", "notes")
    record |= {"remedy": spelled(diagnosis.advice, option_spelling)}
    return record | {name: getattr(diagnosis, name) for name in parts}
