"""Folders of finished runs in Parquet files, one row per run, histories as lists.

A process adds one small file for each group of runs that it finishes, and nothing else is changed
while anybody works on the folder. When the last process ends, the small files are merged into the
one file `runs.parquet`. A file is written under another name, synced and renamed, so it is there
whole or not at all. The merged file is in place before the small ones go, and a run that is there
twice counts once, so that a kill at any moment loses nothing.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unbag._io import NO_LOCKS, lock, whole
from unbag._rules import broken
from unbag.lab._plan import RunSettings, identity_of

FORMAT = "2"
READABLE = ("1", FORMAT)  # the first had a column with each run's identity, which nobody needs
MERGED = "runs.parquet"
HISTORY = ("train", "test_loss", "test_auc", "held_out", "choice")
# Neighbours in this order have similar histories, which then compress well: runs of a low rate
# hardly move.
ORDER = (
    "task", "model", "start", "batch", "rows", "chunks", "rate", "method", "loss", "smoothing",
    "epochs", "size", "holdout", "repetition",
)  # fmt: skip


def schema_of(settings: type, facts: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns of runs: what they are, what is known of them, and the mark of a store.

    Parameters
    ----------
    settings : type
        A named tuple of text and numbers.
    facts : mapping from str to DataType
        The other columns.
    """
    types = {str: pa.string(), int: pa.int32(), float: pa.float64()}
    columns = {name: types[kind] for name, kind in get_type_hints(settings).items()}
    return pa.schema(list({**columns, **facts}.items()), {"unbag_store": FORMAT})


