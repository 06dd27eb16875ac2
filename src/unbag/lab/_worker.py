"""What a Ray worker does: train a group of runs and give its rows back.

Ray gets these functions by value, and they import unbag only after comparing it, so that a worker
with another unbag, or with none, can say so instead of failing somewhere inside.
"""

from __future__ import annotations

import os
from hashlib import sha256
from importlib import metadata, util
from pathlib import Path
from typing import Any


def fingerprint() -> dict[str, str]:
    """What must be the same everywhere for runs to be the same: versions, and a hash of the source
    of unbag."""
    spec = util.find_spec("unbag")
    if spec is None or spec.origin is None:
        return {"unbag": "not installed"}
    folder, source = Path(spec.origin).parent, sha256()
    for path in sorted(folder.rglob("*.py")):
        source.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    versions = {name: metadata.version(name) for name in ("unbag", "jax", "numpy")}
    return {**versions, "source": source.hexdigest()[:12]}


def work(
    packed: bytes, data: list[Any], driver: dict[str, str], threads: int
) -> list[dict[str, Any]] | dict[str, str]:
    """The rows of a group; the worker's fingerprint when it is not the driver's.

    Parameters
    ----------
    packed : bytes
        Parts of the group, and what plans know under the names in it.
    data : list
        A reference to the task's data.
    driver : dict
        The driver's fingerprint.
    threads : int
        Of XLA, which would otherwise take all cores of the node for every task.
    """
    mine = fingerprint()
    if mine != driver:
        return mine
    os.environ.setdefault("NPROC", str(threads))
    import ray
    from ray import cloudpickle

    from unbag.lab._methods import METHODS
    from unbag.lab._run import train_group
    from unbag.lab._tasks import MODELS, TASKS, data_of

    parts, task, model, method = cloudpickle.loads(packed)
    common, given = parts[0].common, ray.get(data[0])
    TASKS[common.task] = task._replace(load=lambda: given)
    MODELS[common.model], METHODS[common.method] = model, method
    data_of.cache_clear()
    return [row for part in parts for row in train_group(part)]
