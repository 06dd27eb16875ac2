"""`unbag weights`: events with a target and a sample weight, or the SQL that makes them."""

from __future__ import annotations

from pathlib import Path

import typer

from unbag._rules import broken
from unbag.cli._console import activity, tell
from unbag.cli._options import check_output, table_verb

COMMAND = table_verb(without=("score", "exposure"))  # weights do not depend on them
SQL = """-- the tables are called events and reports here
-- checks: run these first; nothing that is refused may have rows
{checks};

-- targets: the events of all bags with a report, with a target and a sample weight for any trainer
{targets};"""


def weights(
    ctx: typer.Context,
    events: Path,
    reports: Path,
    method: str | None = None,
    reference: list[str] | None = None,
    keep: list[str] | None = None,
    memory: str | None = None,
    out: Path | None = None,
    sql: bool = False,
    dialect: str = "duckdb",
    force: bool = False,
) -> None:
    """Turn reports into a target and a sample weight for each event, for any trainer that takes
    both.

    Files may be larger than memory. Targets may lie outside 0 and 1: the trainer must take them as
    they are.

    Example: unbag weights events.parquet reports.parquet --on bag --total sales --out
    targets.parquet

    Parameters
    ----------
    method
        anchored (usual; without --reference it is upm), upm or easy
    reference
        events: column with a prediction of another fold or day; one per class
    keep
        events: column to hand on; repeat; by default all
    memory
        the most that DuckDB may use, e.g. 2GB; the rest on disk
    out
        file to write, .parquet or .csv
    sql
        print the SQL instead, to paste into a warehouse
    dialect
        of the SQL: duckdb, spark, or another that Ibis knows
    """
    from unbag.sql import as_sql, query_files, write_targets

    how = {"on": ctx.obj, "method": method, "reference": reference, "keep": keep or None}
    if sql:
        with query_files(events, reports, **how) as (_, related):
            parts = {"checks": related.checks, "targets": related.targets}
            texts = {name: as_sql(part, dialect=dialect) for name, part in parts.items()}
        print(SQL.format(**texts))
        return
    if out is None:
        raise broken(
            "Targets must go to a file",
            "--out is missing",
            "Name one, or print the SQL with --sql.",
        )
    check_output(out, force=force)
    with activity("writing targets"):
        summary = write_targets(events, reports, out, force=force, memory=memory, **how)
    tell(summary)
    tell(f"events of {summary.observed:,} bags with a report: {out}")
    tell("These weights need bags that are random, within --stratum if any: unbag check looks.")
