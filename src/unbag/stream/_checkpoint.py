"""The SQLite database in which a stream lasts: its state, and the events that wait for a report.

Events are written as they arrive, each call in a transaction of its own. A checkpoint is one
transaction: it replaces the state (parameters, counters, what is known of the bags that wait) and
deletes the events that only the checkpoint before needed. Whoever is killed at any point finds the
last checkpoint whole; resuming deletes the events that arrived after it. The logs are plain text
beside the database, for people and their tools. They are synced before the transaction, which
holds their lengths, and resuming cuts them back.

A checkpoint holds the digest of its whole content: the state, and every event that waits. Resuming
verifies it, because SQLite notices torn pages but not bits that changed inside of a value.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from unbag._rules import Refused, broken

STORE, METRICS, QUARANTINE = "stream.db", "metrics.jsonl", "quarantine.jsonl"
SETUP, LEDGER = "setup.json", "files.jsonl"  # of files that fall into a folder, see `_folder`
# A row of events holds those of one bag in one call, so that a bag can be read and deleted alone.
SCHEMA = """
CREATE TABLE IF NOT EXISTS state (number INTEGER PRIMARY KEY, value BLOB);
CREATE TABLE IF NOT EXISTS events (
    part INTEGER PRIMARY KEY, bag INTEGER, dtype TEXT, X BLOB, score BLOB, digest BLOB);
