"""Folders of finished runs in Parquet files, one row per run, histories as lists.

A process adds one small file for each group of runs that it finishes, and nothing else is changed
while anybody works on the folder. When the last process ends, the small files are merged into the
one file `runs.parquet`. A file is written under another name, synced and renamed, so it is there
whole or not at all. The merged file is in place before the small ones go, and a run that is there
twice counts once, so that a kill at any moment loses nothing.
"""

from __future__ import annotations

import csv
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, get_type_hints

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unbag._io import whole
from unbag._rules import broken
from unbag.lab._plan import Group, RunSettings
from unbag.tables._duckdb import plain_duckdb

try:
    import fcntl
except ImportError:  # Windows: no locks, and work that two processes did twice counts once
    fcntl = None

FORMAT = 1
MERGED = "runs.parquet"
HISTORY = ("train", "test_loss", "test_auc", "held_out", "choice")
# Neighbours in this order have similar histories, which then compress well.
ORDER = (
    "task", "model", "start", "epochs", "batch", "rows", "chunks", "method", "loss", "size",
    "smoothing", "holdout", "repetition", "rate",
)  # fmt: skip
_TYPES = {str: pa.string(), int: pa.int32(), float: pa.float64()}
COLUMNS = {
    "run": pa.string(),
    **{name: _TYPES[kind] for name, kind in get_type_hints(RunSettings).items()},
    "bags": pa.int32(),
    "trivial": pa.float64(),
    "diverged": pa.int32(),
    "seconds": pa.float32(),
    "version": pa.string(),
    **dict.fromkeys(HISTORY, pa.list_(pa.float32())),
}
"""run : identity of the settings that follow. bags : trained on. trivial : test loss of the
trivial predictor. diverged : epoch in which the run broke off, or null. version : of unbag."""
SCHEMA = pa.schema(list(COLUMNS.items()), {"unbag_store": str(FORMAT)})


