"""Words of the command line in, a stream followed with a live view."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from unbag._rules import broken
from unbag.datasets import Chunks, read_clicks, read_criteo
from unbag.lab._online_plan import NETWORKS
from unbag.stream import Settings, StreamLearner, run_stream
from unbag.stream._replay import View
from unbag.stream._report import write_page


def follow(
    source: str,
    folder: Path,
    *,
    model: str,
    rows: int,
    chunks: int | None,
    every: int,
    fields: dict[str, Any],
) -> Path:
    """Learn from a source with a live view, from where the folder stands; returns the path of the
    report page."""
    if model not in NETWORKS:
        raise broken(
            f"A stream's model must be one of {', '.join(NETWORKS)}",
            f"{model!r} came",
            "Choose one.",
        )
    told = {
        "prior": _prior(fields.get("prior", "chunk")),
        "source": f"{source} in chunks of {rows}",
    }
    settings = Settings(**(fields | told))
    size = 1 if settings.method == "labels" else settings.size
    if rows < 2 * size:
        raise broken(
            "A chunk must hold at least two bags",
            f"{rows} rows came for bags of {size}",
            "Give more --rows, or a smaller --size.",
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
        raise broken(
            "A source must be clicks, criteo or a file", f"{name!r} is none", "Look at the path."
        )
    read = partial(read_criteo, path, rows=rows, quarantine=learner.quarantine)
    return lambda position: read(start=position)
