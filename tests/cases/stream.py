"""Small cases that the tests of stream, and the table of its messages, share."""

import tempfile
from pathlib import Path

import jax
import numpy as np
from scipy.special import expit

from unbag import models
from unbag.datasets import Chunk, Quarantine
from unbag.stream import StreamLearner, StreamSettings
from unbag.stream._buffer import Buffer
from unbag.stream._checkpoint import METRICS, QUARANTINE, STORE, StreamStore

SMALL = {"size": 8, "batch": 64, "rate": 0.02, "chunk": 256}


def network(key=0):
    return models.mlp(3, (8,), key=key)


def chunk_of(number, rows=256):
    rng = np.random.default_rng([7, number])
    x = rng.normal(size=(rows, 3)).astype(np.float32)
    truth = expit(1.5 * x[:, 0] - 1)
    y = (rng.random(rows) < truth).astype(np.float32)
    return Chunk(x, y=y, time=number + np.arange(rows) / rows, truth=truth, position=number + 1)


def source(position, count=6):
    return (chunk_of(number) for number in range(position, count))


def parameters(learner):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(learner._trainer.state)]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(parameters(a), parameters(b), strict=True))


PLACE = Path(tempfile.mkdtemp())


def bags_in_order(count=32, size=16):
    chunk = chunk_of(0, count * size)
    names = np.repeat(np.arange(count), size)
    report = chunk.y.reshape(count, size).mean(axis=1)
    return chunk.X, names, report


def quiet_buffer(**changes):
    settings = StreamSettings(**{"waiting": 100, "patience": 50, "remembered": 3} | changes)
    aside = Quarantine()
    return Buffer(StreamStore(), aside, settings), aside


def on_disk(store):
    """How many events the database holds."""
    return sum(len(score) // 4 for (score,) in store.db.execute("SELECT score FROM events"))


def put(buffer, names):
    return buffer.add_events(names, np.arange(2 * len(names)).reshape(-1, 2), np.zeros(len(names)))


def stopped(folder):
    """A stream with a checkpoint and waiting events, which no process works on."""
    learner = StreamLearner(network(), method="upm", folder=folder, **SMALL)
    X, names, report = bags_in_order()
    learner.events(X, names)
    learner.report(np.arange(20), report[:20])
    learner.finish()
    learner.close()
    return folder / STORE


def everything(folder):
    return (folder / METRICS).read_text(), (folder / QUARANTINE).read_text() if (
        folder / QUARANTINE
    ).exists() else ""


def feed(folder, steps=60):
    """Both ways at once: labelled chunks, and events whose reports come late; a checkpoint after
    every third chunk.

    The third bag of each step is reported later than the others.
    """
    learner = StreamLearner(network(), folder=folder, every=3, **{**SMALL, "chunk": 128})
    X, names, report = bags_in_order(count=3 * steps)
    for step in range(learner.position, steps):
        if step % 4 == 3:
            learner.learn(chunk_of(step)._replace(position=step + 1))
            continue
        mine = np.flatnonzero(names // 3 == step)
        learner.events(X[mine], names[mine], time=[step % 5] * len(mine))
        late = [bag for bag in (3 * step - 12, 3 * step - 11, 3 * step - 22) if bag >= 0]
        learner.report(late, report[late], position=step + 1)
    learner.finish()
    return learner
