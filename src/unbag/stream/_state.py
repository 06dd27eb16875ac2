"""A learner and its folder in: everything it knows written out, or taken up again as it was."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from unbag._rules import broken
from unbag.stream._checkpoint import METRICS, QUARANTINE, Folder, sync_file

if TYPE_CHECKING:
    from unbag.stream._learner import StreamLearner


def write(learner: StreamLearner, folder: Folder) -> None:
    """Make everything so far last: logs and waiting events first, then the checkpoint that refers
    to them.

    What the checkpoint before referred to is removed last, so that a crash at any point leaves one
    that is whole.
    """
    if learner._lines:
        folder.append(METRICS, learner._lines)
        learner._lines = []
    aside = learner.quarantine.take_lines()
    if aside:
        try:
            folder.append(QUARANTINE, aside)
        except OSError:
            learner.quarantine.give_back(aside)
            raise
    store = learner._buffer.store
    for path in store.fresh:
        sync_file(path)
    leaves, settled = learner._trainer.save()
    arrays = {f"{i:04d}": leaf for i, leaf in enumerate(leaves)}
    folder.save(arrays, _told(learner) | settled)
    store.checkpointed()


def _told(learner: StreamLearner) -> dict[str, Any]:
    """Everything that is no array."""
    return {
        "settings": asdict(learner.settings),
        "counters": [learner.position, learner.chunks, learner.events_learned, learner.failures],
        "features": learner._features,
        "first_prior": learner._first_prior,
        "latest": learner._latest,
        "rows": learner.rows,
        "watch": learner._watch.state(),
        "quarantine": dict(learner.quarantine.counts),
        "buffer": learner._buffer.manifest(),
    }


def resume(learner: StreamLearner, folder: Folder) -> None:
    """Take up what the folder's checkpoint holds, if it has one."""
    found = folder.load()
    if found is None:
        learner._buffer.restore(
            learner._buffer.manifest()
        )  # remove what a stream left that never made a checkpoint
        return
    arrays, told = found
    _check_same(learner, folder, arrays, told["settings"])
    learner._trainer.load([arrays[f"{i:04d}"] for i in range(len(arrays))], told)
    learner.position, learner.chunks, learner.events_learned, learner.failures = told["counters"]
    learner._features = tuple(told["features"]) if told.get("features") is not None else None
    learner._first_prior, learner._latest, learner.rows = (
        told["first_prior"],
        told["latest"],
        told["rows"],
    )
    learner._watch.restore(told["watch"])
    learner.quarantine.counts.update(told["quarantine"])
    learner._buffer.restore(told["buffer"])


def _check_same(
    learner: StreamLearner, folder: Folder, arrays: dict[str, np.ndarray], before: dict[str, Any]
) -> None:
    now = asdict(learner.settings)
    other = [
        f"{name} was {before.get(name)!r} and is {now[name]!r}"
        for name in now
        if before.get(name) != now[name]
    ]
    leaves, _ = learner._trainer.save()
    if len(leaves) != len(arrays) or any(
        (x.shape or (1,)) != arrays[f"{i:04d}"].shape for i, x in enumerate(leaves)
    ):
        other.append("the model has other parameters")
    if other:
        folder.close()
        raise broken(
            "A stream must be resumed as it was begun",
            f"in {folder.path} {', '.join(other)}",
            "Use the same, or another folder.",
        )
