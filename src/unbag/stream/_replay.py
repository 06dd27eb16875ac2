"""A stream followed to the end of its source, with a live view on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from unbag.datasets import Chunk, Chunks
from unbag.stream._learner import StreamLearner


def run_stream(source: Chunks, learner: StreamLearner) -> StreamLearner:
    """Learn from a source until it ends.

    It goes on where the learner stands. When the source breaks off or a chunk is refused,
    everything before it is made to last, and then the error is raised: the same call would stop at
    the same place again.

    Parameters
    ----------
    source : callable
        From a position to the chunks after it.
    learner : StreamLearner
        To be taught.

    Returns
    -------
    StreamLearner
        The same learner.
    """
    for chunk in _chunks(source, learner):
        with _kept(learner, ValueError):  # a chunk is refused before it changes anything
            learner.learn(chunk)
    learner.finish()
    return learner


def _chunks(source: Chunks, learner: StreamLearner) -> Iterator[Chunk]:
    with _kept(learner, Exception):
        yield from source(learner.position)


@contextmanager
def _kept(learner: StreamLearner, error: type[Exception]) -> Iterator[None]:
    """Make everything last before such an error is raised."""
    try:
        yield
    except error:
        if learner.folder:
            learner.checkpoint()
        raise


COLUMNS = {
    "chunk": "chunk",
    "events": "events",
    "log_loss": "log loss",
    "auc": "AUC",
    "prior": "prior",
    "gap": "predicted - reported",
    "label_log_loss": "from labels",
    "label_auc": "AUC, labels",
    "true_log_loss": "of the truth",
    "drift": "drift",
}


class View:
    """A live table of the last chunks on stderr; nothing at all where that is no terminal.

    Parameters
    ----------
    learner : StreamLearner
        Whose chunks are shown.
    chunks : int, optional
        How many there will be.
    """

    def __init__(self, learner: StreamLearner, chunks: int | None) -> None:
        self.learner, self.chunks = learner, chunks
        self.live: Any = nullcontext()
        console = Console(stderr=True)
        if console.is_terminal:
            self.live = Live(console=console, transient=True)

    def __enter__(self) -> View:
        self.live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.live.__exit__(*error)

    def __call__(self, row: dict[str, Any]) -> None:
        """Show the chunk that was just learned."""
        if isinstance(self.live, Live):
            self.live.update(self.table())

    def table(self) -> Table:
        """The last chunks, and the means over the window below."""
        rows = self.learner.rows
        shown = [name for name in COLUMNS if any(_known(row.get(name)) for row in rows)]
        done = f"{self.learner.chunks}"
        if self.chunks:
            done += f" of {self.chunks}"
        table = Table(title=f"{self.learner.settings.method}: {done} chunks")
        for name in shown:
            table.add_column(COLUMNS[name], justify="right")
        for row in rows:
            table.add_row(*(_show(row.get(name)) for name in shown))
        last = (rows or [{}])[-1]
        counts = ", ".join(f"{kind} {n}" for kind, n in self.learner.counts.items()) or "none"
        means = ", ".join(f"{n} {_show(last.get(f'window_{n}'))}" for n in ("log_loss", "auc"))
        table.caption = f"window: {means}; waiting: {self.learner.waiting}; set aside: {counts}"
        return table


def _known(value: Any) -> bool:
    return value is not None and bool(np.isfinite(value))


def _show(value: Any) -> str:
    if not _known(value):
        return ""
    if isinstance(value, bool):
        return {True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}"
