"""Finished runs in, Parquet files out, and back through DuckDB: a folder to which files are only
ever added.

One file holds one group of runs, one row per run, histories as lists. A file is written under
another name, synced and renamed, so it is there whole or not at all. Who works on a group holds a
lock on a claim file, which the system lets go when the process ends, however it ends. Runs that are
there twice count once.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, get_type_hints

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unbag._rules import broken
from unbag.lab._plan import Group, Settings
from unbag.tables._duckdb import plain_duckdb

try:
    import fcntl
except ImportError:  # Windows: no claims, and work that two processes did twice counts once
    fcntl = None

FORMAT = 1
HISTORY = ("train", "test_loss", "test_auc", "held_out", "choice")
_FLOATS = pa.list_(pa.float32())
_TYPES = {str: pa.string(), int: pa.int32(), float: pa.float64()}
COLUMNS = {
    "run": pa.string(),
    **{name: _TYPES[kind] for name, kind in get_type_hints(Settings).items()},
    "bags": pa.int32(),
    "trivial": pa.float64(),
    "diverged": pa.int32(),
    "seconds": pa.float32(),
    "version": pa.string(),
    **dict.fromkeys(HISTORY, _FLOATS),
}
"""run : identity of the settings that follow. bags : trained on. trivial : test loss of the trivial predictor.
diverged : epoch in which the run broke off, or null. version : of unbag."""
SCHEMA = pa.schema(list(COLUMNS.items()), {"unbag_store": str(FORMAT)})


class Store:
    """A folder of finished runs."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._known: dict[Path, str | None] = {}  # format of each file, None when it cannot be read
        self._runs: dict[Path, frozenset[str]] = {}

    def files(self) -> list[Path]:
        """The readable files; a warning names the others, and a file of another format is
        refused."""
        found = sorted(self.folder.glob("*/*.parquet"))
        for path in found:
            if path not in self._known:
                self._known[path] = _format_of(path)
        bad = [path for path in found if self._known[path] is None]
        if bad:
            more = f" ({len(bad)} such files)" if len(bad) > 1 else ""
            warnings.warn(
                (
                    f"{bad[0]} cannot be read and is left out{more}: its runs count as not done. "
                    "Delete it."
                ),
                stacklevel=2,
            )
        other = [path for path in found if self._known[path] not in (None, str(FORMAT))]
        if other:
            raise broken(
                f"A store must be of format {FORMAT}",
                f"{other[0]} is of format {self._known[other[0]]}",
                "Use the unbag that wrote it, or another folder.",
            )
        return [path for path in found if path not in bad]

    def query(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Rows of an SQL query over the table `runs`, each run once."""
        return self.arrow(sql, *values).to_pylist()

    def arrow(self, sql: str, *values: Any) -> pa.Table:
        """The same as an Arrow table."""
        with plain_duckdb(), duckdb.connect() as connection:
            files = [str(path) for path in self.files()]
            if files:
                connection.read_parquet(files, filename=True).create_view("everything")
            else:
                connection.register(
                    "everything",
                    SCHEMA.empty_table().append_column("filename", pa.array([], "string")),
                )
            connection.execute(
                "CREATE VIEW runs AS SELECT * EXCLUDE (filename) FROM everything "
                "QUALIFY row_number() OVER (PARTITION BY run ORDER BY filename) = 1"
            )
            return connection.sql(sql, params=list(values)).to_arrow_table()

    def finished(self) -> set[str]:
        """Identities of the runs that are there."""
        for path in self.files():
            if path not in self._runs:
                self._runs[path] = frozenset(
                    pq.read_table(path, columns=["run"])["run"].to_pylist()
                )
        return set().union(*self._runs.values())

    def check_data(self, task: str, rows: int) -> None:
        """Refuse data that cannot be those of the runs that are there: a run's identity does not
        tell."""
        seen = self.query(
            (
                "SELECT size, bags FROM runs WHERE task = ? AND rows = 0 AND holdout = 0 AND bags "
                "!= ? // size LIMIT 1"
            ),
            task,
            rows,
        )
        if seen:
            raise broken(
                "A store's runs of a task must come from the same data",
                (
                    f"{self.folder} has runs of {task} with {seen[0]['bags']} bags of "
                    f"{seen[0]['size']}, but the {rows} rows that there are now make "
                    f"{rows // seen[0]['size']}"
                ),
                "Use another folder.",
            )

    def add(self, group: Group, rows: Sequence[dict[str, Any]]) -> Path:
        """Write finished runs of a claimed group; what they say of held-out bags (`scores`) is kept
        beside them."""
        kept = {row["run"]: row.pop("scores") for row in rows if "scores" in row}
        table = pa.Table.from_pylist(list(rows), SCHEMA)
        common = group.common
        runs = sha256("".join(sorted(row["run"] for row in rows)).encode()).hexdigest()[:8]
        held = f"-holdout{common.holdout:g}" if common.holdout else ""
        name = (
            f"{common.model}-{common.method}-{common.loss}-k{common.size:04d}{held}-{runs}.parquet"
        )
        path, draft = (
            self.folder / common.task / name,
            self._claims() / f"{group.identity()}-{os.getpid()}.draft",
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with draft.open("wb") as file:
                pq.write_table(table, file, compression="zstd", compression_level=9)
                file.flush()
                os.fsync(file.fileno())
            for run, scores in kept.items():
                self._keep_scores(run, scores)
            draft.replace(path)
            self._known.pop(path, None)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise OSError(
                error.errno,
                f"The runs of {name} could not be written and will be made again "
                f"({error.strerror}); the store stays readable. Make room, and start again",
                str(self.folder),
            ) from error
        return path

    def scores(self, run: str) -> np.ndarray | None:
        """The scores that a run gave its held-out bags, if they are still beside the store."""
        path = self.folder / ".scores" / f"{run}.npy"
        return np.load(path) if path.exists() else None

    def _keep_scores(self, run: str, scores: Any) -> None:
        folder = self.folder / ".scores"
        folder.mkdir(exist_ok=True)
        draft = folder / f"{run}-{os.getpid()}.draft"
        with draft.open("wb") as file:
            np.save(file, np.asarray(scores, np.float32))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder / f"{run}.npy")

    def table(self, name: str) -> list[dict[str, str]]:
        """The rows of a small table that every task may have; a report's, which may lie in the
        store, are no task's."""
        found: list[dict[str, str]] = []
        for path in sorted(self.folder.glob(f"*/{name}.csv")):
            with path.open(newline="") as file:
                found += [row for row in csv.DictReader(file) if row["task"] == path.parent.name]
        return found

    def write_table(self, task: str, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Write a task's small table, whole or not at all."""
        path, draft = (
            self.folder / task / f"{name}.csv",
            self._claims() / f"{name}-{os.getpid()}.draft",
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        draft.replace(path)

    @contextmanager
    def claim(self, group: Group) -> Iterator[bool]:
        """Whether this process may work on a group; others may not, until the block or the process
        ends."""
        path = self._claims() / f"{group.identity()}.claim"
        with path.open("w") as file:
            mine = lock(file)
            yield mine
            if mine:  # whoever opened the file just before will find the group finished
                path.unlink(missing_ok=True)

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Let one process at a time do something to the store; others wait."""
        with (self._claims() / f"{name}.lock").open("w") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _claims(self) -> Path:
        folder = self.folder / ".claims"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def lock(file: Any) -> bool:
    """Whether this process now holds the file, until it closes it or ends."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _format_of(path: Path) -> str | None:
    """The format of a file, or None when it cannot be read."""
    try:
        return (pq.read_schema(path).metadata or {}).get(b"unbag_store", b"unknown").decode()
    except (OSError, pa.ArrowInvalid):
        return None
