"""Runs made by the workers of a Ray cluster.

The driver alone writes to the store: workers then need neither the store's folder nor the data
files, its locks never meet a network disk, and what has arrived is kept however the rest ends.
Ray gets `fingerprint` and `work` by value, and they import unbag only after comparing it, so that a
worker with another unbag, or with none, can say so instead of failing somewhere inside.
"""

from __future__ import annotations

import os
import socket
import sys
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata, util
from math import ceil
from pathlib import Path
from typing import Any

from unbag._rules import broken
from unbag.lab._catalogue import METHODS, MODELS, TASKS
from unbag.lab._run import AfterEpoch, Job

CLAIMED = 256  # groups at most that wait or run, because each holds an open file
MEMORY = (
    "Train fewer runs at once with rates_together and repetitions_together, or state more CPUs for "
    "a task"
)


class EngineError(RuntimeError):
    """Some groups could not be made. Everything else is in the store."""


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

    from unbag.lab._catalogue import METHODS, MODELS, TASKS, data_of
    from unbag.lab._run import train_group

    parts, task, model, method = cloudpickle.loads(packed)
    common, given = parts[0].common, ray.get(data[0])
    TASKS[common.task] = task._replace(load=lambda: given)
    MODELS[common.model], METHODS[common.method] = model, method
    data_of.cache_clear()
    return [row for part in parts for row in train_group(part)]


@dataclass(frozen=True)
class RayEngine:
    """Make the groups of a plan on a Ray cluster, one task for each.

    Use it as `run_plan(plan, store, engine=RayEngine())`.

    Parameters
    ----------
    address : str, optional
        Of the cluster, as "host:6379"; "auto" for the one on this machine. Without it
        $RAY_ADDRESS is taken, and without that a cluster is started on this machine. A program that
        has called `ray.init` itself stays connected.
    cpus, gpus : float
        Of one task; threads are limited to the CPUs.
    retries : int
        How often Ray makes a group again whose worker or node was lost or ran out of memory.
    patience : float
        Seconds to wait for the address to answer.
    """

    address: str | None = None
    cpus: float = 1
    gpus: float = 0
    retries: int = 3
    patience: float = 5.0

    def __post_init__(self) -> None:
        for name in ("cpus", "gpus", "retries"):
            value = getattr(self, name)
            if value < 0:
                rule = f"A task's {name} must not be negative"
                raise broken(rule, f"{value} given", "Leave it out.")

    def __call__(
        self, jobs: Iterator[Job], progress: AfterEpoch
    ) -> Generator[tuple[Job, list[dict[str, Any]]]]:
        """Each job with its rows, as they finish; an error at the end names those not made.

        Parameters
        ----------
        jobs : iterator of Job
            Taken as there is room for them.
        progress : callable
            Called when a job has finished, once for each of its epochs.
        """
        try:
            import ray
        except ImportError as error:
            words = "The engine ray must have Ray, which is not installed."
            raise ImportError(f"{words} Run pip install 'unbag[ray]'.") from error
        with self._connected(ray):
            wanted = {"CPU": self.cpus, "GPU": self.gpus}
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            if not any(all(node.get(kind, 0) >= n for kind, n in wanted.items()) for node in nodes):
                warnings.warn(
                    f"No node has {self.cpus:g} CPUs and {self.gpus:g} GPUs for a task: all wait "
                    "until one joins. Ask for less.",
                    stacklevel=2,
                )
            yield from self._make(ray, jobs, progress, fingerprint())

    @contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:
        if ray.is_initialized():
            yield
            return
        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        options: dict[str, Any] = {"log_to_driver": False}
        if address == "local":
            options["include_dashboard"] = False
        elif address != "auto":
            _check_address(address, self.patience)
        # A cluster that we start reports to nobody, and Ray's own default is to retry for ever.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_task_oom_retries", str(self.retries))
        with redirect_stdout(sys.stderr):  # what Ray prints is no data
            ray.init(address, **options)
            try:
                yield
            finally:
                ray.shutdown()

    def _make(
        self, ray: Any, jobs: Iterator[Job], progress: AfterEpoch, here: dict[str, str]
    ) -> Iterator[tuple[Job, Any]]:
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers may lack unbag
        resources = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        make = ray.remote(work).options(**resources, max_retries=self.retries)
        threads = max(1, ceil(self.cpus))
        running: dict[Any, Job] = {}
        failed: list[str] = []
        data: list[Any] = []
        try:
            while True:
                # twice what runs at once, so that nobody waits and a cluster can grow
                room = 2 * int(ray.cluster_resources().get("CPU", 1) / max(self.cpus, 1)) + 2
                for _, job in zip(range(min(room, CLAIMED) - len(running)), jobs, strict=False):
                    common, task = job.group.common, TASKS[job.group.common.task]
                    if not data:  # without the offset beside it, which a worker adds
                        data.append(ray.put(task.load()))
                    # added tasks, models and methods reach the workers with the job
                    known = (task._replace(load=None), MODELS[common.model], METHODS[common.method])  # type: ignore[arg-type]
                    packed = ray.cloudpickle.dumps((job.parts, *known))
                    running[make.remote(packed, data, here, threads)] = job
                if not running:
                    break
                (done,), _ = ray.wait(list(running))
                job = running.pop(done)
                rows = _rows_of(ray, done, here)
                if isinstance(rows, str):
                    failed.append(f"{job.group.title} ({rows})")
                    continue
                for _ in range(job.group.common.epochs):
                    progress(job.group, len(rows))
                yield job, rows
        finally:
            for left in running:
                ray.cancel(left, force=True)
        if failed:
            raise EngineError(
                f"{len(failed)} groups could not be made, all others are in the store: "
                f"{'; '.join(failed[:3])}."
            )


def _check_address(address: str, patience: float) -> None:
    """Refuse an address at which nothing listens; `ray.init` would try for many minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=patience).close()
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"An address must be that of a Ray cluster, as host:6379: none answers at {address} "
            f"({error}). Start one with ray start --head, or leave the address out to use this "
            "machine."
        ) from None


def _differ(here: dict[str, str], there: dict[str, str]) -> str:
    """What is not the same, and what to do."""
    names = [name for name in here if here[name] != there.get(name)]
    mine, theirs = (
        ", ".join(f"{name} {side.get(name, 'none')}" for name in names) for side in (here, there)
    )
    return (
        f"Workers must have the unbag of the driver: {mine} given here and {theirs}. "
        "Install the same on all nodes; what is in the store stays."
    )


def _rows_of(ray: Any, done: Any, here: dict[str, str]) -> list[dict[str, Any]] | str:
    """What a task gave, or why it gave nothing."""
    try:
        rows = ray.get(done)
    except ray.exceptions.OutOfMemoryError:
        return f"it ran out of memory, again and again. {MEMORY}"
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError):
        return f"its worker died, again and again; mostly that is for lack of memory. {MEMORY}"
    except ray.exceptions.RayTaskError as error:
        return f"{type(error.cause).__name__}: {error.cause}"
    except ray.exceptions.RayError as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(rows, dict):
        return _differ(here, rows)
    return rows
