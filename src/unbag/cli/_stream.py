"""`unbag stream`: learn from files that fall into a folder."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from math import isfinite
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag._rules import broken, option_spelling
from unbag.cli._console import activity, tell
from unbag.cli._options import Encoding, Features, table_verb

if TYPE_CHECKING:
    from unbag._progress import Progress
    from unbag.stream import FolderInput, StreamLearner, StreamSettings
    from unbag.tables import Columns

NOT_HERE = ("counts", "kind", "stratum", "score", "exposure", "cut", "wrong_sizes", "cap")
LOOKS = 1.0  # seconds between looks into the folder


COMMAND = table_verb(without=NOT_HERE)
COMMAND.stopped = "the same words go on from the last checkpoint"


def stream(
    ctx: typer.Context,
    source: Annotated[Path, typer.Argument()],
    folder: Path | None = None,
    follow: bool = False,
    features: Features = None,
    encoding: Encoding = None,
    method: str = "likelihood",
    loss: str = "",
    rate: float = 0.005,
    prior: str = "chunk",
    chunks: int | None = None,
    rows: int = 4096,
    batch: int = 512,
    seed: int = 0,
    every: int = 8,
) -> None:
    """Learn from event and report files as they arrive in a folder, in any order. Each event is
    predicted first, and learned from when the report of its bag has arrived. After a crash, run the
    same command again: it continues where it stopped.

    A file that has the column of totals holds reports; any other file holds events. Files that
    cannot be read are set aside with the reason, and tried again when they have changed. unbag
    predict takes the folder of the stream as a model.

    Example: unbag stream inbox --on bag --total sales --size events --folder run --follow

    Parameters
    ----------
    source
        the folder in which files of events and of reports arrive
    folder
        for the model, checkpoints and the report; resumed if it has any; by default beside SOURCE,
        with -run at the end of its name
    follow
        wait for more files until Ctrl-C
    method
        likelihood, for which bags need not be random; anchored, upm, easy, matching or labels
    loss
        by default the method's usual one
    rate
        learning rate of Adam
    prior
        chunk, first, or a number
    chunks
        stop after so many; by default at the end of the source
    rows
        events learned together, a chunk
    batch
        events in a step
    every
        chunks between checkpoints
    """
    from unbag.stream import StreamSettings

    words: dict[str, Any] = {"method": method, "loss": loss, "rate": rate, "prior": prior}
    with suppress(ValueError):  # the settings say what else it may be
        words["prior"] = float(prior)
    settings = StreamSettings(
        **words, chunk=rows, batch=batch, seed=seed, source=source_words(source, ctx.obj)
    )
    if folder is None:
        folder = source.with_name(f"{source.name}-run")
    how = {"features": features or None, "override": encoding}
    count = {"chunks": chunks, "every": every, "follow": follow}
    print(follow_folder(source, folder, ctx.obj, settings, how, **count))


def source_words(source: Path, columns: Columns) -> str:
    """The folder and what was said of its columns, by which a resumed stream is known.

    >>> from unbag.tables import Columns
    >>> source_words(Path("inbox"), Columns("bag", proportion="share"))
    'inbox --on bag --proportion share'
    """
    pairs = [("on", key) for key in columns.keys]
    for field in fields(columns)[1:]:
        if getattr(columns, field.name) != field.default:
            pairs.append((field.name, getattr(columns, field.name)))
    return " ".join([source.name, *(option_spelling(name, str(value)) for name, value in pairs)])


def follow_folder(
    source: Path,
    folder: Path,
    columns: Columns,
    settings: StreamSettings,
    how: dict[str, Any],
    *,
    chunks: int | None,
    every: int,
    follow: bool,
) -> Path:
    """Learn from the files of a folder; returns the path of the report page."""
    from unbag.stream import FolderInput, learner_of

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
    learner = learner_of(setup, settings, folder, every=every)
    if learner.chunks:
        tell(f"resumed after chunk {learner.chunks}, {learner.position} files")
    try:
        with activity("stream") as progress:
            _run(inbox, learner, setup.plan, progress, chunks, follow=follow)
    finally:  # all that was learned is made last, however the work ended, and reported
        try:
            learner.checkpoint()
            page = write_report(learner, folder, files=len(inbox.aside))
        finally:
            learner.close()
    return page


def _run(
    inbox: FolderInput,
    learner: StreamLearner,
    plan: Any,
    progress: Progress,
    chunks: int | None,
    *,
    follow: bool,
) -> None:
    """Files as they come, until there are no more, or until somebody stops it."""
    shown: set[str] = set()
    while True:
        for arrival in inbox.arrivals(learner.position, settled=follow):
            inbox.feed(arrival, learner, plan)
            progress(learner.chunks, chunks, in_words(learner))
            if chunks is not None and learner.chunks >= chunks:
                return
        _tell_aside(inbox, shown)
        if not follow:
            learner.finish()
            return
        learner.checkpoint()
        sleep(LOOKS)


def in_words(learner: StreamLearner) -> str:
    """Where a stream is: its last chunk, and how the last chunks were predicted."""
    last = (learner.rows or [{}])[-1]
    means = {"log loss": last.get("window_log_loss"), "AUC": last.get("window_auc")}
    parts = [f"stream: chunk {learner.chunks}", f"{learner.waiting:,} events wait"]
    parts += [f"{name} {mean:.4f}" for name, mean in means.items() if mean and isfinite(mean)]
    return ", ".join(parts + ["the prior moved"] * bool(last.get("drift")))


def _tell_aside(inbox: FolderInput, shown: set[str]) -> None:
    """Say once of each file why it is not read."""
    for name, why in inbox.aside.items():
        if f"{name} {why}" not in shown:
            tell(f"warning: {name} is set aside: {why}")
            shown.add(f"{name} {why}")


def write_report(learner: StreamLearner, folder: Path, *, files: int = 0) -> Path:
    """A page on a stream: what it was, how it went, what was set aside; `report.html`.

    Parameters
    ----------
    learner : StreamLearner
        Who learned.
    folder : Path
        Where the page goes.
    files : int
        How many files of the source are not read.
    """
    from unbag.report import stream_page, write_page
    from unbag.stream import read_metrics

    s = learner.settings
    line = f"{s.method}, rate {s.rate:g}, prior: {s.prior}, batches of {s.batch}, seed {s.seed}"
    known = {"learned": learner.events_learned, "waiting": learner.waiting}
    aside = dict(learner.counts)
    if files:  # of which the learner knows only those whose rows it was given
        aside["file"] = files
    page = stream_page(read_metrics(folder), line, **known, aside=aside)
    return write_page(page, folder / "report.html", force=True)
