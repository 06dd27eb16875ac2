"""A progress bar on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

SHOWN = ("train", "held_out", "test_loss")


class EpochBar:
    """Epochs, the lowest losses so far, and the time left. The bar vanishes at the end."""

    def __init__(self, epochs: int) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("training", total=epochs)
        self.lowest: dict[str, float] = {}
        self.bar.start()

    def __call__(self, epoch: int, observed: dict[str, np.ndarray]) -> None:
        """Note an epoch."""
        for name, value in observed.items():
            if name in SHOWN and np.isfinite(value).any():
                self.lowest[name] = min(self.lowest.get(name, np.inf), float(np.nanmin(value)))
        text = ", ".join(f"{name} {value:.4f}" for name, value in self.lowest.items())
        self.bar.update(self.task, completed=epoch, description=f"lowest {text}")

    def __enter__(self) -> EpochBar:
        return self

    def __exit__(self, *error: object) -> None:
        """Take the bar away, whatever happened."""
        self.bar.stop()


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


def progress_of(progress: Any, epochs: int) -> AbstractContextManager[Any]:
    """A bar for True, the function itself, or what is informed in this context for False."""
    if progress is True:
        return EpochBar(epochs)
    return nullcontext(progress or partial(_inform, epochs))


def _inform(epochs: int, epoch: int, observed: dict[str, Any]) -> None:
    progress = whom_to_inform()
    if progress is None:
        return
    losses = np.asarray(observed.get("held_out", observed.get("train", np.nan)), float)
    words = f"network: epoch {epoch}"
    if np.isfinite(losses).any():
        words += f", loss {np.nanmin(losses):.4f}"
    progress(epoch, epochs, words)
