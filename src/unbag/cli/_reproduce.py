"""Words of the command line in, runs made and a report written; tables go to stdout, the rest to
stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from unbag._rules import broken
from unbag.lab import _choice, _plots
from unbag.lab._engines import RayEngine
from unbag.lab._plan import Plan, preset, read_plan
from unbag.lab._report import write_report
from unbag.lab._results import choice_table, experiment_table, read_runs
from unbag.lab._run import run_plan
from unbag.lab._store import RunStore
from unbag.lab._tasks import data_of, download


def reproduce(
    *,
    task: str | None = None,
    name: str | None = None,
    path: Path | None = None,
    folder: Path | None = None,
    changes: dict[str, Any],
    report: Path | None = None,
    force: bool = False,
    fetch: bool = False,
    engine: str = "here",
    resources: dict[str, Any] | None = None,
) -> None:
    """Make the missing runs of a task, then report; without a task only report.

    name : of a preset. path : of a plan. folder : of the store. changes : to the plan. report :
        folder for it.
    fetch : download files that are not there. engine : "here", in this process, or "ray". resources
        : for `RayEngine`.
    """
    store = RunStore(folder or Path("unbag-store") / (name or (path.stem if path else "smoke")))
    if task is None and path is None and report is None:
        raise broken(
            "A task, a plan or a report must be asked for",
            "none came",
            "Try: unbag reproduce adult",
        )
    maker = engine_of(engine, **(resources or {}))
    if report is not None:
        check_report(report, force)
    if task is not None or path is not None:
        plan = _plan(task, name, path, changes)
        if fetch:
            download(plan.task)
        _make(plan, store, maker)
    if report is not None:
        written = write_report(store, report)
        _tell(f"{len(written)} files written: {report}")


def _plan(task: str | None, name: str | None, path: Path | None, changes: dict[str, Any]) -> Plan:
    if path is not None and name is not None:
        raise broken(
            "A plan must come from a preset or from a file",
            f"{name} and {path} came",
            "Leave one out.",
        )
    if path is not None:
        return read_plan(path, **changes, **({"task": task} if task else {}))
    return preset(name or "smoke", str(task), **changes)


def engine_of(name: str, **resources: Any) -> RayEngine | None:
    """What makes the runs, by name; None stands for this process."""
    if name not in ("here", "ray"):
        raise broken(
            "An engine must be here or ray",
            f"{name!r} came",
            "Leave it out to work in this process.",
        )
    if name == "here" and resources:
        raise broken(
            f"Only the engine ray takes {', '.join(resources)}",
            "the engine is here",
            "Add --engine ray.",
        )
    return RayEngine(**resources) if name == "ray" else None


def _make(plan: Plan, store: RunStore, engine: RayEngine | None) -> None:
    note = data_of(plan.task).note
    if note:
        _tell(f"{plan.task}: {note}")
    made = run_plan(plan, store, progress=True, engine=engine)
    _tell(f"{made} runs made, {plan.count() - made} were there already: {store.folder}")
    everything, told = (
        read_runs(store, task=plan.task),
        _plots.name_of("test_loss", plan.experiment),
    )
    if plan.holdout:
        told += f" of what held-out bags choose, a share of {plan.holdout:g}"
        table = choice_table(everything, _choice.read(store), plan.experiment, plan.holdout)
    else:
        table = experiment_table(everything, plan.experiment, "test_loss")
    print(f"{plan.experiment.title}: {told}\n\n{table}")


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def check_report(folder: Path, force: bool) -> None:
    """Refuse a place for a report that is taken."""
    if folder.exists() and not folder.is_dir():
        raise broken("A report must go to a folder", f"{folder} is a file", "Choose another name.")
    if folder.exists() and any(folder.iterdir()) and not force:
        raise broken(
            "A report must go to an empty folder",
            f"{folder} is not empty",
            "Use --force to overwrite.",
        )
