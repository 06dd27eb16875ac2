"""Epochs as steps of whoever is informed of the learning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from unbag._progress import Progress, terminal_bar, whom_to_inform


@contextmanager
def progress_of(progress: Any, epochs: int) -> Iterator[Callable[[int, dict[str, Any]], None]]:
    """A bar on stderr for True, the function itself, or what is informed in this context for
    False."""
    if progress is True:
        with terminal_bar("training") as bar:
            yield partial(_inform, bar, epochs)
    else:
        yield progress or partial(_inform, whom_to_inform(), epochs)


def _inform(progress: Progress | None, epochs: int, epoch: int, observed: dict[str, Any]) -> None:
    if progress is None:
        return
    losses = np.asarray(observed.get("held_out", observed.get("train", np.nan)), float)
    words = f"network: epoch {epoch}"
    if np.isfinite(losses).any():
        words += f", loss {np.nanmin(losses):.4f}"
    progress(epoch, epochs, words)
