"""Events and reports in any order in, complete bags out; what waits lies in Arrow files, not in memory.

A bag is complete when its report is there and it has as many events as the report says; a report without a size closes
its bag as it stands. The policy, in full:

- an event of a bag that is complete, learned or given up comes too late: it is refused ("late event");
- a report that comes again unchanged is counted ("repeated"); one that changes before its bag was learned replaces the
  old one or is refused, as `restated` says; one that comes after its bag was learned or given up is refused ("late");
- a report whose size is below the number of events that wait is refused ("size");
- a report before its events waits for them for `patience` further events, and then counts as one of an unknown bag;
- when more than `bound` events lie on disk, the oldest are given up with their bags ("no report").

Everything refused or given up goes to the quarantine. The last `remembered` bags that were learned or given up are
remembered; a report for an older one counts as one of an unknown bag.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from unbag.datasets import Quarantine

Restated = Literal["replace", "refuse"]
Name = int | str


@dataclass
class _Bag:
    """A bag that waits. since : how many events had arrived when it was first heard of."""

    number: int
    since: int
    events: int = 0
    report: float | None = None
    size: int | None = None
    noise: float = 0.0
    files: list[list[int]] = field(default_factory=list)  # which files hold how many of its events

    def complete(self) -> bool:
        return self.report is not None and self.events > 0 and self.events == (self.size or self.events)


class Complete(NamedTuple):
    """Complete bags: of each event its bag number, features and the score it got; of each bag name, report, noise."""

    bag: np.ndarray
    X: np.ndarray
    score: np.ndarray
    names: list[Name]
    report: np.ndarray
    noise: np.ndarray


class Buffer:
    """What waits for its report, or for its events."""

    def __init__(
        self, folder: Path, aside: Quarantine, *, bound: int, patience: int, remembered: int, restated: Restated
    ) -> None:
        self.folder, self.aside = folder, aside
        self.bound, self.patience, self.remembered, self.restated = bound, patience, remembered, restated
        self.bags: OrderedDict[Name, _Bag] = OrderedDict()
        self.ready: OrderedDict[Name, None] = OrderedDict()
        self.ended: OrderedDict[Name, str] = OrderedDict()
        self.rows: dict[int, list[int]] = {}  # of each file: rows, and how many of them still wait
        self.freed: list[int] = []
        self.unsynced: list[int] = []
        self.arrived = self.numbered = self.files = 0
        self.shape: tuple[int, ...] = ()  # of one event's features

    @property
    def ready_events(self) -> int:
        """Events of complete bags."""
        return sum(self.bags[name].events for name in self.ready)

    @property
    def waiting(self) -> int:
        """Events that are on disk and not learned."""
        return sum(left for _, left in self.rows.values())

    def add_events(self, names: list[Name], X: np.ndarray, score: np.ndarray) -> int:
        """Take events with the scores they got; returns how many were taken."""
        unique, bag = _number(names)
        taken, late = np.ones(len(names), bool), []
        for i, name in enumerate(unique):
            room = self._room(name)
            if room < np.inf and len(rows := np.flatnonzero(bag == i)) > room:
                taken[rows[int(room) :]] = False
                late.append((name, len(rows) - int(room)))
        count = np.bincount(bag[taken], minlength=len(unique))
        fresh = [name for name, n in zip(unique, count, strict=True) if n and name not in self.bags]
        number = {name: self.numbered + i for i, name in enumerate(fresh)}
        number |= {name: self.bags[name].number for name in unique if name in self.bags}
        if taken.any():  # the only thing that can fail comes first
            self._write(X[taken], score[taken], np.array([number.get(name, -1) for name in unique])[bag[taken]])
        self.arrived += len(names)
        for name, n in late:
            self.aside.add("late event", f"{n} events came for a bag that was complete or at its end", where=name)
        for name, n in zip(unique, count.tolist(), strict=True):
            if n:
                held = self.bags.get(name) or self._new(name)
                held.events += n
                held.files.append([self.files, n])
                self._settle(name)
        return int(taken.sum())

    def _room(self, name: Name) -> float:
        """How many more events a bag takes."""
        if name in self.ended:
            return 0
        held = self.bags.get(name)
        if held is None or held.report is None:
            return np.inf
        return held.size - held.events if held.size is not None else 0 if held.events else np.inf

    def _new(self, name: Name) -> _Bag:
        self.bags[name] = _Bag(self.numbered, self.arrived)
        self.numbered += 1
        return self.bags[name]

    def add_report(self, name: Name, report: float, size: int | None = None, noise: float = 0.0) -> bool:
        """Take a report; returns whether it was taken."""
        if name in self.ended:
            return self._refuse("late", f"the bag was {self.ended[name]} before", name, report)
        held = self.bags.get(name) or self._new(name)
        if held.report is not None:
            if (held.report, held.size, held.noise) == (report, size, noise):
                return self._refuse("repeated", "the same report came before", name, report)
            if self.restated == "refuse":
                return self._refuse("restated", f"the bag reported {held.report:g} before", name, report)
        if size is not None and size < held.events:
            return self._refuse("size", f"the report is of {size} events and {held.events} wait", name, report)
        if held.report is not None:
            self.aside.add("replaced", f"a new report came: {report:g}", where=name, record=held.report)
        held.report, held.size, held.noise = report, size, noise
        self._settle(name)
        return True

    def _refuse(self, kind: str, reason: str, name: Name, report: float) -> bool:
        self.aside.add(kind, reason, where=name, record=report)
        return False

    def _settle(self, name: Name) -> None:
        if self.bags[name].complete():
            self.ready[name] = None
        else:
            self.ready.pop(name, None)

    def give_up(self) -> None:
        """Forget early reports that waited too long, and the oldest events when there are too many."""
        for name in [n for n, b in self.bags.items() if b.events == 0 and self.arrived - b.since > self.patience]:
            self.aside.add("unknown bag", "no event of the bag came", where=name, record=self.bags.pop(name).report)
        while self.waiting > self.bound:
            oldest = min(number for number, (_, left) in self.rows.items() if left)
            for name in [n for n, b in self.bags.items() if any(oldest == file for file, _ in b.files)]:
                held = self.bags[name]
                self.aside.add("no report", f"{held.events} events waited too long", where=name, record=held.report)
                self._end([name], "given up")

    def take(self, events: int) -> Complete:
        """The first complete bags, with at least `events` events if there are so many; they count as learned."""
        names, total = [], 0
        for name in self.ready:
            if total >= events:
                break
            names.append(name)
            total += self.bags[name].events
        held = [self.bags[name] for name in names]
        X, score, number = self._read(sorted({file for bag in held for file, _ in bag.files}))
        order = np.argsort([bag.number for bag in held])
        numbers = np.array([held[i].number for i in order])
        place = np.minimum(np.searchsorted(numbers, number), len(numbers) - 1)
        mine = numbers[place] == number
        bag = order[place[mine]]
        self._end(names, "learned")
        report, noise = np.array([bag.report for bag in held], float), np.array([bag.noise for bag in held])
        return Complete(bag, X[mine], score[mine], names, report, noise)

    def _end(self, names: list[Name], how: str) -> None:
        for name in names:
            for file, count in self.bags[name].files:
                self.rows[file][1] -= count
                if self.rows[file][1] == 0:
                    del self.rows[file]
                    self.freed.append(file)
            del self.bags[name]
            self.ready.pop(name, None)
            self.ended[name] = how
        while len(self.ended) > self.remembered:
            self.ended.popitem(last=False)

    def _write(self, X: np.ndarray, score: np.ndarray, number: np.ndarray) -> None:
        flat, self.shape = X.reshape(len(X), -1), X.shape[1:]
        table = pa.table(
            {
                "X": pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1]),
                "score": score.astype(np.float32),
                "bag": number.astype(np.int64),
            }
        )
        path = self.path(self.files + 1)
        try:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        self.files += 1
        self.rows[self.files] = [len(X), len(X)]
        self.unsynced.append(self.files)

    def path(self, number: int) -> Path:
        """A file of events."""
        return self.folder / f"events-{number:08d}.arrow"

    def _table(self, number: int) -> pa.Table:
        with pa.memory_map(str(self.path(number))) as source:
            return pa.ipc.open_file(source).read_all()

    def _read(self, numbers: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        tables = [self._table(number) for number in numbers]
        X = [table["X"].combine_chunks().flatten().to_numpy().reshape(len(table), -1) for table in tables]
        score, bag = (np.concatenate([table[name].to_numpy() for table in tables]) for name in ("score", "bag"))
        return np.concatenate(X).reshape(-1, *self.shape), score, bag

    def manifest(self) -> dict[str, Any]:
        """Everything but the files, for a checkpoint."""
        return {
            "bags": [[name, asdict(bag)] for name, bag in self.bags.items()],
            "ready": list(self.ready),
            "ended": list(self.ended.items()),
            "rows": list(self.rows.items()),
            "counters": [self.arrived, self.numbered, self.files],
            "shape": list(self.shape),
        }

    def restore(self, manifest: dict[str, Any]) -> None:
        """Go back to a manifest; files that came after it are removed."""
        self.bags = OrderedDict((name, _Bag(**bag)) for name, bag in manifest["bags"])
        self.ready = OrderedDict.fromkeys(manifest["ready"])
        self.ended = OrderedDict(manifest["ended"])
        self.rows = {number: list(rows) for number, rows in manifest["rows"]}
        self.arrived, self.numbered, self.files = manifest["counters"]
        self.shape = tuple(manifest["shape"])
        known = {self.path(number) for number in self.rows}
        for path in self.folder.glob("events-*.arrow"):
            if path not in known:
                path.unlink()


def _number(names: list[Name]) -> tuple[list[Name], np.ndarray]:
    """The different names in the order of their first event, and the number of each."""
    known: dict[Name, int] = {}
    bag = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
    return list(known), bag
