"""Who is informed while something learns, however deep it is called: in notebooks, a bar."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module
from time import monotonic
from typing import Any, Protocol

SILENCE, PAUSE = 2.0, 0.25
"""Seconds before a bar appears in a notebook, and between two looks of it."""


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


def notebook_bar() -> NotebookBar | None:
    """A bar for this notebook; None where this is none."""
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):  # a terminal has no kernel
        return None
    return NotebookBar(import_module("IPython.display"))


class NotebookBar:
    """A bar that is informed while something learns; see `unbag.learners.Progress`.

    Parameters
    ----------
    display : module
        `IPython.display`.
    """

    def __init__(self, display: Any) -> None:
        self.display, self.handle, self.stage = display, None, ""
        self.begin = monotonic()
        self.due = self.begin + SILENCE

    def __call__(self, step: int, total: int | None, words: str) -> None:
        """Take note of a step; the words before a colon say which work it is a step of."""
        stage, now = words.partition(":")[0], monotonic()
        if stage != self.stage:
            self.stage, self.begin = stage, now
        if now < self.due and not (self.handle is not None and step == total):
            return
        self.due = now + PAUSE
        shown = self.display.HTML(bar_html(step, total, words, now - self.begin))
        if self.handle is None:
            self.handle = self.display.display(shown, display_id=True)
        else:
            self.handle.update(shown)


def bar_html(step: int, total: int | None, words: str, seconds: float) -> str:
    """The bar, what is done, and about how long it will still take.

    >>> bar_html(1, 4, "trees: round 1", 2.0)
    '<progress value="1" max="4"></progress> trees: round 1, about 6 s left'
    """
    if not total:
        return f"<progress></progress> {escape(words)}, {seconds:.0f} s so far"
    left = seconds * (total - step) / max(step, 1)
    bar = f'<progress value="{step}" max="{total}"></progress>'
    return f"{bar} {escape(words)}, about {left:.0f} s left"
