"""A folder into which files of events and of reports fall, in any order, as input of a stream.

A file with the column of totals (or proportions) holds reports, another one events. Each is read
once, in an order that is written down before it is read: after a crash the files that the last
checkpoint does not know are read again in the same order, so that the stream goes on bit for bit.
What cannot be read is set aside with the reason, stays where it is, and is tried again when it has
changed: half a file (a Parquet file without its end, a CSV file without the end of its last line),
columns that are missing, ids that are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import expit

from unbag._io import whole
from unbag._rules import Refused, broken
from unbag.models import mixed_network
from unbag.stream._checkpoint import LEDGER, SETUP, STORE, StreamStore
from unbag.stream._learner import StreamLearner
from unbag.stream._settings import StreamSettings
from unbag.tables import (
    Columns,
    FeaturePlan,
    as_ids,
    as_moments,
    data_files,
    open_table,
    plan_features,
    report_rows,
)


class Arrival(NamedTuple):
    """A file that was taken.

    Parameters
    ----------
    number : int
        From 1, in the order in which files are read.
    name : str
        Within the folder.
    kind : {"events", "reports"}
        What it holds.
    size, modified : int
        Bytes, and nanoseconds of its last change.
    """

    number: int
    name: str
    kind: Literal["events", "reports"]
    size: int
    modified: int


class Setup(NamedTuple):
    """What is decided from the first files, and kept.

    Parameters
    ----------
    plan : FeaturePlan
        How columns become features.
    start : float
        The score to start from.
    """

    plan: FeaturePlan
    start: float


class FolderInput:
    """The files of a folder, each taken once.

    Parameters
    ----------
    folder : Path
        Where files fall.
    state : Path
        The folder of the stream, where it is written down which files were taken.
    columns : Columns
        Which column is what.
    """

    def __init__(self, folder: Path, state: Path, columns: Columns) -> None:
        if not folder.is_dir():
            rule = "A stream must come from a folder of files"
            raise broken(rule, f"{folder} is none", "Make the folder, or look at the path.")
        if columns.reports_are != "binary":
            rule = "A stream must have reports on a binary label"
            remedy = "Use unbag train for counts and classes."
            raise broken(rule, f"these are of kind {columns.reports_are}", remedy)
        if columns.total is not None and columns.size is None:
            raise broken(
                "Totals of a stream must come with the number of events in the bag, as files "
                "arrive in any order",
                "no column was named",
                "Name it with {size}, or give proportions with {proportion}.",
            )
        self.folder, self.state, self.columns = folder, state, columns
        self.taken: list[Arrival] = []
        if (state / LEDGER).exists():
            *lines, rest = (state / LEDGER).read_bytes().split(b"\n")
            if rest:  # a last line that a crash cut short counts for nothing
                (state / LEDGER).write_bytes(b"".join(line + b"\n" for line in lines))
            self.taken = [Arrival(**json.loads(line)) for line in lines]
        self.aside: dict[str, str] = {}
        self._known: dict[str, tuple[int, int]] = {}  # how files looked when they were set aside
        self._looked: dict[str, tuple[int, int]] = {}

    def setup(self, **how: Any) -> Setup | None:
        """How columns become features, and the score to start from: as it was kept, or from the
        files that are there; None where no events are yet.

        Parameters
        ----------
        **how : Any
            Of `unbag.plan_features`: `features`, `override`.
        """
        kept = read_setup(self.state)
        if kept is not None:
            return kept
        events = [file for file in self._files() if self._kind(file) == "events"]
        if not events:
            return None
        ids = dict.fromkeys(self.columns.as_text, pa.string())
        first = open_table(events[0], types=ids)
        plan = plan_features(first, leave_out=self.columns.no_features, **how)
        made = Setup(plan, self._start())
        self.state.mkdir(parents=True, exist_ok=True)  # not before: what fails leaves nothing
        with whole(self.state / SETUP) as temporary:
            temporary.write_text(json.dumps({"plan": made.plan.to_json(), "start": made.start}))
        return made

    def _start(self) -> float:
        """The logit of the mean report of the first file that has any, else 0."""
        for file in self._files():
            if self._kind(file) != "reports":
                continue
            with suppress(Refused, OSError, ValueError):  # `feed` will set it aside with the reason
                share = report_rows(file, self.columns).value
                if np.isfinite(share).any():
                    p = float(np.clip(np.nanmean(share), 0.001, 0.999))
                    return float(np.log(p / (1 - p)))
        return 0.0

    def arrivals(self, position: int, *, settled: bool = False) -> Iterator[Arrival]:
        """The files after a position: first those that were taken before, then new ones in the
        order of their times, events before reports.

        Parameters
        ----------
        position : int
            The number of the last file that the stream has.
        settled : bool
            Whether to wait with files that have changed since the last call, as somebody writes.
        """
        for arrival in self.taken[position:]:
            if _look(self.folder / arrival.name) == (arrival.size, arrival.modified):
                yield arrival
            else:
                self._set_aside(arrival.name, "it was taken before a crash and has changed since")
        done = {arrival.name for arrival in self.taken}
        before, self._looked = self._looked, {}
        fresh = []
        for file in self._files():
            name, look = file.relative_to(self.folder).as_posix(), _look(file)
            self._looked[name] = look
            ready = not settled or before.get(name) == look
            if name not in done and ready and self._known.get(name) != look:
                fresh.append((look[1], self._kind(file), name, look))
        for _, kind, name, look in sorted(each for each in fresh if each[1]):
            arrival = Arrival(len(self.taken) + 1, name, kind, *look)
            self.aside.pop(name, None)
            self.taken.append(arrival)
            with open(self.state / LEDGER, "a", encoding="utf-8") as ledger:  # before it is read
                ledger.write(json.dumps(arrival._asdict()) + "\n")
                ledger.flush()
                os.fsync(ledger.fileno())
            yield arrival

    def _files(self) -> list[Path]:
        return [file for file in data_files(self.folder) if not file.is_relative_to(self.state)]

    def _kind(self, file: Path) -> str:
        """What a file holds; empty for one that is set aside."""
        try:
            _check_end(file)
            reports = set(self.columns.values) <= set(open_table(file).schema.names)
            kind = {True: "reports", False: "events"}[reports]
            needed = {"events": self.columns.of_events, "reports": self.columns.of_reports}[kind]
            open_table(file, thing=kind).need(needed)
            return kind
        except (Refused, OSError, ValueError) as error:
            self._set_aside(file.relative_to(self.folder).as_posix(), str(error))
            return ""

    def _set_aside(self, name: str, why: str) -> None:
        self.aside[name] = why
        self._known[name] = _look(self.folder / name)

    def feed(self, arrival: Arrival, learner: StreamLearner, plan: FeaturePlan) -> None:
        """Give a file to the learner, wholly or not at all.

        Parameters
        ----------
        arrival : Arrival
            The file.
        learner : StreamLearner
            Who predicts and learns.
        plan : FeaturePlan
            How columns become features.
        """
        file = self.folder / arrival.name
        try:
            if arrival.kind == "events":
                for _ in self._parts(file, plan):
                    pass  # so that a fault at the end of the file is known before its start
                for X, bag, time in self._parts(file, plan):
                    learner.events(X, bag, time=time)
            else:
                reports = report_rows(file, self.columns)
                size = None if self.columns.size is None else reports.size
                noise = reports.noise
                learner.report(reports.bag.to_pylist(), reports.value, size=size, noise=noise)
        except (Refused, OSError, ValueError) as error:
            self._set_aside(arrival.name, str(error))
            learner.quarantine.add("file", str(error), where=arrival.name)
        learner.advance(arrival.number)

    def _parts(self, file: Path, plan: FeaturePlan) -> Iterator[tuple[np.ndarray, list[str], Any]]:
        """Features, bags and times of a file of events, in batches."""
        keys, when = self.columns.keys, self.columns.time
        keep = [name for name in (*keys, when) if name is not None and name not in plan.read]
        for batch in plan.tables(file, keep=keep):
            bag = as_ids(batch, keys, text=True).to_pylist()
            if None in bag:
                rule, given = "A bag id must not be missing", f"an event of {file.name} has none"
                raise broken(rule, given, "Give such events their bag, or drop them on purpose.")
            time = None
            if when is not None:
                time = as_moments(batch[when], name=when)
            yield plan.features(batch), bag, time


class StreamModel:
    """The model of a stream of files as it stands in its folder, for events of new tables.

    Parameters
    ----------
    folder : Path
        Of the stream.
    """

    kind_, method_, takes_tables = "binary", "a stream", False
    old_score_ = fitted_ = learned_ = None

    def __init__(self, folder: Path) -> None:
        kept = read_setup(folder)
        if kept is None or not (folder / STORE).exists():
            rule = "A folder in place of a model must be that of a stream of files"
            remedy = "Give the folder that unbag stream wrote with --folder."
            raise broken(rule, f"{folder} is none", remedy)
        store = StreamStore(folder)
        try:
            loaded = store.load()
        finally:
            store.close()
        self.plan_ = kept.plan
        settings = StreamSettings()
        if loaded is not None:
            settings = StreamSettings(**loaded[0]["settings"])
        learner = learner_of(kept, settings, folder)
        learner.close()  # the model is in memory now
        self._learner = learner

    def predict_proba(self, X: np.ndarray | pa.Table) -> np.ndarray:
        """The probability of each class, one column for each.

        Parameters
        ----------
        X : numpy.ndarray or pyarrow.Table
            Features as the plan makes them, or the events themselves.
        """
        if isinstance(X, pa.Table):
            X = self.plan_.features(X)
        h = expit(self._learner.predict(X))
        return np.stack([1 - h, h], axis=1)


def learner_of(
    setup: Setup, settings: StreamSettings, folder: Path, *, every: int = 8
) -> StreamLearner:
    """The learner of a stream of files, from where its folder stands.

    Parameters
    ----------
    setup : Setup
        How columns become features, and the score to start from.
    settings : StreamSettings
        How it learns.
    folder : Path
        Of the stream.
    every : int
        Chunks between checkpoints.
    """
    plan = setup.plan
    network = mixed_network(
        plan.numbers, plan.buckets, plan.dimensions, key=settings.seed, start=setup.start
    )
    return StreamLearner(network, settings, folder=folder, every=every)


def read_setup(folder: Path) -> Setup | None:
    """What a stream of files has kept in its folder, if there is one."""
    path = folder / SETUP
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    return Setup(FeaturePlan.from_json(kept["plan"]), kept["start"])


def _check_end(file: Path) -> None:
    """Refuse a CSV file whose last line is not finished: somebody may still be writing it."""
    if not file.name.lower().endswith(".csv"):
        return
    with file.open("rb") as opened:
        opened.seek(max(file.stat().st_size - 1, 0))
        if opened.read(1) not in (b"\n", b""):
            rule = "A CSV file must end with the end of a line"
            remedy = "It is read as soon as its last line is finished."
            raise broken(rule, f"{file.name} does not, so that it may be half-written", remedy)


def _look(file: Path) -> tuple[int, int]:
    """Size and time of a file; nothing for one that is gone."""
    try:
        known = file.stat()
    except OSError:
        return (-1, -1)
    return (known.st_size, known.st_mtime_ns)
