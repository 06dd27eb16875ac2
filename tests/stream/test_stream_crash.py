"""A crash at every point of a checkpoint at which the disk changes: what it leaves resumes to the
same bits."""

import os
import shutil
from pathlib import Path

from test_stream import everything, feed, same

STEPS = 24


def snapshots(folder, copies, monkeypatch):
    """Copies of the folder before each sync, rename and removal, and with what is being written cut
    in half.

    A killed process leaves the files as they are at that moment; nothing that it wrote is lost,
    nothing is tidied up.
    """

    def before(name, real):
        def wrapped(*args, **kwargs):
            place = copies / f"{len(list(copies.iterdir())):03d}-{name}"
            shutil.copytree(folder, place)
            drafts = [path for path in place.iterdir() if path.name.startswith(".")]
            if drafts:
                torn = shutil.copytree(place, copies / f"{len(list(copies.iterdir())):03d}-torn")
                for path in drafts:
                    os.truncate(torn / path.name, path.stat().st_size // 2)
            return real(*args, **kwargs)

        return wrapped

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, before(name, getattr(os, name)))
    monkeypatch.setattr(Path, "unlink", before("unlink", Path.unlink))


def test_a_crash_at_any_point_of_a_checkpoint_resumes_to_the_same_bits(tmp_path, monkeypatch):
    whole, copies = tmp_path / "whole", tmp_path / "copies"
    copies.mkdir()
    with monkeypatch.context() as patch:
        snapshots(whole, copies, patch)
        learner = feed(whole, STEPS)
    learner.close()
    found = sorted(copies.iterdir())
    kinds = {path.name.partition("-")[2] for path in found}
    assert kinds == {"fsync", "replace", "unlink", "torn"}
    assert len(found) > 30
    assert any(copies.glob("*/events-*-1.arrow"))  # files that were written anew
    for place in found[:: len(found) // 30]:
        again = feed(place, STEPS)
        again.close()
        assert same(learner, again), place.name
        assert everything(place) == everything(whole), place.name
        assert again.events_learned == learner.events_learned
