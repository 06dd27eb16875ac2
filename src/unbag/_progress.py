"""Who is informed while something learns, however deep the learning is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Informed(Protocol):
    """What is informed while something learns: `unbag.learners.Progress`."""

    def __call__(self, step: int, total: int | None, words: str) -> None: ...


_INFORMED: ContextVar[Informed | None] = ContextVar("informed", default=None)


@contextmanager
def informed(progress: Informed) -> Iterator[None]:
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


def whom_to_inform() -> Informed | None:
    """The function that is to be informed of learning here, if there is one."""
    return _INFORMED.get()
