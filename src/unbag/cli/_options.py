"""The options that several verbs share, and how a verb runs: errors in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from unbag._rules import broken
from unbag.cli._console import plain_errors

TABLE = "one row for each event: a Parquet or CSV file, or a folder of them"
Events = Annotated[Path, typer.Argument(help=TABLE)]
Reports = Annotated[Path, typer.Argument(help="one row for each bag: a Parquet or CSV file")]
Marginal = Annotated[
    list[Path] | None,
    typer.Option(
        "--marginal",
        help="in place of REPORTS: a table of totals by columns of the events; repeat",
        rich_help_panel="Marginal tables",
    ),
]
Below = Annotated[
    float | None,
    typer.Option(
        help="hidden or empty totals of cells were below this", rich_help_panel="Marginal tables"
    ),
]
OF_CELLS = ("total", "noise", "size", "status", "kind", "id", "cap", "accept_bias")
"""The fields of `Columns` that marginal tables have too."""
Model = Annotated[Path, typer.Argument(help="a file that unbag train wrote")]
Features = Annotated[
    list[str] | None,
    typer.Option("--feature", help="events: a column to learn from; repeat; by default all others"),
]
Plan = Annotated[
    Path | None,
    typer.Option(help="TOML file that says how columns become features; see docs/tables.md"),
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON for machines")]
PageFile = Annotated[
    Path | None, typer.Option("--page", help="also write a report page to read: one .html file")
]
Output = Annotated[Path | None, typer.Option(help=".parquet or .csv; by default CSV to stdout")]
Force = Annotated[bool, typer.Option("--force", help="overwrite the output")]

# of each field of `unbag.tables.Columns`
COLUMN_HELP = {
    "on": "column with the bag's id, in both tables",
    "total": "reports: column with each bag's total",
    "counts": "reports: column with one class's counts; repeat for each",
    "proportion": "reports: column with proportions, in place of totals",
    "kind": "binary, or total where an event may count more than once",
    "size": "reports: column with the number of events, to be checked",
    "noise": "reports: column with the variance of the noise on a count, or one number",
    "status": "reports: column with observed, pending, suppressed_by_size ...",
    "as_of": "reports: column with when a report was made; the latest counts",
    "stratum": "events: column within whose values the bags are random",
    "time": "events: column with the time",
    "id": "events: column with the event's id; no event may come twice",
    "score": "events: column with an old model's logit or probability, to be corrected by bags",
    "cut": "as if it were this moment, e.g. 2026-11-16: rows of then or later are left out",
    "wrong_sizes": "bags with another size than was reported: refuse (usual) or leave_out",
    "cap": "the largest count of one event, for --kind total",
    "accept_bias": "use reports although others were hidden for their value; biased",
}
COLUMN_TYPES: dict[str, Any] = {"counts": list[str], "cap": float}  # the others are text


class Verb(TyperCommand):
    """A verb that says what went wrong and what to do, in place of a traceback."""

    stopped = "no file is half-written"

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        with plain_errors(ctx.info_name, stopped=self.stopped):
            return super().invoke(ctx)


def stopped_verb(stopped: str) -> type[Verb]:
    """A verb that says, after Ctrl-C, what becomes of its work."""
    return type("StoppedVerb", (Verb,), {"stopped": stopped})


def table_verb(*, without: tuple[str, ...] = ()) -> type[Verb]:
    """A verb with an option for each field of `Columns`, which it finds in `ctx.obj`.

    Parameters
    ----------
    without : tuple of str
        Fields that the verb does not take.
    """
    from unbag.tables import Columns

    names = [field.name for field in fields(Columns) if field.name not in without]

    class TableVerb(Verb):
        def __init__(self, *args: Any, params: list[Any], **further: Any) -> None:
            columns = [option for option in _column_options() if option.name in names]
            super().__init__(*args, params=[*params, *columns], **further)

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if any(word.split("=")[0] == "--marginal" for word in args):
                for option in self.params:
                    if option.name in ("on", "reports"):  # there are no bags to name
                        option.required = False
            return super().parse_args(ctx, args)

        def invoke(self, ctx: Any) -> Any:
            said = {name: ctx.params.pop(name) for name in names}
            with plain_errors(ctx.info_name):
                if ctx.params.get("marginal"):
                    ctx.obj = said_of_cells(said, ctx.params)
                else:
                    ctx.obj = Columns(**as_said(said))
            return super().invoke(ctx)

    return TableVerb


def _column_options() -> list[Any]:
    """What Typer makes of the fields of `Columns`: an option with its help for each."""
    from unbag.tables import Columns

    options: list[Any] = []
    for name in (field.name for field in fields(Columns)):
        kind, default, words = COLUMN_TYPES.get(name, str) | None, None, ()
        if name == "accept_bias":
            kind, default, words = bool, False, ("--accept-bias",)  # without its --no form
        option = typer.Option(*words, help=COLUMN_HELP[name], rich_help_panel="Columns")
        options.append((name, Annotated[kind, option], default))
    options[0] = ("on", Annotated[str, options[0][1].__metadata__[0]])  # required
    app = typer.Typer(add_completion=False)
    app.command()(make_dataclass("ColumnOptions", options))
    return [option for option in typer.main.get_command(app).params if option.name != "help"]


def said_of_cells(given: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of the columns of marginal tables; noise may be one number for each table.

    Parameters
    ----------
    given : mapping
        The fields of `Columns`, None where nothing was said.
    params : mapping
        The other options of the verb.
    """
    said = as_said(given)
    wrong = [f"--{name.replace('_', '-')}" for name in said if name not in OF_CELLS]
    if params["reports"] is not None:
        wrong.append(f"the reports {params['reports']}")
    if wrong:
        raise broken(
            "Marginal tables must come without what belongs to bags",
            f"{', '.join(wrong)} came too",
            "Leave it out, or {marginal}; the keys of each table are its other columns.",
        )
    if "total" not in said:
        raise broken(
            "Marginal tables must have a column of totals",
            "none was named",
            "Name it with {total}; it has the same name in every table.",
        )
    variances = str(said.get("noise", "")).split(",")
    if len(variances) > 1:
        said["noise"] = [as_said({"noise": one.strip()})["noise"] for one in variances]
    return said | {"below": params.get("below")}


def as_said(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Columns` that were said; noise and cut may be numbers.

    >>> as_said({"on": "bag", "total": "sales", "noise": "4", "counts": []})
    {'on': 'bag', 'total': 'sales', 'noise': 4.0}
    """
    # compared by identity: 0 equals False, and is an answer
    said = {n: v for n, v in given.items() if not (v is None or v is False or v in ([], ()))}
    for name in ("noise", "cut"):
        try:
            said[name] = float(said[name])
        except (KeyError, ValueError):  # not said, or a column or a date
            continue
    return said
