"""Events and reports in any order in, complete bags out; what waits lies in Arrow files, not in
memory.

A bag is complete when its report is there and it has as many events as the report says; a report
without a size closes its bag as it stands. The policy, in full:

- an event of a bag that is complete, learned or given up comes too late: it is refused ("late
  event");
- a report that comes again unchanged is counted ("repeated"); one that changes before its bag was
  learned replaces the old one or is refused, as `restated` says; one that comes after its bag was
  learned or given up is refused ("late");
- a report whose size is below the number of events that wait is refused ("size");
- a bag with an event whose features or score are not finite is set aside whole ("broken bag"), for
  its report counts that event too; what comes for it later comes too late;
- a report before its events waits for them for `patience` further events, and then counts as one of
  an unknown bag; so do the oldest when more than `bound` reports wait;
- when more than `bound` events wait, the oldest are given up with their bags ("no report"). A file
  of which less than half still waits is written anew without the rest, so that the files in use
  hold at most twice what waits; only the files of the last checkpoint stay until the next one.

Everything refused or given up goes to the quarantine. The last `remembered` bags that were learned
or given up are remembered; a report for an older one counts as one of an unknown bag.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from unbag.datasets import Quarantine
from unbag.stream._store import Name, Store

Restated = Literal["replace", "refuse"]


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
        return (
            self.report is not None
            and self.events > 0
            and self.events == (self.size or self.events)
        )


class Complete(NamedTuple):
    """Complete bags: of each event its bag number, features and the score it got; of each bag name,
    report, noise."""

    bag: np.ndarray
    X: np.ndarray
    score: np.ndarray
    names: list[Name]
    report: np.ndarray
    noise: np.ndarray


class Buffer:
    """What waits for its report, or for its events."""

    def __init__(
        self,
        folder: Path,
        aside: Quarantine,
        *,
        bound: int,
        patience: int,
        remembered: int,
        restated: Restated,
    ) -> None:
        self.store, self.aside = Store(folder), aside
        self.bound, self.patience, self.remembered, self.restated = (
            bound,
            patience,
            remembered,
            restated,
        )
        self.bags: OrderedDict[Name, _Bag] = OrderedDict()
        self.early: OrderedDict[Name, None] = (
            OrderedDict()
        )  # bags with a report and no event, in the order they came
        self.ready: OrderedDict[Name, int] = (
            OrderedDict()
        )  # complete bags, and how many events each has
        self.ended: OrderedDict[Name, str] = OrderedDict()
        self.arrived = self.numbered = 0
        self.ready_events = 0  # events of complete bags

    @property
    def waiting(self) -> int:
        """Events that are on disk and not learned."""
        return self.store.waiting

    def add_events(
        self,
        names: list[Name],
        X: np.ndarray,
        score: np.ndarray,
        *,
        sound: np.ndarray | None = None,
    ) -> int:
        """Take events with the scores they got; returns how many were taken. sound : which are
        finite, else all."""
        unique, bag = _number(names)
        taken, late = np.ones(len(names), bool), []
        sound = np.ones(len(names), bool) if sound is None else sound
        for i, name in enumerate(unique):
            room = self._room(name)
            if room < np.inf and len(rows := np.flatnonzero(bag == i)) > room:
                taken[rows[int(room) :]] = False
                late.append((name, len(rows) - int(room)))
        came, bad = (
            np.bincount(bag[rows], minlength=len(unique)) for rows in (taken, taken & ~sound)
        )
        taken &= bad[bag] == 0
        count = np.bincount(bag[taken], minlength=len(unique))
        fresh = [name for name, n in zip(unique, count, strict=True) if n and name not in self.bags]
        number = {name: self.numbered + i for i, name in enumerate(fresh)}
        number |= {name: self.bags[name].number for name in unique if name in self.bags}
        if taken.any():  # the only thing that can fail comes first
            self.store.write(
                X[taken],
                score[taken],
                np.array([number.get(name, -1) for name in unique])[bag[taken]],
            )
        self.arrived += len(names)
        for name, n in late:
            self.aside.add(
                "late event",
                f"{n} events came for a bag that was complete or at its end",
                where=name,
            )
        for name, n in zip(unique, count.tolist(), strict=True):
            if n:
                held = self.bags.get(name) or self._new(name)
                held.events += n
                held.files.append([self.store.last, n])
                self.store.files[self.store.last].bags[name] = held.number
                self.early.pop(name, None)
                self._settle(name)
        for i in np.flatnonzero(bad):
            self._break(unique[i], int(bad[i]), int(came[i]))
        return int(taken.sum())

    def _break(self, name: Name, bad: int, came: int) -> None:
        """Set a bag aside, of which some events just came and some of these are bad."""
        held = self.bags.get(name) or self._new(name)
        self.aside.add(
            "feature",
            f"{bad} events have features or a score that is not finite",
            where=name,
            count=bad,
        )
        why = f"its report counts the bad events too; {held.events + came - bad} good ones are not learned from"
        self.aside.add("broken bag", why, where=name, record=held.report)
        self._end([name], "set aside")

    def events_of(self, name: Name) -> int:
        """How many events of a bag wait."""
        held = self.bags.get(name)
        return held.events if held else 0

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

    def add_report(
        self, name: Name, report: float, size: int | None = None, noise: float = 0.0
    ) -> bool:
        """Take a report; returns whether it was taken."""
        if name in self.ended:
            return self._refuse("late", f"the bag was {self.ended[name]} before", name, report)
        held = self.bags.get(name) or self._new(name)
        if held.events == 0:
            self.early[name] = None
        if held.report is not None:
            if (held.report, held.size, held.noise) == (report, size, noise):
                return self._refuse("repeated", "the same report came before", name, report)
            if self.restated == "refuse":
                return self._refuse(
                    "restated", f"the bag reported {held.report:g} before", name, report
                )
        if size is not None and size < held.events:
            return self._refuse(
                "size", f"the report is of {size} events and {held.events} wait", name, report
            )
        if held.report is not None:
            self.aside.add(
                "replaced", f"a new report came: {report:g}", where=name, record=held.report
            )
        held.report, held.size, held.noise = report, size, noise
        self._settle(name)
        return True

    def _refuse(self, kind: str, reason: str, name: Name, report: float) -> bool:
        self.aside.add(kind, reason, where=name, record=report)
        return False

    def _settle(self, name: Name) -> None:
        before = self.ready.get(name, 0)
        if self.bags[name].complete():
            self.ready[name] = self.bags[name].events
        else:
            self.ready.pop(name, None)
        self.ready_events += self.ready.get(name, 0) - before

    def give_up(self) -> None:
        """Forget early reports that waited too long or are too many, and the oldest events when
        there are too many."""
        while self.early and (len(self.early) > self.bound or self._longest_wait() > self.patience):
            name, _ = self.early.popitem(last=False)
            self.aside.add(
                "unknown bag",
                "no event of the bag came",
                where=name,
                record=self.bags.pop(name).report,
            )
        while self.waiting > self.bound:
            oldest = self.store.files[next(iter(self.store.files))]
            names = sorted(oldest.bags, key=lambda name: oldest.bags[name])
            for name in names:
                held = self.bags[name]
                self.aside.add(
                    "no report",
                    f"{held.events} events waited too long",
                    where=name,
                    record=held.report,
                )
            self._end(names, "given up")

    def _longest_wait(self) -> int:
        """How many events arrived since the oldest early report."""
        return self.arrived - self.bags[next(iter(self.early))].since

    def take(self, events: int) -> Complete:
        """The first complete bags, with at least `events` events if there are so many; they count
        as learned."""
        names, total = [], 0
        for name in self.ready:
            if total >= events:
                break
            names.append(name)
            total += self.bags[name].events
        held = [self.bags[name] for name in names]
        X, score, number = self.store.read(sorted({file for bag in held for file, _ in bag.files}))
        order = np.argsort([bag.number for bag in held])
        numbers = np.array([held[i].number for i in order])
        place = np.minimum(np.searchsorted(numbers, number), len(numbers) - 1)
        mine = numbers[place] == number
        bag = order[place[mine]]
        self._end(names, "learned")
        report, noise = (
            np.array([bag.report for bag in held], float),
            np.array([bag.noise for bag in held]),
        )
        return Complete(bag, X[mine], score[mine], names, report, noise)

    def _end(self, names: list[Name], how: str) -> None:
        touched: dict[int, None] = {}
        for name in names:
            for number, count in self.bags[name].files:
                self.store.release(number, name, count)
                touched[number] = None
            self.ready_events -= self.ready.pop(name, 0)
            self.early.pop(name, None)
            del self.bags[name]
            self.ended[name] = how
        for number in touched:
            self.store.shrink(number)
        while len(self.ended) > self.remembered:
            self.ended.popitem(last=False)

    def manifest(self) -> dict[str, Any]:
        """Everything but the files, for a checkpoint."""
        return {
            "bags": [[name, asdict(bag)] for name, bag in self.bags.items()],
            "ready": list(self.ready),
            "ended": list(self.ended.items()),
            "counters": [self.arrived, self.numbered, self.store.last],
            **self.store.manifest(),
        }

    def restore(self, manifest: dict[str, Any]) -> None:
        """Go back to a manifest; files that came after it are removed."""
        self.bags = OrderedDict((name, _Bag(**bag)) for name, bag in manifest["bags"])
        self.early = OrderedDict.fromkeys(
            name for name, bag in self.bags.items() if bag.events == 0
        )
        self.ready = OrderedDict((name, self.bags[name].events) for name in manifest["ready"])
        self.ended = OrderedDict(manifest["ended"])
        self.ready_events = sum(self.ready.values())
        self.arrived, self.numbered, last = manifest["counters"]
        self.store.restore(manifest, last)
        for name, bag in self.bags.items():
            for number, _ in bag.files:
                self.store.files[number].bags[name] = bag.number


def _number(names: list[Name]) -> tuple[list[Name], np.ndarray]:
    """The different names in the order of their first event, and the number of each."""
    known: dict[Name, int] = {}
    bag = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
    return list(known), bag
