"""A crash before every statement and every sync of a stream: what it leaves resumes to the same
bits."""

import os
import shutil

import numpy as np

from cases.stream import everything, feed, same
from unbag.stream import _checkpoint

STEPS = 24
LOG = "stream.db-wal"


def snapshots(folder, copies, monkeypatch):
    """Copies of the folder before each statement of SQLite and each sync of a log, and with what
    was last written to SQLite's log cut off at any byte.

    A killed process leaves the files as they are at that moment; nothing that it wrote is lost,
    nothing is tidied up.
    """
    rng = np.random.default_rng(0)

    def keep(name):
        place = copies / f"{len(list(copies.iterdir())):04d}-{name}"
        shutil.copytree(folder, place)
        size = os.path.getsize(place / LOG) if (place / LOG).exists() else 0
        if size:
            torn = shutil.copytree(place, copies / f"{len(list(copies.iterdir())):04d}-torn")
            os.truncate(torn / LOG, rng.integers(size))

    connect, fsync = _checkpoint._connect, os.fsync

    def traced(path):
        db = connect(path)
        db.set_trace_callback(lambda statement: keep(statement.split()[0].lower()))
        return db

    def synced(handle):
        keep("fsync")
        fsync(handle)

    monkeypatch.setattr(_checkpoint, "_connect", traced)
    monkeypatch.setattr(os, "fsync", synced)


def test_a_crash_at_any_point_of_a_checkpoint_resumes_to_the_same_bits(tmp_path, monkeypatch):
    whole, copies = tmp_path / "whole", tmp_path / "copies"
    copies.mkdir()
    with monkeypatch.context() as patch:
        snapshots(whole, copies, patch)
        learner = feed(whole, STEPS)
    learner.close()
    made = sorted(copies.iterdir())
    kinds = {path.name.partition("-")[2] for path in made}
    assert {"fsync", "begin", "insert", "delete", "replace", "commit", "pragma", "torn"} <= kinds
    assert len(made) > 100
    for place in made[:: len(made) // 12]:
        again = feed(place, STEPS)
        again.close()
        assert same(learner, again), place.name
        assert everything(place) == everything(whole), place.name
        assert again.events_learned == learner.events_learned
