"""What is being done, on stderr: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from unbag.cli._console import tell

SILENCE = 2.0
"""Seconds before the first line: shorter work needs no sign of life."""
PAUSE = 5.0
"""Seconds between lines."""


class Activity:
    """Informed while learners work and tables are read; see `unbag.learners.Progress`.

    Parameters
    ----------
    bar : rich.progress.Progress, optional
        Where to draw; without it lines are printed.
    """

    def __init__(self, bar: Any = None) -> None:
        self.bar, self.task, self.stage = bar, None, ""
        self.begin = monotonic()
        self.due = self.begin + SILENCE

    def __call__(self, step: int, total: int | None, words: str) -> None:
        """Take note of a step; the words before a colon say which work it is a step of."""
        stage = words.partition(":")[0]
        if stage != self.stage:
            self.stage, self.begin = stage, monotonic()
            if self.bar is not None:
                self.bar.update(self.task, visible=False)
                self.task = self.bar.add_task(words, total=total)
        if self.bar is not None:
            self.bar.update(self.task, completed=step, total=total, description=words)
        elif monotonic() > self.due:
            self.due = monotonic() + PAUSE
            tell(f"{words}{_left(step, total, monotonic() - self.begin)}")

    def rows(self, thing: str, done: int) -> None:
        """Take note of rows that were read."""
        self(done, None, f"reading {thing}: {done:,} rows")


def _left(step: int, total: int | None, seconds: float) -> str:
    """How far the work is, and about how long it will still take.

    >>> _left(2, 6, 10.0), _left(2, None, 10.0)
    (' (2 of 6, about 20 s left)', ' (10 s so far)')
    """
    if not total or not step:
        return f" ({seconds:.0f} s so far)"
    return f" ({step:,} of {total:,}, about {seconds * (total - step) / step:.0f} s left)"


@contextmanager
def activity(words: str) -> Iterator[Activity]:
    """A sign of life on stderr during work that may be long.

    Parameters
    ----------
    words : str
        What is done first.
    """
    from unbag.tables import watched

    if not sys.stderr.isatty():
        shown = Activity()
        with watched(shown.rows):
            yield shown
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = Activity(bar)
        shown.task = bar.add_task(words, total=None)
        with watched(shown.rows):
            yield shown