CREATE INDEX IF NOT EXISTS events_of_bag ON events (bag);
"""
WHOLE = -1  # the number, among the parts of the state, of the digest of them all
MARK = 0x756E6267  # in the header of a database that has a checkpoint, should its tables get lost
OF_BAGS = "bag IN (SELECT value FROM json_each(?))"


class StreamStore:
    """The database and the logs of a stream; one process at a time.

    Parameters
    ----------
    folder : path, optional
        Without one, the database is a temporary file that goes with the process.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder: Path | None = None
        if folder is not None:
            self.folder = Path(folder)
            inside = {path.name for path in self.folder.glob("*")} - {SETUP, LEDGER}
            if inside and STORE not in inside:
                rule = "A stream must have a folder of its own"
                raise broken(rule, f"{folder} holds something else", "Name another one.")
            self.folder.mkdir(parents=True, exist_ok=True)
        with self._clear_errors():
            self.db = _connect(self.folder)
        self._let_go = weakref.finalize(self, self.db.close)
        self.last = 0  # part that was written
        self.kept = 0  # last part that the checkpoint refers to
        self.ended: list[int] = []  # bags whose events only the last checkpoint refers to
        self.shape: tuple[int, ...] = ()  # of one event's features
        self.lengths = {METRICS: 0, QUARANTINE: 0}

    def close(self) -> None:
        """Let others in."""
        self._let_go()

    def add(self, X: np.ndarray, score: np.ndarray, bag: np.ndarray) -> None:
        """Write events, or none of them where the disk refuses.

        Parameters
        ----------
        X, score : array
            Features of the events, and the scores they got.
        bag : array of int
            The number of each event's bag.
        """
        order = np.argsort(bag, kind="stable")
        X, score, bag = X[order], score[order].astype(np.float32), bag[order]
        starts = np.flatnonzero(np.diff(bag, prepend=bag[0] - 1)).tolist()
        rows = []
        for part, (i, j) in enumerate(zip(starts, [*starts[1:], len(bag)], strict=True), start=1):
            row = (self.last + part, int(bag[i]), X.dtype.str, X[i:j].tobytes())
            row += (score[i:j].tobytes(),)
            rows.append((*row, _digest(*row)))
        with self._clear_errors(), self.db:
            self.db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
        self.last, self.shape = self.last + len(rows), X.shape[1:]

    def read(self, bags: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, scores and bag numbers of the events of some bags, as they arrived."""
        query = f"SELECT * FROM events WHERE {OF_BAGS} ORDER BY part"
        with self._clear_errors():
            rows = self.db.execute(query, (json.dumps(bags),)).fetchall()
        self._check_events(rows)
        score = [np.frombuffer(row[4], np.float32) for row in rows]
        X = np.concatenate([np.frombuffer(row[3], row[2]) for row in rows])
        bag = np.repeat([row[1] for row in rows], [len(part) for part in score])
        return X.reshape(-1, *self.shape), np.concatenate(score), bag

    def drop(self, bags: list[int]) -> None:
        """The events of some bags wait no more; those in the checkpoint stay until the next one."""
        # whoever resumes learns from these bags again, and needs the events of the checkpoint
        query, deleted = f"DELETE FROM events WHERE part > ? AND {OF_BAGS}", False
        with suppress(OSError), self._clear_errors(), self.db:
            self.db.execute(query, (self.kept, json.dumps(bags)))
            deleted = True
        if self.kept or not deleted:  # a full disk may refuse a deletion, too
            self.ended += bags

    def save(
        self, state: dict[str, Any], leaves: list[np.ndarray], logs: dict[str, list[str]]
    ) -> None:
        """Make a checkpoint, in one transaction.

        Parameters
        ----------
        state : dict
            What JSON can hold.
        leaves : list of array
            Parameters and moments.
        logs : dict of str to list of str
            New lines of each log, which are taken out of the lists once they are written.
        """
        # logs first: lines beyond the lengths in the database are cut off at the next start, while
        # lengths beyond the lines would be a damaged folder
        for name, lines in logs.items():
            self._append(name, lines)
            lines.clear()
        kinds = [[leaf.dtype.name, leaf.shape] for leaf in leaves]
        written = state | {"leaves": kinds, "lengths": self.lengths, "last": self.last}
        blobs = [json.dumps(written | {"shape": self.shape}).encode()]
        blobs += [leaf.tobytes() for leaf in leaves]
        with self._clear_errors(), self.db:
            self.db.execute(f"DELETE FROM events WHERE {OF_BAGS}", (json.dumps(self.ended),))
            rows = [*enumerate(blobs), (WHOLE, self._whole(blobs, self.last))]
            self.db.executemany("REPLACE INTO state VALUES (?, ?)", rows)
            self.db.execute(f"PRAGMA user_version = {MARK}")
        self.kept, self.ended = self.last, []
        with self._clear_errors():  # moves the log into the database and syncs both
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def load(self) -> tuple[dict[str, Any], list[np.ndarray]] | None:
        """The state and arrays of the last checkpoint, or None; everything later is undone."""
        with self._clear_errors():
            checked = self.db.execute("PRAGMA integrity_check").fetchone()[0]
            rows = self.db.execute("SELECT * FROM state ORDER BY number").fetchall()
            mark = self.db.execute("PRAGMA user_version").fetchone()[0]
        if checked != "ok":
            raise self._damaged(checked)
        if mark != {True: MARK, False: 0}[len(rows) > 0]:
            raise self._damaged("its last checkpoint is lost")
        result, state = None, {"last": 0, "lengths": self.lengths, "shape": ()}
        if rows:
            state, *arrays = self._checked_state(rows)
            pairs = zip(arrays, state["leaves"], strict=True)
            leaves = [np.frombuffer(blob, kind).reshape(shape) for blob, (kind, shape) in pairs]
            result = state, leaves
        self.last = self.kept = state["last"]
        self.lengths, self.shape = state["lengths"], tuple(state["shape"])
        # the source is read again from the position of the checkpoint, so these will come again
        with self._clear_errors(), self.db:
            self.db.execute("DELETE FROM events WHERE part > ?", (self.last,))
        for name in self.lengths:
            self._cut(name)
        return result

    def _checked_state(self, rows: list[tuple[int, bytes]]) -> list[Any]:
        """The state and the bytes of its arrays, whose digest, with that of the events, is the one
        that was written beside them."""
        (first, digest), *parts = rows
        blobs = [blob for _, blob in parts]
        try:
            state = json.loads(blobs[0])
            same = first == WHOLE and self._whole(blobs, state["last"]) == digest
        except (ValueError, LookupError, TypeError) as error:
            raise self._damaged("its last checkpoint has changed") from error
        if not same:
            raise self._damaged("its last checkpoint has changed")
        with self._clear_errors():
            self._check_events(
                self.db.execute("SELECT * FROM events WHERE part <= ?", (state["last"],))
            )
        return [state, *blobs[1:]]

    def _whole(self, blobs: list[bytes], last: int) -> bytes:
        """The digest of a checkpoint: of its state, and of the digests of its events."""
        query = "SELECT part, digest FROM events WHERE part <= ? ORDER BY part"
        return _digest(*blobs, *(value for row in self.db.execute(query, (last,)) for value in row))

    def _check_events(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for *row, digest in rows:
            if _digest(*row) != digest:
                raise self._damaged(f"the events of its bag number {row[1]} have changed")

    def _append(self, name: str, lines: list[str]) -> None:
        """Append to a log and sync it; when that fails, the log is as before."""
        assert self.folder is not None
        if not lines:
            return
        try:
            with (self.folder / name).open("ab") as file:
                length = file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            self._cut(name)
            raise
        self.lengths[name] += length

    def _cut(self, name: str) -> None:
        if self.folder is None:
            return
        path, length = self.folder / name, self.lengths[name]
        if length > (path.stat().st_size if path.exists() else 0):
            rule = "The logs of a stream must be those of its checkpoint"
            remedy = "Put a copy of the folder in its place, or begin again in another one."
            raise broken(rule, f"{path} is shorter than it was", remedy)
        if path.exists():
            os.truncate(path, length)

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Errors of SQLite as those of the disk, of another process, or of a damaged file."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                rule = "A stream must be run by one process at a time"
                remedy = "Wait for it, or use another folder."
                raise broken(rule, f"another one works in {self.folder}", remedy) from None
            raise OSError(f"{STORE}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, fault: str) -> Refused:
        return broken(
            "The database of a stream must be whole",
            f"{self.folder}/{STORE} is damaged ({fault})",
            "Put a copy of the folder in its place, or begin again in another one.",
        )


def _connect(folder: Path | None) -> sqlite3.Connection:
    # SQLite's name for a temporary file is none
    name = "" if folder is None else str(folder / STORE)
    db = sqlite3.connect(name, timeout=0, check_same_thread=False)
    try:
        db.execute("PRAGMA page_size = 16384")  # a third faster than 4096 for large parameters
        db.execute("PRAGMA locking_mode = EXCLUSIVE")  # one process, until it ends
        # A commit goes to the write-ahead log, which the system keeps when a process is killed. In
        # this mode SQLite syncs only when it moves the log into the database: a power cut may undo
        # the commits since then, but never tears one apart, and every checkpoint moves the log.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _digest(*values: Any) -> bytes:
    """Of numbers, texts and bytes, each with its type and length, so that none runs into the
    next."""
    whole = hashlib.sha256()
    for value in values:
        blob = value if isinstance(value, bytes) else repr(value).encode()
        whole.update(f"{type(value).__name__} {len(blob)} ".encode())
        whole.update(blob)
    return whole.digest()


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """What was observed of every chunk of the stream in a folder, in order."""
    path = Path(folder) / METRICS
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: np.nan if value is None else value for k, value in row.items()} for row in rows]
