"""Folders of finished online runs, with the plan that they belong to."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unbag._io import whole
from unbag._rules import broken
from unbag.lab._online_plan import Cell, OnlinePlan, OnlineRun
from unbag.lab._store import RunFolder, schema_of

PLAN, DATA = "plan.json", "data.json"
HISTORY = ("label_log_loss", "label_auc", "log_loss", "auc", "prior_of_chunk", "true_log_loss")


class OnlineStore(RunFolder):
    """A folder of finished online runs.

    Parameters
    ----------
    folder : str or Path
        It is made where it does not exist.
    """

    settings = OnlineRun
    schema = schema_of(
        OnlineRun, {"version": pa.string(), **dict.fromkeys(HISTORY, pa.list_(pa.float64()))}
    )

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._rows: dict[OnlineRun, dict[str, Any]] = {}

    def read(self, run: OnlineRun) -> dict[str, Any] | None:
        """A finished run, or None."""
        if run not in self.finished():
            return None
        if run not in self._rows:
            for row in self.query("SELECT * FROM runs"):
                self._rows[OnlineRun(*(row[name] for name in OnlineRun._fields))] = row
        return self._rows[run]

    def keep_plan(self, plan: OnlinePlan) -> None:
        """Write which plan these runs belong to, so that a report needs no more than the folder."""
        with whole(self.folder / PLAN) as draft:
            draft.write_text(json.dumps(asdict(plan), indent=1) + "\n")

    def plan(self) -> OnlinePlan | None:
        """The plan that was run last, or None."""
        path = self.folder / PLAN
        if not path.exists():
            return None
        known = OnlinePlan.__dataclass_fields__
        fields = _read(path)
        unknown = sorted(fields.keys() - known.keys())
        if unknown:
            raise broken(
                f"A plan of online runs must have the fields {', '.join(known)}",
                f"{', '.join(unknown)} given in {path}",
                "Use the unbag that wrote it, or another folder.",
            )
        for name, value in fields.items():
            if isinstance(value, list):
                fields[name] = tuple(value)
        return OnlinePlan(**fields)

    def check_data(self, source: str, digest: str) -> None:
        """Refuse data other than those of the runs that are there.

        Parameters
        ----------
        source : str
            Names the data; a run's identity does not say which file it read.
        digest : str
            Anything that differs where the data differ.
        """
        path, known = self.folder / DATA, {}
        if path.exists():
            known = _read(path)
        if known.get(source, digest) != digest:
            raise broken(
                "A store's online runs must come from the same data",
                f"the first chunk of {source} that there is now is not the one that "
                f"{self.folder} has runs of",
                "Use another folder.",
            )
        if source not in known:
            with whole(path) as draft:
                draft.write_text(json.dumps(known | {source: digest}, indent=1) + "\n")


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise broken(
            "What a store of online runs keeps must be JSON",
            f"{path} is not ({error})",
            "Delete it.",
        ) from error


def online_stores(folder: Path) -> list[tuple[OnlinePlan, OnlineStore]]:
    """The stores in a folder that say which plan they belong to, with the plan."""
    stores = [OnlineStore(path.parent) for path in sorted(folder.glob(f"*/{PLAN}"))]
    return [(plan, store) for store in stores if (plan := store.plan())]


def best_rate(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> float | None:
    """The rate with the lowest average log loss of its predictions; None when a run is missing, or
    all diverged."""
    chunks, seeds = plan.chunks, plan.repetitions
    if plan.tuning:
        chunks, seeds = plan.tuning, 1
    losses = []
    for rate in plan.rates:
        runs = [store.read(plan.run(cell, rate, s, chunks)) for s in range(seeds)]
        if None in runs:
            return None
        losses.append(np.mean([np.mean(run["label_log_loss"]) for run in runs if run]))
    if not np.isfinite(losses).any():
        return None
    return plan.rates[int(np.nanargmin(losses))]


def finals(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> list[dict[str, Any]]:
    """The runs of all repetitions at the best rate, as far as they are there."""
    rate = best_rate(plan, cell, store)
    if rate is None:
        return []
    runs = [store.read(plan.run(cell, rate, s, plan.chunks)) for s in range(plan.repetitions)]
    return [run for run in runs if run is not None]
