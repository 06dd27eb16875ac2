"""Who is informed while something learns, however deep it is called, and what they show of it: a
bar in notebooks and terminals, else lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from html import escape
from importlib import import_module
from time import monotonic
from typing import Protocol

# seconds before the first sign of life, because shorter work needs none; between two looks of a
# notebook's bar; and between two lines
SILENCE, PAUSE, BETWEEN_LINES = 2.0, 0.25, 5.0


class Progress(Protocol):
    """A callable that is informed while a learner works."""

    def __call__(self, step: int, total: int | None, words: str) -> None:
        """Take note of a step.

        Parameters
        ----------
        step : int
            The number of the step that ended, from 1.
        total : int or None
            How many steps there will be, None when it is not known.
        words : str
            What happened, in a few words.
        """
        ...


_INFORMED: ContextVar[Progress | None] = ContextVar("informed", default=None)


@contextmanager
def informed(progress: Progress) -> Iterator[None]:
    """Have a function informed of all learning in this context, however deep it is called.

    Parameters
    ----------
    progress : callable
        See `unbag.learners.Progress`: it gets a step, how many there will be, and words.
    """
    before = _INFORMED.set(progress)
    try:
        yield
    finally:
        _INFORMED.reset(before)


def whom_to_inform() -> Progress | None:
    """The function that is to be informed of learning here, in a notebook a bar; or None."""
    return _INFORMED.get() or notebook_bar()


def notebook_bar() -> Progress | None:
    """A bar for this notebook; None where this is none."""
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):  # a terminal has no kernel
        return None
    display, handle = import_module("IPython.display"), None

    def show(step: int, total: int | None, words: str, seconds: float) -> None:
        nonlocal handle
        shown = display.HTML(bar_html(step, total, words, seconds))
        if handle is None:
            handle = display.display(shown, display_id=True)
        else:
            handle.update(shown)

    return SignOfLife(show, PAUSE)


class SignOfLife:
    """Informed while something works, and shows it now and then.

    Parameters
    ----------
    show : callable
        Gets what `Progress` gets, and for how many seconds this work has gone on.
    pause : float
        Seconds between two looks.
    """

    def __init__(self, show: Callable[[int, int | None, str, float], None], pause: float) -> None:
        self.show, self.pause, self.shown = show, pause, False
        self.begins, self.last = dict[str, float](), monotonic()
        self.due = self.last + SILENCE

    def __call__(self, step: int, total: int | None, words: str) -> None:
        """Take note of a step; the words before a colon say which work it is a step of."""
        # a step is noted at its end: the first of a stage began where the step before it ended
        begin = self.begins.setdefault(words.partition(":")[0], self.last)
        self.last = now = monotonic()
        if now < self.due and not (self.shown and step == total):
            return
        self.due, self.shown = now + self.pause, True
        self.show(step, total, words, now - begin)


def bar_html(step: int, total: int | None, words: str, seconds: float) -> str:
    """The bar, what is done, and about how long it will still take.

    >>> bar_html(1, 4, "trees: round 1", 2.0)
    '<progress value="1" max="4"></progress> trees: round 1, about 6 s left'
    """
    bar = (
        f'<progress value="{step}" max="{total}"></progress>' if total else "<progress></progress>"
    )
    return f"{bar} {escape(words)}, {_time(step, total, seconds)}"


def _time(step: int, total: int | None, seconds: float) -> str:
    if not total or not step:  # step 0 says nothing of the pace
        return f"{seconds:.0f} s so far"
    return f"about {seconds * (total - step) / step:.0f} s left"


@contextmanager
def terminal_bar(words: str, tell: Callable[[str], None] | None = None) -> Iterator[Progress]:
    """Show on stderr what goes on in the block: a bar, or lines where that is no terminal.

    Parameters
    ----------
    words : str
        What is done first.
    tell : callable, optional
        Gets the lines; by default they are printed.
    """
    if not sys.stderr.isatty():
        say = tell or partial(print, file=sys.stderr)

        def line(step: int, total: int | None, words: str, seconds: float) -> None:
            count = f"{step:,} of {total:,}, " if total else ""
            text = f"{words} ({count}{_time(step, total, seconds)})"
            say(text)

        yield SignOfLife(line, BETWEEN_LINES)
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
        task, stage = bar.add_task(words, total=None), ""

        def update(step: int, total: int | None, words: str) -> None:
            nonlocal task, stage
            if stage != words.partition(":")[0]:  # other work, which has its own pace
                stage = words.partition(":")[0]
                bar.remove_task(task)
                task = bar.add_task(words, total=total)
            bar.update(task, completed=step, total=total, description=words)

        yield update
