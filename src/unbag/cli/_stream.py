"""`unbag stream`: learn from a stream with a live view."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from unbag._rules import broken, one_of
from unbag.cli._console import tell
from unbag.cli._options import stopped_verb
from unbag.datasets import Chunks, read_clicks, read_criteo
from unbag.lab import NETWORKS
from unbag.methods import METHODS
from unbag.plots import stream_figure
from unbag.report import stream_page, write_page
from unbag.stream import StreamLearner, StreamSettings, View, read_metrics, run_stream

COMMAND = stopped_verb("the same words go on from the last checkpoint")


def stream(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="clicks (made-up), criteo (in the data folder), or a file of its format"
        ),
    ],
    folder: Annotated[
        Path, typer.Option(help="for checkpoints, metrics and the report; resumed when it has any")
    ],
    method: Annotated[str, typer.Option(help=", ".join(METHODS))] = "anchored",
    loss: Annotated[str, typer.Option(help="by default the method's usual one")] = "",
    rate: Annotated[float, typer.Option(help="learning rate of Adam")] = 1e-3,
    size: Annotated[int, typer.Option(help="bag size")] = 512,
    prior: Annotated[str, typer.Option(help="chunk, first, or a number")] = "chunk",
    chunks: Annotated[
        int | None, typer.Option(help="stop after so many; by default at the end of the source")
    ] = None,
    rows: Annotated[int, typer.Option(help="events in a chunk")] = 2**16,
    batch: Annotated[int, typer.Option(help="events in a step")] = 4096,
    model: Annotated[
        str, typer.Option(help="paper (the deep embedding network) or small")
    ] = "paper",
    seed: Annotated[int, typer.Option()] = 0,
    every: Annotated[int, typer.Option(help="chunks between checkpoints")] = 8,
) -> None:
    """Learn from a stream: predict each chunk, then learn from its bags. The same words resume it
    after a crash.

    Example: unbag stream clicks --folder run --chunks 20
    """
    names = ("method", "loss", "rate", "size", "prior", "batch", "seed")
    fields = {name: ctx.params[name] for name in names}
    print(follow(source, folder, model=model, rows=rows, chunks=chunks, every=every, fields=fields))


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
    one_of("A stream's model", model, NETWORKS)
    prior = _number_or_name(fields.get("prior", "chunk"))
    origin = f"{source} in chunks of {rows}"
    settings = StreamSettings(**(fields | {"prior": prior, "source": origin}))
    size = {"labels": 1}.get(settings.method, settings.size)
    if rows < 2 * size:
        raise broken(
            "A chunk must hold at least two bags",
            f"{rows} rows came for bags of {size}",
            "Give more --rows, or a smaller --size.",
        )
    learner = StreamLearner(NETWORKS[model](settings.seed), settings, folder=folder, every=every)
    if learner.chunks:
        tell(f"resumed after chunk {learner.chunks}")
    try:
        with View(learner, chunks) as view:
            run_stream(_source(source, rows, learner), learner, chunks=chunks, progress=view)
        return _write_report(learner, folder)
    finally:
        learner.close()


def _number_or_name(text: str) -> str | float:
    """A number where it is one; the settings say what else it may be."""
    try:
        return float(text)
    except ValueError:
        return text


def _source(name: str, rows: int, learner: StreamLearner) -> Chunks:
    if name == "clicks":
        return lambda position: read_clicks(rows=rows, start=position)
    path = None
    if name != "criteo":
        path = Path(name)
        if not path.exists():
            raise broken(
                "A source must be clicks, criteo or a file",
                f"{name!r} is none",
                "Look at the path.",
            )
    read = partial(read_criteo, path, rows=rows, quarantine=learner.quarantine)
    return lambda position: read(start=position)


def _write_report(learner: StreamLearner, folder: Path) -> Path:
    """A page on a stream: what it was, how it went, what was set aside; `report.html`, and beside
    it `report.md`."""
    rows = read_metrics(folder)
    stream_figure(rows).savefig(folder / "stream.png", dpi=150)
    s = learner.settings
    lines = [
        "# A stream\n",
        f"{s.method}, rate {s.rate:g}, bags of {s.size}, batches of {s.batch}, prior: "
        f"{s.prior}, seed {s.seed}.",
        f"{learner.chunks} chunks, {learner.events_learned:,} events learned, "
        f"{learner.waiting:,} waiting.\n",
        "![log loss, AUC and prior](stream.png)\n",
        "| average over chunks | from reports | from labels | of the truth |",
        "|---|---|---|---|",
    ]
    for title, name in (("log loss", "log_loss"), ("AUC", "auc"), ("predicted - observed", "gap")):
        averages = [_average(rows, key) for key in (name, f"label_{name}", f"true_{name}")]
        lines.append(f"| {title} | {' | '.join(averages)} |")
    alarms = [row["chunk"] for row in rows if row.get("drift")]
    lines += [f"\nDrift of the prior was seen in {len(alarms)} of {len(rows)} chunks.\n"]
    if learner.counts:
        lines += ["| set aside | how often |", "|---|---|"]
        lines += [f"| {kind} | {count} |" for kind, count in learner.counts.items()]
    else:
        lines.append("Nothing was set aside.")
    (folder / "report.md").write_text("\n".join(lines) + "\n")
    line = f"{s.method}, rate {s.rate:g}, bags of {s.size}, prior: {s.prior}"
    counts = {
        "learned": learner.events_learned,
        "waiting": learner.waiting,
        "aside": learner.counts,
    }
    return write_page(stream_page(rows, line, **counts), folder / "report.html", force=True)


def _average(rows: list[dict[str, Any]], name: str) -> str:
    values = np.array([row.get(name, np.nan) for row in rows], float)
    if not np.isfinite(values).any():
        return ""
    return f"{np.nanmean(values):.4f}"