class RunFolder:
    """A folder of finished runs: what batch and online experiments share.

    Parameters
    ----------
    folder : str or Path
        Where the files are. It need not exist yet.
    """

    pattern = "*.parquet"
    settings: Any
    """The named tuple that says which run a row is."""
    schema: pa.Schema

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        # By path and time of change: the merged file changes its content and keeps its name.
        self._known: dict[tuple[Path, int], frozenset | None] = {}

    def files(self) -> list[Path]:
        """The readable files; a warning names the others, and another format is refused."""
        return list(self._contents())

    def finished(self) -> set:
        """The settings of the runs that are there."""
        return {run for runs in self._contents().values() for run in runs}

    def _contents(self) -> dict[Path, frozenset]:
        """The runs in each readable file, of one look at the folder: another process may add files
        at any moment."""
        contents = {}
        for path in sorted(self.folder.glob(self.pattern)):
            stamp = (path, path.stat().st_mtime_ns)
            if stamp not in self._known:
                self._known[stamp] = self._runs_in(path)
            contents[path] = self._known[stamp]
        bad = [path for path, runs in contents.items() if runs is None]
        if bad:
            many = f" ({len(bad)} such files)" * (len(bad) > 1)
            warnings.warn(
                f"{bad[0]} cannot be read and is left out{many}: its runs count as not done. "
                "Delete it.",
                stacklevel=3,
            )
        return {path: runs for path, runs in contents.items() if runs is not None}

    def _runs_in(self, path: Path) -> frozenset | None:
        try:
            mark = (pq.read_schema(path).metadata or {}).get(b"unbag_store", b"unknown").decode()
            if mark in READABLE:
                table = pq.read_table(path, columns=list(self.settings._fields))
                columns = (column.to_pylist() for column in table.columns)
                return frozenset(map(self.settings._make, zip(*columns, strict=True)))
        except (OSError, pa.ArrowInvalid):
            return None
        rule, given = f"A store must be of format {FORMAT}", f"{path} is of format {mark}"
        raise broken(rule, given, "Use the unbag that wrote it, or another folder.")

    def runs(self, columns: Sequence[str] | None = None, **which: Any) -> pa.Table:
        """The runs of all files, each once.

        Parameters
        ----------
        columns : sequence of str, optional
            Beside the settings; by default all.
        **which : Any
            Only runs with these settings.
        """
        try:
            return self._once(self.files(), columns, **which)
        except FileNotFoundError:  # files were merged after they had been listed
            return self._once(self.files(), columns, **which)

    def _once(
        self, files: Sequence[Path], columns: Sequence[str] | None = None, **which: Any
    ) -> pa.Table:
        """The runs of some files: of those that are there twice, the first."""
        settings, names = list(self.settings._fields), self.schema.names
        if columns is not None:
            names = [*settings, *columns]
        wanted = [(name, "=", value) for name, value in which.items()] or None
        tables = [pq.read_table(path, columns=names, filters=wanted) for path in files]
        schema = pa.schema([self.schema.field(name) for name in names])
        table = pa.concat_tables([schema.empty_table(), *tables], promote_options="default")
        numbered = table.append_column("row", pa.array(np.arange(len(table))))
        first = numbered.group_by(settings).aggregate([("row", "min")])["row_min"]
        return table.take(first.sort())

    def add(self, rows: Sequence[dict[str, Any]]) -> Path:
        """Write finished runs of one method and bag size.

        Parameters
        ----------
        rows : sequence of dict
            One for each run, with the columns of `schema`.

        Returns
        -------
        Path
            The file.
        """
        first = rows[0]
        runs = sorted(tuple(row[name] for name in self.settings._fields) for row in rows)
        name = f"{first['method']}-{first['loss']}-k{first['size']:04d}-{identity_of(runs)}.parquet"
        path = self._folder_of(first) / name
        try:
            self._keep(rows, path)
        except OSError as error:
            raise OSError(
                error.errno,
                f"The runs of {path.name} could not be written and will be made again "
                f"({error.strerror}); the store stays readable. Make room, and start again",
                str(self.folder),
            ) from error
        return path

    def _folder_of(self, row: Mapping[str, Any]) -> Path:
        return self.folder

    def _keep(self, rows: Sequence[dict[str, Any]], path: Path) -> None:
        self._write(pa.Table.from_pylist(list(rows), self.schema), path)

    def compact(self) -> int:
        """Merge the small files, unless another process works on the folder.

        Returns
        -------
        int
            How many files were merged into another one.
        """
        merged = 0
        keys = [(name, "ascending") for name in ORDER if name in self.schema.names]
        with self.locked("store", wait=False) as alone:
            if not alone:
                return 0
            for folder, files in groupby(self.files(), key=lambda path: path.parent):
                there = list(files)
                small = [path for path in there if path.name != MERGED]
                if small:
                    self._write(self._once(there).sort_by(keys), folder / MERGED)
                for path in small:
                    path.unlink()
                merged += len(small)
        return merged

    def _write(self, table: pa.Table, path: Path) -> None:
        """A Parquet file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lists = [field.name for field in self.schema if pa.types.is_list(field.type)]
        with whole(path) as draft:
            pq.write_table(
                table.cast(self.schema),
                draft,
                compression="zstd",
                compression_level=19,
                use_dictionary=False,
                # Bytes of the same place in the numbers of a history are alike: half the size of
                # plain zstd, and a little less where a page has many of them.
                use_byte_stream_split=[f"{name}.list.element" for name in lists],  # type: ignore
                data_page_size=2**24,
            )

    def in_use(self) -> AbstractContextManager:
        """Keep the files as they are while this process works on the folder; others may too."""
        return self.locked("store", shared=True)

    @contextmanager
    def claim(self, identity: str) -> Iterator[bool]:
        """Whether this process may make some runs; others may not, until the block ends.

        The system releases the lock when the process ends, however it ends.
        """
        with self.locked(identity, wait=False) as mine:
            yield mine
            if mine:  # whoever opened the file just before will see that the runs are finished
                (self.folder / ".claims" / identity).unlink(missing_ok=True)

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
        path = self.folder / ".claims" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            # without locks, as on Windows, work that two processes did twice counts once
            yield lock(file.fileno(), shared=shared, wait=wait) or NO_LOCKS


class RunStore(RunFolder):
    """Finished runs of the batch experiments, a folder for each task: `RunStore("results")`.

    Of each run it knows, beside its settings: `bags` trained on; `trivial`, the test loss of the
    trivial predictor; `diverged`, the epoch in which it broke off, or null; and the version of
    unbag.
    """

    pattern = "*/*.parquet"
    settings = RunSettings
    schema = schema_of(
        RunSettings,
        {
            "bags": pa.int32(), "trivial": pa.float64(), "diverged": pa.int32(),
            "seconds": pa.float32(), "version": pa.string(),
            **dict.fromkeys(HISTORY, pa.list_(pa.float32())),
        },
    )  # fmt: skip

    def _folder_of(self, row: Mapping[str, Any]) -> Path:
        return self.folder / row["task"]

    def check_data(self, task: str, rows: int) -> None:
        """Refuse data other than those of the runs that are there.

        Parameters
        ----------
        task : str
            Its runs are looked at; a run's identity does not say which file it read.
        rows : int
            How many rows there are now to train on.
        """
        whole = self.runs(("bags",), task=task, rows=0, holdout=0.0).select(["size", "bags"])
        others = [run for run in whole.to_pylist() if run["bags"] != rows // run["size"]]
        for other in others[:1]:
            raise broken(
                "A store's runs of a task must come from the same data",
                f"{self.folder} has runs of {task} with {other['bags']} bags of "
                f"{other['size']}, but the {rows} rows that there are now make "
                f"{rows // other['size']}",
                "Use another folder.",
            )

    def _keep(self, rows: Sequence[dict[str, Any]], path: Path) -> None:
        """The same; scores of held-out bags (`scores`) are kept beside the files."""
        for row in rows:
            if "scores" in row:
                own = self._scores_of(RunSettings(*(row[name] for name in RunSettings._fields)))
                own.parent.mkdir(parents=True, exist_ok=True)
                with whole(own) as draft, draft.open("wb") as file:
                    np.save(file, np.asarray(row.pop("scores"), np.float32))
        super()._keep(rows, path)

    def scores(self, run: RunSettings) -> np.ndarray | None:
        """The scores that a run gave its held-out bags, if they are still beside the store."""
        path = self._scores_of(run)
        if not path.exists():
            return None
        return np.load(path)

    def _scores_of(self, run: RunSettings) -> Path:
        return self.folder / ".scores" / f"{run.identity()}.npy"

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
