"""Two tables in, an answer out: are these bags usable, and are they random?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import typer

from unbag.cli._console import UNFIT, plain_errors, print_json, spoken
from unbag.cli._options import AsJson, Events, Features, Plan, Reports, takes_columns
from unbag.diagnosis import Diagnosis, diagnose
from unbag.report import remedy


@takes_columns(without=["prior"])
def check(
    events: Events,
    reports: Reports,
    said: dict[str, Any],
    features: Features = None,
    plan: Plan = None,
    as_json: AsJson = False,
) -> None:
    """Are these bags usable and random? Tells all that is left out or refused. No label is needed.

    Exit code 0: yes. 1: the tables cannot be read. 3: something is refused, or the bags are not
    random.

    Example: unbag check events.parquet reports.parquet --on bag --total sales --id event
    """
    with plain_errors("check"):
        told, found = _look(events, reports, said, {"plan": plan, "features": features or None})
    if as_json:
        print_json(_record(told, found))
    else:
        print(told if found is None else f"{told}\n\n{found}")
    if found is None or not found.random:
        raise typer.Exit(UNFIT)


def _look(
    events: Any, reports: Any, said: dict[str, Any], how: dict[str, Any]
) -> tuple[Any, Diagnosis | None]:
    """What the tables hold, and whether the bags are random when nothing is refused."""
    from unbag.tables import check_tables, join

    told = check_tables(events, reports, **said)
    if not told.usable:
        return told._replace(refused=tuple(map(spoken, told.refused))), None
    bags = join(events, reports, **how, **said)
    found = diagnose_by_name(bags)
    return told_of(bags), replace(found, remedy=remedy(found, strata="stratum" in said))


def told_of(bags: Any) -> Any:
    """What the tables held, and which columns no model will learn from."""
    columns = () if bags.plan is None else bags.plan.columns
    dropped = (
        f"Column {column.name} is no feature: {column.why}."
        for column in columns
        if column.kind == "drop"
    )
    return bags.told._replace(left_out=(*bags.told.left_out, *dropped))


def diagnose_by_name(bags: Any) -> Diagnosis:
    """Whether joined bags are random, with the features called as the plan calls them."""
    if bags.plan is None:
        return diagnose(bags)
    return diagnose(replace(bags, X=pa.table(dict(zip(bags.plan.names, bags.X.T, strict=True)))))


def _record(told: Any, found: Diagnosis | None) -> dict[str, Any]:
    record = {
        "usable": told.usable,
        "random": None if found is None else found.random,
        "tables": told,
    }
    if found is None:
        return record
    return record | {
        "verdict": found.verdict,
        "remedy": found.remedy,
        "expected_bias": found.expected_bias,
        "features": found.features,
        "notes": found.notes,
    }
