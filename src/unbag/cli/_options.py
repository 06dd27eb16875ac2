"""The options that several verbs share, written once, and what the user said of the columns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

Events = Annotated[
    Path, typer.Argument(help="one row for each event: a Parquet or CSV file, or a folder of them")
]
Reports = Annotated[Path, typer.Argument(help="one row for each bag: a Parquet or CSV file")]
Model = Annotated[Path, typer.Argument(help="a file that unbag train wrote")]
On = Annotated[str, typer.Option(help="column with the bag's id, in both tables")]
Total = Annotated[str | None, typer.Option(help="reports: column with each bag's total")]
Counts = Annotated[
    list[str] | None, typer.Option(help="reports: column with one class's counts; repeat for each")
]
Proportion = Annotated[
    str | None, typer.Option(help="reports: column with proportions, in place of totals")
]
Kind = Annotated[
    str | None, typer.Option(help="binary, or total where an event may count more than once")
]
Size = Annotated[
    str | None, typer.Option(help="reports: column with the number of events, to be checked")
]
Noise = Annotated[
    str | None,
    typer.Option(help="reports: column with the variance of the noise on a count, or one number"),
]
Status = Annotated[
    str | None, typer.Option(help="reports: column with observed, pending, suppressed_by_size ...")
]
AsOf = Annotated[
    str | None, typer.Option(help="reports: column with when a report was made; the latest counts")
]
Stratum = Annotated[
    str | None, typer.Option(help="events: column within whose values the bags are random")
]
Time = Annotated[str | None, typer.Option(help="events: column with the time")]
Id = Annotated[
    str | None, typer.Option(help="events: column with the event's id; no event may come twice")
]
Cut = Annotated[
    str | None,
    typer.Option(
        help="as if it were this moment, e.g. 2026-11-16: rows of then or later are left out"
    ),
]
WrongSizes = Annotated[
    str | None,
    typer.Option(help="bags with another size than was reported: refuse (usual) or leave_out"),
]
AcceptBias = Annotated[
    bool,
    typer.Option(
        "--accept-bias", help="use reports although others were hidden for their value; biased"
    ),
]
Prior = Annotated[
    float | None, typer.Option(help="the mean label, where it is known; else the mean report")
]
Cap = Annotated[float | None, typer.Option(help="the largest count of one event, for --kind total")]
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
Force = Annotated[bool, typer.Option("--force", help="overwrite the output")]

COLUMNS: dict[str, Any] = {
    "on": On, "total": Total, "counts": Counts, "proportion": Proportion, "kind": Kind, "size": Size, "noise": Noise,
    "status": Status, "as_of": AsOf, "stratum": Stratum, "time": Time, "id": Id, "cut": Cut,
    "wrong_sizes": WrongSizes, "accept_bias": AcceptBias, "prior": Prior, "cap": Cap,
}  # fmt: skip


def takes_columns(*, without: Sequence[str] = ()) -> Callable[[Callable], Callable]:
    """Give a verb the options that say which column is what, in place of its parameter `said`.

    The verb then gets as `said` what the user said of them, as arguments of `join`.

    >>> @takes_columns(without=["kind"])
    ... def verb(events: int, said: dict): return said
    >>> list(inspect.signature(verb).parameters)[:4]
    ['events', 'on', 'total', 'counts']
    >>> verb(events=1, on="bag", total="sales", noise="4")
    {'on': 'bag', 'total': 'sales', 'noise': 4.0}
    """

    def decorate(verb: Callable) -> Callable:
        own = inspect.signature(verb, eval_str=True)
        shared = [_option(name) for name in COLUMNS if name not in without]
        lists = [
            shared if p.name == "said" else [p.replace(kind=p.KEYWORD_ONLY)]
            for p in own.parameters.values()
        ]
        parameters = [parameter for part in lists for parameter in part]

        @functools.wraps(verb)
        def asks(**given: Any) -> Any:
            rest = {name: value for name, value in given.items() if name not in COLUMNS}
            return verb(said=asked(given), **rest)

        del asks.__wrapped__  # or the verb's own parameters would be asked for
        asks.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        asks.__annotations__ = {p.name: p.annotation for p in parameters}
        return asks

    return decorate


def _option(name: str) -> inspect.Parameter:
    default = {"on": inspect.Parameter.empty, "accept_bias": False}.get(name)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=COLUMNS[name]
    )


def asked(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `join` among a verb's options; noise and cut may be numbers.

    >>> asked({"on": "bag", "total": "sales", "noise": "4", "force": True})
    {'on': 'bag', 'total': 'sales', 'noise': 4.0}
    """
    said = {name: given[name] for name in COLUMNS if given.get(name) not in (None, [], False)}
    return said | {name: _number(said[name]) for name in ("noise", "cut") if name in said}


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
