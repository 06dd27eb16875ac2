"""Finished online runs in, Parquet files out, and back: one file holds one run, written whole or
not at all."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import unbag
from unbag._io import whole
from unbag._rules import broken
from unbag.lab._online_plan import Cell, OnlinePlan, OnlineRun
from unbag.lab._store import lock

PLAN, DATA = "plan.json", "data.json"


class OnlineStore:
    """A folder of finished runs, one Parquet file each."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, run: OnlineRun) -> Path:
        """Where a run lies."""
        return (
            self.folder
            / f"{run.source}-{run.method}-{run.loss}-k{run.size:04d}-{run.identity()}.parquet"
        )

    def add(self, run: OnlineRun, history: dict[str, list[float]]) -> None:
        """Write a finished run."""
        row = {"run": run.identity(), **run._asdict(), "version": unbag.__version__, **history}
        path = self.path(run)
        draft = path.with_suffix(f".{os.getpid()}.draft")
        try:
            pq.write_table(pa.Table.from_pylist([row]), draft)
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def keep_plan(self, plan: OnlinePlan) -> None:
        """Write which plan these runs belong to, so that a report needs no more than the folder."""
        with whole(self.folder / PLAN) as draft:
            draft.write_text(json.dumps(asdict(plan), indent=1) + "\n")

    def plan(self) -> OnlinePlan | None:
        """The plan that was run last, or None."""
        path = self.folder / PLAN
        if not path.exists():
            return None
        fields: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in _read(path).items()
        }
        unknown = sorted(fields.keys() - OnlinePlan.__dataclass_fields__.keys())
        if unknown:
            raise broken(
                (
                    "A plan of online runs must have the fields "
                    f"{', '.join(OnlinePlan.__dataclass_fields__)}"
                ),
                f"{', '.join(unknown)} came in {path}",
                "Use the unbag that wrote it, or another folder.",
            )
        return OnlinePlan(**fields)

    def check_data(self, source: str, told: str) -> None:
        """Refuse data other than those of the runs that are there: a run's identity does not tell
        which file it read.

        told : anything that differs where the data differ.
        """
        path = self.folder / DATA
        known = _read(path) if path.exists() else {}
        if known.get(source, told) != told:
            raise broken(
                "A store's online runs must come from the same data",
                (
                    f"the first chunk of {source} that there is now is not the one that "
                    f"{self.folder} has runs of"
                ),
                "Use another folder.",
            )
        if source not in known:
            with whole(path) as draft:
                draft.write_text(json.dumps(known | {source: told}, indent=1) + "\n")

    def read(self, run: OnlineRun) -> dict[str, Any] | None:
        """A finished run, or None."""
        path = self.path(run)
        try:
            return pq.read_table(path).to_pylist()[0] if path.exists() else None
        except pa.ArrowInvalid:
            warnings.warn(
                f"{path} cannot be read: its run counts as not done, and is made again.",
                stacklevel=2,
            )
            return None

    @contextmanager
    def claim(self, plan: OnlinePlan, cell: Cell) -> Iterator[bool]:
        """Whether this process may work on a cell; others may not, until the block or the process
        ends."""
        name = sha256(repr((plan, cell)).encode()).hexdigest()[:16]
        (self.folder / ".claims").mkdir(exist_ok=True)
        with (self.folder / ".claims" / f"{name}.claim").open("w") as file:
            yield lock(file)


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
