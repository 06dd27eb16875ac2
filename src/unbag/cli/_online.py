"""`unbag online`: the runs of the paper's online experiment, and their report."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag.cli._console import activity, tell
from unbag.cli._options import stopped_verb
from unbag.cli._reproduce import PRESETS, ForceReport, Methods, Rates, Sizes, check_report, said

if TYPE_CHECKING:
    from unbag._progress import Progress
    from unbag.lab import OnlineRun

COMMAND = stopped_verb("finished runs are kept; the same words go on")


def online(
    ctx: typer.Context,
    preset: Annotated[str, typer.Option(help=PRESETS)] = "smoke",
    store: Path | None = None,
    report: Path | None = None,
    chunks: int | None = None,
    repetitions: int | None = None,
    source: str | None = None,
    rows: int | None = None,
    tuning: int | None = None,
    sizes: Sizes = None,
    rates: Rates = None,
    methods: Methods = None,
    only_report: bool = False,
    force: ForceReport = False,
) -> None:
    """Run the paper's online experiment, and report the results. Runs that are in the store are not
    made again.

    Example: unbag online --preset smoke --report online

    Parameters
    ----------
    store
        folder for the runs; by default unbag-store/online-<preset>
    report
        folder for tables, figures and claims
    source
        clicks (made-up) or criteo (in the data folder)
    rows
        events in a chunk
    tuning
        chunks that choose the rate; 0: all
    only_report
        make no runs
    """
    from unbag.lab import OnlineStore, online_preset, run_online, write_online_report

    changes = said(ctx, "chunks", "repetitions", "source", "rows", "tuning")
    many = said(ctx, "sizes", "rates", "methods")
    changes |= {name: tuple(values) for name, values in many.items()}
    if report is not None:
        check_report(report, force)
    place, kept = store or Path("unbag-store") / f"online-{preset}", None
    if only_report and not changes and place.exists():
        kept = OnlineStore(place).plan()
    plan = kept or online_preset(preset, **changes)  # refused before anything is made
    runs = OnlineStore(place)
    if not only_report:
        with activity("online") as shown:
            made = run_online(plan, runs, progress=partial(_show, shown))
        tell(f"{made} runs made: {runs.folder}")
    if report is not None:
        for path in write_online_report(plan, runs, report):
            print(path)


def _show(shown: Progress, run: OnlineRun, row: dict[str, Any]) -> None:
    words = (
        f"{run.method}:{run.loss}, bags of {run.size}, rate {run.rate:g}, repetition "
        f"{run.repetition}: chunk {row['chunk']}, log loss {row['label_log_loss']:.4f}"
    )
    shown(row["chunk"], run.chunks or None, words)
