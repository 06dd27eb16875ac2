"""Words of the command line in, a stream followed or the online experiment made; progress on stderr."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.status import Status

from unbag.datasets import read_clicks, read_criteo
from unbag.datasets.chunks import Chunks
from unbag.lab.commands import check_report
from unbag.lab.online import run_online
from unbag.lab.online_plans import NETWORKS, OnlineRun, online_preset
from unbag.lab.online_report import write_online_report
from unbag.lab.online_store import OnlineStore
from unbag.stream import Settings, StreamLearner, run_stream
from unbag.stream.reporting import write_page
from unbag.stream.running import View


def follow(
    source: str, folder: Path, *, model: str, rows: int, chunks: int | None, every: int, fields: dict[str, Any]
) -> Path:
    """Learn from a source with a live view, from where the folder stands; returns the path of the report page."""
    if model not in NETWORKS:
        raise ValueError(f"A stream's model must be one of {', '.join(NETWORKS)}: {model!r} came. Choose one.")
    told = {"prior": _prior(fields.get("prior", "chunk")), "source": f"{source} in chunks of {rows}"}
    settings = Settings(**(fields | told))
    size = 1 if settings.method == "labels" else settings.size
    if rows < 2 * size:
        raise ValueError(
            f"A chunk must hold at least two bags: {rows} rows came for bags of {size}. Give more --rows, or a smaller "
            "--size."
        )
    learner = StreamLearner(NETWORKS[model](settings.seed), settings, folder=folder, every=every)
    if learner.chunks:
        print(f"resumed after chunk {learner.chunks}", file=sys.stderr)
    try:
        with View(learner, chunks) as view:
            run_stream(_source(source, rows, learner), learner, chunks=chunks, told=view)
        return write_page(learner, folder)
    finally:
        learner.close()


def _prior(text: str) -> str | float:
    """A number where it is one; the settings say what else it may be."""
    try:
        return float(text)
    except ValueError:
        return text


def _source(name: str, rows: int, learner: StreamLearner) -> Chunks:
    if name == "clicks":
        return lambda position: read_clicks(rows=rows, start=position)
    path = None if name == "criteo" else Path(name)
    if path is not None and not path.exists():
        raise ValueError(f"A source must be clicks, criteo or a file: {name!r} is none. Look at the path.")
    read = partial(read_criteo, path, rows=rows, quarantine=learner.quarantine)
    return lambda position: read(start=position)


def experiment(
    name: str, folder: Path | None, report: Path | None, *, changes: dict[str, Any], only_report: bool, force: bool
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
            made = run_online(plan, store, told=partial(_tell, status))
        print(f"{made} runs made: {store.folder}", file=sys.stderr)
    if report is not None:
        for path in write_online_report(plan, store, report):
            print(path)


def _tell(status: Status, run: OnlineRun, row: dict[str, Any]) -> None:
    what = f"{run.method}:{run.loss}, bags of {run.size}, rate {run.rate:g}, repetition {run.repetition}"
    status.update(f"{what}: chunk {row['chunk']}, log loss {row['label_log_loss']:.4f}")
