"""`unbag stream`: learn from files that fall into a folder, or from an example."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag._rules import broken, one_of
from unbag.cli._console import tell
from unbag.cli._options import Encoding, Features, table_verb

if TYPE_CHECKING:
    from unbag.datasets import Chunks
    from unbag.stream import FolderInput, StreamLearner
    from unbag.tables import Columns

NOT_HERE = ("counts", "kind", "stratum", "score", "cut", "wrong_sizes", "cap")
EXAMPLES = ("clicks", "criteo")
EXAMPLE = "Of the examples (clicks, criteo)"
LOOKS = 1.0
"""Seconds between looks into the folder."""
USUAL = {"method": "likelihood", "rate": 0.005, "batch": 512, "rows": 4096}
"""Of a folder; the examples have those of the paper."""
OF_EXAMPLES = {"method": "anchored", "rate": 1e-3, "batch": 4096, "rows": 2**16}


COMMAND = table_verb(without=NOT_HERE, required=False)
COMMAND.stopped = "the same words go on from the last checkpoint"


def stream(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="a folder into which files of events and of reports fall; or an example: clicks "
            "(made-up), criteo (in the data folder), a file of its format"
        ),
    ],
    folder: Annotated[
        Path, typer.Option(help="for the model, checkpoints and the report; resumed if it has any")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="wait for more files until Ctrl-C")
    ] = False,
    features: Features = None,
    encoding: Encoding = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="likelihood (usual: bags need not be random), anchored (usual for examples), upm, "
            "easy, matching or labels"
        ),
    ] = None,
    loss: Annotated[str, typer.Option(help="by default the method's usual one")] = "",
    rate: Annotated[
        float | None, typer.Option(help="learning rate of Adam; 0.005, of examples 0.001")
    ] = None,
    prior: Annotated[str, typer.Option(help="chunk, first, or a number")] = "chunk",
    chunks: Annotated[
        int | None, typer.Option(help="stop after so many; by default at the end of the source")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="events learned together, a chunk; 4096, of examples 65536")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="events in a step; 512, of examples 4096")
    ] = None,
    seed: Annotated[int, typer.Option()] = 0,
    every: Annotated[int, typer.Option(help="chunks between checkpoints")] = 8,
    bag_size: Annotated[
        int, typer.Option(help="of the bags that are drawn", rich_help_panel=EXAMPLE)
    ] = 512,
    model: Annotated[
        str, typer.Option(help="paper (deep embeddings) or small", rich_help_panel=EXAMPLE)
    ] = "paper",
) -> None:
    """Learn from a folder into which files of events and of reports fall, in any order. Each event
    is predicted first, and learned from when the report of its bag is there. The same words go on
    after a crash, with the files that are new.

    A file with the column of totals holds reports, another one events. Files that cannot be read
    are set aside with the reason, and tried again when they have changed. unbag predict takes the
    folder of the stream as a model.

    Example: unbag stream inbox --on bag --total sales --size events --folder run --follow
    """
    usual = OF_EXAMPLES
    if ctx.obj is not None or (Path(source).is_dir() and source not in EXAMPLES):
        usual = USUAL
    fields: dict[str, Any] = {"loss": loss, "prior": _number_or_name(prior), "seed": seed}
    given = {"method": method, "rate": rate, "batch": batch, "rows": rows}
    fields |= usual | {name: value for name, value in given.items() if value is not None}
    count = {"chunks": chunks, "every": every}
    if usual is OF_EXAMPLES:
        fields["size"] = bag_size
        print(follow_example(source, folder, model=model, fields=fields, **count))
    else:
        how = {"features": features or None, "override": encoding}
        print(follow_folder(Path(source), folder, ctx.obj, fields, how, follow=follow, **count))


def _number_or_name(text: str) -> str | float:
    """A number where it is one; the settings say what else it may be."""
    try:
        return float(text)
    except ValueError:
        return text


def follow_folder(
    source: Path,
    folder: Path,
    columns: Columns | None,
    fields: dict[str, Any],
    how: dict[str, Any],
    *,
    chunks: int | None,
    every: int,
    follow: bool,
) -> Path:
    """Learn from the files of a folder with a live view; returns the path of the report page."""
    from unbag.stream import FolderInput, StreamSettings, View, learner_of

    if columns is None:
        raise broken(
            "A folder of files must have the column of the bag's id named",
            "none was named",
            "Name it with {on}, and the totals with {total}.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    inbox = FolderInput(source, folder, columns)
    setup = inbox.setup(**how)
    while setup is None:
        _tell_aside(inbox, set())
        if not follow:
            raise broken(
                "A stream must find events in its folder",
                f"{source} has no file of them",
                "Add files of events, or wait for them with {follow:True}.",
            )
        sleep(LOOKS)
        setup = inbox.setup(**how)
    fields = fields | {"chunk": fields["rows"], "source": f"{source.name}: {columns}"}
    fields.pop("rows")
    learner = learner_of(setup, StreamSettings(**fields), folder, every=every)
    if learner.chunks:
        tell(f"resumed after chunk {learner.chunks}, {learner.position} files")
    try:
        with View(learner, chunks) as view:
            _run(inbox, learner, setup.plan, view, chunks, follow=follow)
    finally:
        page = _end(learner, folder)
    return page


def _run(
    inbox: FolderInput,
    learner: StreamLearner,
    plan: Any,
    view: Any,
    chunks: int | None,
    *,
    follow: bool,
) -> None:
    """Files as they come, until there are no more, or until somebody stops it."""
    shown: set[str] = set()
    while True:
        for arrival in inbox.arrivals(learner.position, settled=follow):
            inbox.feed(arrival, learner, plan)
            view(arrival)
            if chunks is not None and learner.chunks >= chunks:
                return
        _tell_aside(inbox, shown)
        if not follow:
            learner.finish()
            return
        learner.checkpoint()
        sleep(LOOKS)


def _tell_aside(inbox: FolderInput, shown: set[str]) -> None:
    """Say once of each file why it is not read."""
    for name, why in inbox.aside.items():
        if f"{name} {why}" not in shown:
            tell(f"warning: {name} is set aside: {why}")
            shown.add(f"{name} {why}")


def _end(learner: StreamLearner, folder: Path) -> Path:
    """Make all that was learned last, however the work ended, and report it."""
    try:
        learner.checkpoint()
        return write_report(learner, folder)
    finally:
        learner.close()


def follow_example(
    source: str, folder: Path, *, model: str, chunks: int | None, every: int, fields: dict[str, Any]
) -> Path:
    """Learn from labelled events in bags that are drawn, with a live view, from where the folder
    stands; returns the path of the report page."""
    from unbag.lab import NETWORKS
    from unbag.stream import StreamLearner, StreamSettings, View, run_stream

    one_of("A stream's model", model, NETWORKS)
    rows = fields.pop("rows")
    fields["source"] = f"{source} in chunks of {rows}"
    settings = StreamSettings(**fields)
    size = {"labels": 1}.get(settings.method, settings.size)
    if rows < 2 * size:
        raise broken(
            "A chunk must hold at least two bags",
            f"{rows} rows were given for bags of {size}",
            "Give more --rows, or a smaller --bag-size.",
        )
    learner = StreamLearner(NETWORKS[model](settings.seed), settings, folder=folder, every=every)
    if learner.chunks:
        tell(f"resumed after chunk {learner.chunks}")
    try:
        with View(learner, chunks) as view:
            run_stream(_chunks(source, rows, learner), learner, chunks=chunks, progress=view)
        return write_report(learner, folder)
    finally:
        learner.close()


def _chunks(name: str, rows: int, learner: StreamLearner) -> Chunks:
    from unbag.datasets import read_clicks, read_criteo

    if name == "clicks":
        return lambda position: read_clicks(rows=rows, start=position)
    path = None
    if name != "criteo":
        path = Path(name)
        if not path.exists():
            raise broken(
                "A source must be a folder, clicks, criteo or a file of Criteo's format",
                f"{name!r} is none",
                "Look at the path.",
            )
    read = partial(read_criteo, path, rows=rows, quarantine=learner.quarantine)
    return lambda position: read(start=position)


def write_report(learner: StreamLearner, folder: Path) -> Path:
    """A page on a stream: what it was, how it went, what was set aside; `report.html`, and beside
    it `report.md`."""
    from unbag.plots import stream_figure
    from unbag.report import stream_page, write_page
    from unbag.stream import read_metrics

    rows = read_metrics(folder)
    stream_figure(rows).savefig(folder / "stream.png", dpi=150)
    s = learner.settings
    line = f"{s.method}, rate {s.rate:g}, prior: {s.prior}"
    lines = [
        "# A stream\n",
        f"{line}, batches of {s.batch}, seed {s.seed}.",
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
    lines += [f"\nThe prior drifted in {len(alarms)} of {len(rows)} chunks.\n"]
    if learner.counts:
        lines += ["| set aside | how often |", "|---|---|"]
        lines += [f"| {kind} | {count} |" for kind, count in learner.counts.items()]
    else:
        lines.append("Nothing was set aside.")
    (folder / "report.md").write_text("\n".join(lines) + "\n")
    counts = {
        "learned": learner.events_learned,
        "waiting": learner.waiting,
        "aside": learner.counts,
    }
    return write_page(stream_page(rows, line, **counts), folder / "report.html", force=True)


def _average(rows: list[dict[str, Any]], name: str) -> str:
    import numpy as np

    values = np.array([row.get(name, np.nan) for row in rows], float)
    if not np.isfinite(values).any():
        return ""
    return f"{np.nanmean(values):.4f}"
