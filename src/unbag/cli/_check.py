"""`unbag check`: are these bags usable, and are they random?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import typer

from unbag.cli._console import UNFIT, option_spelling, print_json
from unbag.cli._options import AsJson, Below, Events, Features, Marginal, Plan, Reports, table_verb
from unbag.diagnosis import Diagnosis, diagnose
from unbag.report import remedy
from unbag.tables import JoinedBags, TablesReport, check_tables, join

COMMAND = table_verb()


def check(
    ctx: typer.Context,
    events: Events,
    reports: Reports,
    marginal: Marginal = None,
    below: Below = None,
    features: Features = None,
    plan: Plan = None,
    as_json: AsJson = False,
) -> None:
    """Are these bags usable and random? Tells all that is left out or refused. No label is needed.

    With --marginal: which columns' effects these tables can tell, what is left out, and which
    tables contradict each other.

    Exit code 0: yes. 1: the tables cannot be read. 3: something is refused, or the bags are not
    random.

    Example: unbag check events.parquet reports.parquet --on bag --total sales --id event
    """
    if marginal:
        from unbag.cli._marginals import check_cells

        said = ctx.obj | {"features": features or None, "plan": plan}
        check_cells(events, marginal, said, as_json=as_json)
        return
    summary, diagnosis = check_tables(events, reports, ctx.obj), None
    if summary.usable:
        bags = join(events, reports, ctx.obj, plan=plan, features=features or None)
        summary, diagnosis = summary_of(bags), diagnose_by_name(bags)
        advice = remedy(diagnosis, strata=ctx.obj.stratum is not None)
        diagnosis = replace(diagnosis, remedy=advice)
    if as_json:
        print_json(_record(summary, diagnosis))
    else:
        print("\n\n".join(str(part) for part in (_shown(summary), diagnosis) if part is not None))
    if diagnosis is None or not diagnosis.random:
        raise typer.Exit(UNFIT)


def _shown(summary: TablesReport) -> str:
    """The report on the tables, with what is refused in words of the command line."""
    lines = [str(summary._replace(refused=()))]
    lines += [f"refused: {refusal.render(option_spelling)}" for refusal in summary.refused]
    return "\n".join(lines)


def summary_of(bags: JoinedBags) -> Any:
    """What the tables held, and which columns no model will learn from."""
    columns = getattr(bags.plan, "columns", ())
    dropped = [f"Column {c.name} is no feature: {c.why}." for c in columns if c.kind == "drop"]
    summary: Any = bags.summary
    return summary._replace(left_out=(*summary.left_out, *dropped))


def diagnose_by_name(bags: JoinedBags) -> Diagnosis:
    """Whether joined bags are random, with the features called as the plan calls them."""
    if bags.plan is None:
        return diagnose(bags)
    named = dict(zip(bags.plan.names, bags.X.T, strict=True))
    return diagnose(replace(bags, X=pa.table(named)))


def _record(summary: TablesReport, diagnosis: Diagnosis | None) -> dict[str, Any]:
    record = {"usable": summary.usable, "random": None, "tables": summary}
    if diagnosis is None:
        return record
    parts = ("random", "verdict", "remedy", "expected_bias", "features", "notes")
    return record | {name: getattr(diagnosis, name) for name in parts}
