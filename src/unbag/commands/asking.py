"""The options that several verbs share, and what the user said of the columns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Events = Annotated[Path, typer.Argument(help="one row for each event: a Parquet or CSV file, or a folder of them")]
Reports = Annotated[Path, typer.Argument(help="one row for each bag: a Parquet or CSV file")]
Model = Annotated[Path, typer.Argument(help="a file that unbag train wrote")]
On = Annotated[str, typer.Option(help="column with the bag's id, in both tables")]
Total = Annotated[str | None, typer.Option(help="reports: column with each bag's total")]
Counts = Annotated[list[str] | None, typer.Option(help="reports: column with one class's counts; repeat for each")]
Proportion = Annotated[str | None, typer.Option(help="reports: column with proportions, in place of totals")]
Kind = Annotated[str | None, typer.Option(help="binary, or total where an event may count more than once")]
Size = Annotated[str | None, typer.Option(help="reports: column with the number of events, to be checked")]
Noise = Annotated[
    str | None, typer.Option(help="reports: column with the variance of the noise on a count, or one number")
]
Status = Annotated[str | None, typer.Option(help="reports: column with observed, pending, suppressed_by_size ...")]
AsOf = Annotated[str | None, typer.Option(help="reports: column with when a report was made; the latest counts")]
Stratum = Annotated[str | None, typer.Option(help="events: column within whose values the bags are random")]
Time = Annotated[str | None, typer.Option(help="events: column with the time")]
Id = Annotated[str | None, typer.Option(help="events: column with the event's id; no event may come twice")]
Cut = Annotated[str | None, typer.Option(help="as if it were this moment, e.g. 2026-11-16: later rows are left out")]
Plan = Annotated[Path | None, typer.Option(help="TOML file that says how columns become features; see docs/tables.md")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON for machines")]
PageFile = Annotated[Path | None, typer.Option("--page", help="also write a report page to read: one .html file")]
Force = Annotated[bool, typer.Option("--force", help="overwrite the output")]

COLUMNS = (
    "on", "total", "counts", "proportion", "kind", "size", "noise", "status", "as_of", "stratum", "time", "id", "cut",
)  # fmt: skip


def asked(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `join` among a verb's options; noise and cut may be numbers.

    >>> asked({"on": "bag", "total": "sales", "noise": "4", "force": True})
    {'on': 'bag', 'total': 'sales', 'noise': 4.0}
    """
    said = {name: given[name] for name in COLUMNS if given.get(name) not in (None, [])}
    return said | {name: _number(said[name]) for name in ("noise", "cut") if name in said}


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
