"""A learner and its folder in: everything it knows written out, or taken up again as it was."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from unbag._rules import broken
from unbag.stream._checkpoint import METRICS, QUARANTINE, Folder, sync_file
from unbag.stream._step import State
from unbag.training._loader import Shape

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
    arrays = {
        f"{i:04d}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(learner._state))
    }
    folder.save(arrays, _told(learner))
    store.checkpointed()


def _told(learner: StreamLearner) -> dict[str, Any]:
    """Everything that is no array."""
    return {
        "settings": asdict(learner.settings),
        "counters": [learner.position, learner.chunks, learner.events_learned, learner.failures],
        "shape": learner._shape,
        "features": learner._features,
        "largest": learner._machine.setting.largest,
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
    leaves, tree = jax.tree.flatten(learner._state)
    restored = [jnp.asarray(arrays[f"{i:04d}"].reshape(x.shape)) for i, x in enumerate(leaves)]
    learner._state = learner._machine.place.copied(State(*jax.tree.unflatten(tree, restored)))
    learner.position, learner.chunks, learner.events_learned, learner.failures = told["counters"]
    learner._shape = Shape(*told["shape"]) if told["shape"] else None
    learner._features = tuple(told["features"]) if told.get("features") is not None else None
    setting = learner._machine.setting._replace(largest=told["largest"])
    learner._machine = replace(learner._machine, setting=setting)
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
    leaves = jax.tree.leaves(learner._state)
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