class RunFolder:
    """A folder of finished runs: what batch and online experiments share.

    Parameters
    ----------
    folder : str or Path
        Where the files are. It need not exist yet.
    """

    pattern = "*.parquet"

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        # By path and time of change: the merged file changes its content and keeps its name.
        self._formats: dict[tuple[Path, int], str | None] = {}
        self._identities: dict[tuple[Path, int], frozenset[str]] = {}

    def files(self) -> list[Path]:
        """The readable files; a warning names the others."""
        stamps = self._stamps()
        for stamp in stamps:
            if stamp not in self._formats:
                self._formats[stamp] = _format_of(stamp[0])
        bad = [stamp[0] for stamp in stamps if self._formats[stamp] is None]
        if bad:
            many = f" ({len(bad)} such files)" * (len(bad) > 1)
            warnings.warn(
                f"{bad[0]} cannot be read and is left out{many}: its runs count as not done. "
                "Delete it.",
                stacklevel=2,
            )
        return [stamp[0] for stamp in stamps if self._formats[stamp] is not None]

    def finished(self) -> set[str]:
        """Identities of the runs that are there."""
        readable, runs = set(self.files()), set()
        for stamp in self._stamps():
            if stamp[0] in readable:
                if stamp not in self._identities:
                    column = pq.read_table(stamp[0], columns=["run"])["run"]
                    self._identities[stamp] = frozenset(column.to_pylist())
                runs |= self._identities[stamp]
        return runs

    def compact(self) -> int:
        """Merge the small files, unless another process works on the folder.

        Returns
        -------
        int
            How many files were merged into another one.
        """
        with self.locked("store", wait=False) as alone:
            if not alone:
                return 0
            for draft in self.folder.glob(f"**/.*.parquet.{'?' * 8}"):  # of a process that died
                draft.unlink()
            return sum(
                self._merge(folder, list(files))
                for folder, files in groupby(self.files(), key=lambda path: path.parent)
            )

    def _merge(self, folder: Path, files: Sequence[Path]) -> int:
        small = [path for path in files if path.name != MERGED]
        if not small:
            return 0
        table = pa.concat_tables([pq.read_table(path) for path in files])
        _, first = np.unique(table["run"].to_numpy(), return_index=True)
        keys = [(name, "ascending") for name in ORDER if name in table.column_names]
        write_runs(table.take(first).sort_by(keys), folder / MERGED)
        for path in small:
            path.unlink()
        return len(small)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the files as they are while this process works on the folder; others may too."""
        with self.locked("store", shared=True):
            yield

    @contextmanager
    def claim(self, identity: str) -> Iterator[bool]:
        """Whether this process may make some runs; others may not, until the block ends.

        The system releases the lock when the process ends, however it ends.
        """
        with self.locked(identity, wait=False) as mine:
            yield mine
            if mine:  # whoever opened the file just before will see that the runs are finished
                (self._locks() / identity).unlink(missing_ok=True)

    @contextmanager
    def locked(self, name: str, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
        """Hold a lock of the folder until the block or the process ends.

        Parameters
        ----------
        name : str
            What is locked.
        shared : bool
            Whether others may hold it at the same time, shared as well.
        wait : bool
            Whether to wait for others; without, the block gets False when they hold it.
        """
        with (self._locks() / name).open("w") as file:
            yield _lock(file, shared=shared, wait=wait)

    def _locks(self) -> Path:
        folder = self.folder / ".claims"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _stamps(self) -> list[tuple[Path, int]]:
        paths = sorted(self.folder.glob(self.pattern))
        return [(path, path.stat().st_mtime_ns) for path in paths]


class RunStore(RunFolder):
    """Finished runs of the batch experiments, a folder for each task: `RunStore("results")`."""

    pattern = "*/*.parquet"

    def files(self) -> list[Path]:
        """The readable files; one of another format is refused."""
        files = super().files()
        for (path, _), known in self._formats.items():
            if known not in (None, str(FORMAT)):
                raise broken(
                    f"A store must be of format {FORMAT}",
                    f"{path} is of format {known}",
                    "Use the unbag that wrote it, or another folder.",
                )
        return files

    def query(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Rows of an SQL query over the table `runs`, each run once.

        Parameters
        ----------
        sql : str
            The query.
        *values : Any
            What its question marks stand for.
        """
        return self.arrow(sql, *values).to_pylist()

    def arrow(self, sql: str, *values: Any) -> pa.Table:
        """The same as an Arrow table.

        Parameters
        ----------
        sql : str
            The query.
        *values : Any
            What its question marks stand for.
        """
        try:
            return self._arrow(sql, values)
        except duckdb.IOException:  # files were merged after they had been listed
            return self._arrow(sql, values)

    def _arrow(self, sql: str, values: Sequence[Any]) -> pa.Table:
        with plain_duckdb(), duckdb.connect() as connection:
            files = [str(path) for path in self.files()]
            if files:
                # a character of a pattern in a path of ours stands for itself
                plain = [re.sub(r"([*?[])", r"[\1]", file) for file in files]
                connection.read_parquet(plain, filename=True, hive_partitioning=False).create_view(
                    "everything"
                )
            else:
                empty = SCHEMA.empty_table().append_column("filename", pa.array([], "string"))
                connection.register("everything", empty)
            connection.execute(
                "CREATE VIEW runs AS SELECT * EXCLUDE (filename) FROM everything "
                "QUALIFY row_number() OVER (PARTITION BY run ORDER BY filename) = 1"
            )
            return connection.sql(sql, params=list(values)).to_arrow_table()

    def check_data(self, task: str, rows: int) -> None:
        """Refuse data other than those of the runs that are there.

        Parameters
        ----------
        task : str
            Its runs are looked at; a run's identity does not say which file it read.
        rows : int
            How many rows there are now to train on.
        """
        others = self.query(
            "SELECT size, bags FROM runs WHERE task = ? AND rows = 0 AND holdout = 0 AND bags "
            "!= ? // size LIMIT 1",
            task,
            rows,
        )
        for other in others:
            raise broken(
                "A store's runs of a task must come from the same data",
                f"{self.folder} has runs of {task} with {other['bags']} bags of "
                f"{other['size']}, but the {rows} rows that there are now make "
                f"{rows // other['size']}",
                "Use another folder.",
            )

    def add(self, group: Group, rows: Sequence[dict[str, Any]]) -> Path:
        """Write finished runs of a claimed group.

        Parameters
        ----------
        group : Group
            Names the file.
        rows : sequence of dict
            One for each run, with the columns of `COLUMNS`; its scores of the held-out bags
            (`scores`) are kept beside the files.

        Returns
        -------
        Path
            The file.
        """
        scores = {row["run"]: row.pop("scores") for row in rows if "scores" in row}
        common = group.common
        parts = [common.model, common.method, common.loss, f"k{common.size:04d}"]
        if common.holdout:
            parts.append(f"holdout{common.holdout:g}")
        identities = "".join(sorted(row["run"] for row in rows))
        parts.append(sha256(identities.encode()).hexdigest()[:8])
        path = self.folder / common.task / f"{'-'.join(parts)}.parquet"
        try:
            for run, array in scores.items():
                self._keep_scores(run, array)
            write_runs(pa.Table.from_pylist(list(rows), SCHEMA), path)
        except OSError as error:
            raise OSError(
                error.errno,
                f"The runs of {path.name} could not be written and will be made again "
                f"({error.strerror}); the store stays readable. Make room, and start again",
                str(self.folder),
            ) from error
        return path

    def scores(self, run: str) -> np.ndarray | None:
        """The scores that a run gave its held-out bags, if they are still beside the store."""
        path = self.folder / ".scores" / f"{run}.npy"
        if not path.exists():
            return None
        return np.load(path)

    def _keep_scores(self, run: str, scores: Any) -> None:
        folder = self.folder / ".scores"
        folder.mkdir(parents=True, exist_ok=True)
        with whole(folder / f"{run}.npy") as draft, draft.open("wb") as file:
            np.save(file, np.asarray(scores, np.float32))
            _sync(file)

    def table(self, name: str) -> list[dict[str, str]]:
        """The rows of a small table that every task may have; the folder of a report, which may
        lie in the store, is no task."""
        rows: list[dict[str, str]] = []
        for path in sorted(self.folder.glob(f"*/{name}.csv")):
            with path.open(newline="") as file:
                rows += [row for row in csv.DictReader(file) if row["task"] == path.parent.name]
        return rows

    def write_table(self, task: str, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Write a task's small table, whole or not at all.

        Parameters
        ----------
        task, name : str
            Whose table, and its name.
        rows : sequence of dict
            With the same keys.
        """
        path = self.folder / task / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as draft:
            write_csv(draft, rows)


def write_runs(table: pa.Table, path: Path) -> None:
    """Write runs as a Parquet file, whole or not at all.

    Parameters
    ----------
    table : pyarrow.Table
        One row for each run.
    path : Path
        Its folder is made where it does not exist.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Bytes of the same place in the numbers of a history are alike: half the size of plain zstd.
    lists = [field.name for field in table.schema if pa.types.is_list(field.type)]
    split = [f"{name}.list.element" for name in lists]
    with whole(path) as draft, draft.open("wb") as file:
        pq.write_table(
            table,
            file,
            compression="zstd",
            compression_level=19,
            use_dictionary=False,
            use_byte_stream_split=split,  # type: ignore[arg-type]
        )
        _sync(file)


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows that have the same keys as a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def typed(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a CSV row that are fields of this kind and not empty, as what they are."""
    known = {name: hint for name, hint in get_type_hints(kind).items() if row.get(name)}
    return {
        name: row[name] == "True" if hint is bool else hint(row[name])
        for name, hint in known.items()
    }


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _lock(file: Any, *, shared: bool, wait: bool) -> bool:
    if fcntl is None:
        return True
    mode = fcntl.LOCK_EX
    if shared:
        mode = fcntl.LOCK_SH
    if not wait:
        mode |= fcntl.LOCK_NB
    try:
        fcntl.flock(file, mode)
    except BlockingIOError:
        return False
    return True


def _format_of(path: Path) -> str | None:
    """The format of a file, or None when it cannot be read."""
    try:
        return (pq.read_schema(path).metadata or {}).get(b"unbag_store", b"unknown").decode()
    except (OSError, pa.ArrowInvalid):
        return None
