"""A stream whose reports come an hour after the events, a crash in the middle, and a resume that
loses nothing.

    python examples/streaming.py

The script starts itself, is killed (kill -9) after some hours, starts again, and ends with the same
model, bit for bit, as one that was never killed. Writes to the folder `stream-example`.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

from unbag import models
from unbag.stream import StreamLearner

SHORT = "--short" in sys.argv
HOURS, EVENTS, SIZE = (8, 512, 32) if SHORT else (48, 2048, 32)
FOLDER = Path("stream-example")


def happened(hour: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, bags and labels of an hour, which can be read again, as from any log."""
    rng = np.random.default_rng(hour)
    X = rng.normal(size=(EVENTS, 3))
    y = rng.random(EVENTS) < 1 / (1 + np.exp(1 - 2 * X[:, 0]))  # nobody sees these
    return X, np.repeat(np.arange(EVENTS // SIZE), SIZE) + 10_000 * hour, y


def reported(hour: int) -> tuple[np.ndarray, np.ndarray]:
    """The bags of an hour and their proportions; before the first hour there are none."""
    if hour < 0:
        return np.zeros(0, int), np.zeros(0)
    _, bag, y = happened(hour)
    return np.unique(bag), y.reshape(-1, SIZE).mean(axis=1)


def follow(folder: Path, *, killed_after: int | None = None) -> StreamLearner:
    """Feed the stream from where the folder stands; the reports of an hour come in the next one."""
    learner = StreamLearner(
        models.mlp(3, (16,), key=0),
        method="anchored",
        chunk=2 * EVENTS,
        batch=256,
        rate=0.01,
        folder=folder,
        every=1,
    )
    for hour in range(learner.position, HOURS):
        X, bag, _ = happened(hour)
        learner.events(X, bag)  # predicted at once
        learner.report(*reported(hour - 1), position=hour + 1)  # what is learned from waits an hour
        if hour == killed_after:
            os.kill(os.getpid(), signal.SIGKILL)
    learner.report(*reported(HOURS - 1))
    learner.finish()
    return learner


def main() -> None:
    if "--killed" in sys.argv:
        follow(FOLDER / "killed", killed_after=HOURS // 2)
    shutil.rmtree(FOLDER, ignore_errors=True)
    dead = subprocess.run([sys.executable, __file__, "--killed", *(["--short"] if SHORT else [])])
    print(f"killed, exit code {dead.returncode}")
    resumed, whole = follow(FOLDER / "killed"), follow(FOLDER / "whole")
    leaves = [jax.tree.leaves(learner.model) for learner in (resumed, whole)]
    same = all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))
    print(f"{resumed.events_learned:,} events learned; the same model as without the crash: {same}")
    print(f"log loss of the last chunk, from reports alone: {whole.rows[-1]['log_loss']:.3f}")


if __name__ == "__main__":
    main()
