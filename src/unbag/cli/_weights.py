"""Two tables in, the events with a debiased target and a sample weight out, or the SQL that makes
them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unbag._rules import broken
from unbag.cli._console import busy, plain_errors, tell
from unbag.cli._options import Events, Force, Reports, takes_columns
from unbag.cli._outputs import check_output

HEAD = "-- the tables are called events and reports here"
FIRST = "-- checks: run these first; nothing that is refused may have rows"
THEN = "-- targets: the events of all bags with a report, with a target and a sample weight for any trainer"


@takes_columns(without=["prior"])
def weights(
    events: Events,
    reports: Reports,
    said: dict[str, Any],
    method: Annotated[
        str, typer.Option(help="upm, easy, or anchored, which needs --reference")
    ] = "upm",
    reference: Annotated[
        list[str] | None,
        typer.Option(help="events: column with a prediction of another fold or day; one per class"),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="events: column to hand on; repeat; by default all")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="the most that DuckDB may use, e.g. 2GB; the rest on disk")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="file to write, .parquet or .csv")] = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="print the SQL instead, to paste into a warehouse")
    ] = False,
    dialect: Annotated[
        str, typer.Option(help="of the SQL: duckdb, spark, or another that Ibis knows")
    ] = "duckdb",
    force: Force = False,
) -> None:
    """Turn reports into a target and a sample weight for each event, for any trainer that takes
    both.

    Files may be larger than memory. Targets may lie outside 0 and 1: the trainer must take them as
    they are.

    Example: unbag weights events.parquet reports.parquet --on bag --total sales --out
    targets.parquet
    """
    said = said | {"method": method, "reference": reference, "keep": keep}
    with plain_errors("weights"):
        if sql:
            print(_as_text(events, reports, dialect, said))
        else:
            _write(events, reports, out, memory, said, force=force)


def _as_text(events: Path, reports: Path, dialect: str, said: dict[str, Any]) -> str:
    from unbag.sql import as_sql, query_files

    with query_files(events, reports, **said) as (_, related):
        checks, targets = (
            as_sql(each, dialect=dialect) for each in (related.checks, related.targets)
        )
    return f"{HEAD}\n{FIRST}\n{checks};\n\n{THEN}\n{targets};"


def _write(
    events: Path,
    reports: Path,
    out: Path | None,
    memory: str | None,
    said: dict[str, Any],
    *,
    force: bool,
) -> None:
    from unbag.sql import write_targets

    if out is None:
        raise broken(
            "Targets must go to a file",
            "--out is missing",
            "Name one, or print the SQL with --sql.",
        )
    check_output(out, force=force)
    with busy("weighing"):
        told = write_targets(events, reports, out, memory=memory, **said)
    tell(
        "\n".join(
            [
                f"{told.events:,} events and {told.reports:,} reports came.",
                *(f"- {t}" for t in told.left_out),
            ]
        )
    )
    tell(f"events of {told.bags:,} bags with a report: {out}")
