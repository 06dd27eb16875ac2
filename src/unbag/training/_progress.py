"""A progress bar on stderr."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unbag import _progress
from unbag._progress import whom_to_inform

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


def progress_of(progress: Any, epochs: int) -> AbstractContextManager[Any]:
    """A bar for True, the function itself, or what is informed in this context for False."""
    if progress is True:
        return EpochBar(epochs)
    return nullcontext(progress or partial(_inform, whom_to_inform(), epochs))


def _inform(
    progress: _progress.Progress | None, epochs: int, epoch: int, observed: dict[str, Any]
) -> None:
    if progress is None:
        return
    losses = np.asarray(observed.get("held_out", observed.get("train", np.nan)), float)
    words = f"network: epoch {epoch}"
    if np.isfinite(losses).any():
        words += f", loss {np.nanmin(losses):.4f}"
    progress(epoch, epochs, words)
