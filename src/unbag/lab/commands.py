"""Words of the command line in, runs made and a report written; tables go to stdout, the rest to stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from unbag.lab.plans import Plan, preset, read_plan
from unbag.lab.running import run_plan
from unbag.lab.store import Store


def reproduce(
    task: str | None,
    name: str | None,
    path: Path | None,
    folder: Path | None,
    changes: dict[str, Any],
    report: Path | None,
    force: bool,
) -> None:
    """Make the missing runs of a task, then report; without a task only report."""
    store = Store(folder or Path("unbag-store") / (name or (path.stem if path else "smoke")))
    if task is not None or path is not None:
        plan = _plan(task, name, path, changes)
        made = run_plan(plan, store, progress=True)
        print(f"{made} runs made, {plan.count() - made} were there already: {store.folder}", file=sys.stderr)
    elif report is None:
        raise ValueError("A task, a plan or a report must be asked for: none came. Try: unbag reproduce adult")


def _plan(task: str | None, name: str | None, path: Path | None, changes: dict[str, Any]) -> Plan:
    if path is not None and name is not None:
        raise ValueError(f"A plan must come from a preset or from a file: {name} and {path} came. Leave one out.")
    if path is not None:
        return read_plan(path, **changes, **({"task": task} if task else {}))
    return preset(name or "smoke", str(task), **changes)
