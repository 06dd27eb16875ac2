"""Words of the command line in, the online experiment made and reported; progress on stderr."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.status import Status

from unbag.cli._reproduce import check_report
from unbag.lab._online_plan import OnlineRun, online_preset
from unbag.lab._online_report import write_online_report
from unbag.lab._online_run import run_online
from unbag.lab._online_store import OnlineStore


def experiment(
    name: str,
    folder: Path | None,
    report: Path | None,
    *,
    changes: dict[str, Any],
    only_report: bool,
    force: bool,
) -> None:
    """Make the missing runs of a preset, then report them."""
    if report is not None:
        check_report(report, force)
    place = folder or Path("unbag-store") / f"online-{name}"
    kept = OnlineStore(place).plan() if only_report and not changes and place.exists() else None
    plan = kept or online_preset(name, **changes)  # refused before anything is made
    store = OnlineStore(place)
    if not only_report:
        with Console(stderr=True).status("online") as status:
            made = run_online(plan, store, progress=partial(_tell, status))
        print(f"{made} runs made: {store.folder}", file=sys.stderr)
    if report is not None:
        for path in write_online_report(plan, store, report):
            print(path)


def _tell(status: Status, run: OnlineRun, row: dict[str, Any]) -> None:
    what = f"{run.method}:{run.loss}, bags of {run.size}, rate {run.rate:g}, repetition {run.repetition}"
    status.update(f"{what}: chunk {row['chunk']}, log loss {row['label_log_loss']:.4f}")
