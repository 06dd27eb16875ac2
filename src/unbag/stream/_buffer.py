"""Events and reports in any order in, complete bags out; the events that wait lie on disk.

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
  an unknown bag; so do the oldest when more than `waiting` reports wait;
- when more than `waiting` events wait, the oldest are given up with their bags ("no report"). The
  events of a bag leave the disk with it, unless the last checkpoint refers to them: then with the
  next one.

Everything refused or given up goes to the quarantine. The last `remembered` bags that were learned
or given up are remembered; a report for an older one counts as one of an unknown bag.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from unbag.bags import Bags
from unbag.datasets import Quarantine
from unbag.stream._checkpoint import StreamStore
from unbag.stream._settings import Name, StreamSettings


@dataclass
class WaitingBag:
    """A bag that waits. since : how many events had arrived when it was first heard of."""

    number: int
    since: int
    events: int = 0
    report: float | None = None
    size: int | None = None
    noise: float = 0.0

    def complete(self) -> bool:
        """Whether the report is there, and all events that it counts."""
        if self.report is None or self.events == 0:
            return False
        return self.size is None or self.events == self.size

    def room(self) -> float:
        """How many more events the bag takes."""
        if self.report is not None and self.size is not None:
            return self.size - self.events
        if self.complete():
            return 0
        return np.inf


class Buffer:
    """What waits for its report, or for its events.

    Parameters
    ----------
    store : StreamStore
        Where events wait.
    aside : Quarantine
        For everything refused or given up.
    settings : StreamSettings
        How much may wait, for how long, and what is done with a report that changes.
    """

    def __init__(self, store: StreamStore, aside: Quarantine, settings: StreamSettings) -> None:
        self.store, self.aside, self.settings = store, aside, settings
        self.bags: OrderedDict[Name, WaitingBag] = OrderedDict()
        self.early: OrderedDict[Name, None] = OrderedDict()  # bags with a report and no event
        self.ready: OrderedDict[Name, int] = OrderedDict()  # complete bags, and their events
        self.ended: OrderedDict[Name, str] = OrderedDict()
        self.arrived = self.numbered = self.waiting = self.ready_events = 0

    def add_events(
        self,
        names: list[Name],
        X: np.ndarray,
        score: np.ndarray,
        *,
        sound: np.ndarray | None = None,
    ) -> int:
        """Take events with the scores they got.

        Parameters
        ----------
        names : list
            The bag of each event.
        X, score : array
            Of each event.
        sound : array of bool, optional
            Which events are finite; by default all.

        Returns
        -------
        int
            How many were taken.
        """
        known: dict[Name, int] = {}  # the different names, in the order of their first event
        bag = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
        unique, count_of = list(known), partial(np.bincount, minlength=len(known))
        order, rank = np.argsort(bag, kind="stable"), np.empty(len(bag), int)
        before = np.searchsorted(bag[order], np.arange(len(known)))  # events of the bags before
        rank[order] = np.arange(len(bag)) - before[bag[order]]
        rooms = [np.inf] * len(known)
        for i, name in enumerate(unique):
            if name in self.ended:
                rooms[i] = 0
            elif name in self.bags:
                rooms[i] = self.bags[name].room()
        # of a bag that its report closes, the first events that still fit are taken
        taken = rank < np.array(rooms)[bag]
        late, bad = count_of(bag[~taken]), np.zeros(len(unique), int)
        if sound is not None:
            bad = count_of(bag[taken & ~sound])
        good = count_of(bag[taken]) - bad
        taken &= bad[bag] == 0
        count = count_of(bag[taken])
        if taken.any():  # the only thing that can fail comes first
            self.store.add(X[taken], score[taken], self._numbers(unique, count)[bag[taken]])
        self.arrived += len(names)
        for i in np.flatnonzero(late):
            why = f"{late[i]} events arrived for a bag that was complete or at its end"
            self.aside.add("late event", why, where=unique[i])
        for i in np.flatnonzero(count):
            name, waiting = unique[i], self._waiting_bag(unique[i])
            # the order is that of first events, so that the oldest go first
            if waiting.events == 0:
                self.bags.move_to_end(name)
                self.early.pop(name, None)
            waiting.events += int(count[i])
            self.waiting += int(count[i])
            self._settle(name)
        for i in np.flatnonzero(bad):  # a bag of whose new events some are bad is set aside whole
            name, waiting = unique[i], self._waiting_bag(unique[i])
            fault = f"{bad[i]} events have features or a score that is not finite"
            self.aside.add("feature", fault, where=name, count=int(bad[i]))
            lost = waiting.events + int(good[i])
            why = f"its report counts the bad events too; {lost} good ones are not learned from"
            self.aside.add("broken bag", why, where=name, record=waiting.report)
            self._end([name], "set aside")
        return int(taken.sum())

    def _numbers(self, names: list[Name], count: np.ndarray) -> np.ndarray:
        """The number of each bag, with those that the bags with new events will get."""
        # not given yet: should the store fail to write, nothing here has changed
        numbers, following = np.full(len(names), -1), self.numbered
        for i, name in enumerate(names):
            if name in self.bags:
                numbers[i] = self.bags[name].number
            elif count[i]:
                numbers[i] = following
                following += 1
        return numbers

    def _waiting_bag(self, name: Name) -> WaitingBag:
        if name not in self.bags:
            self.bags[name] = WaitingBag(self.numbered, self.arrived)
            self.numbered += 1
        return self.bags[name]

    def add_report(
        self, name: Name, report: float, size: int | None = None, noise: float = 0.0
    ) -> bool:
        """Take a report.

        Parameters
        ----------
        name : int or str
            Of the bag.
        report : float
            A proportion.
        size : int, optional
            Events that it is about.
        noise : float
            Variance of the noise on the count.

        Returns
        -------
        bool
            Whether it was taken.
        """
        bag = None if name in self.ended else self._waiting_bag(name)
        given = (report, size, noise)
        fault = ()
        if bag is None:
            fault = ("late", f"the bag was {self.ended[name]} before")
        elif bag.report is not None and (bag.report, bag.size, bag.noise) == given:
            fault = ("repeated", "the same report arrived before")
        elif bag.report is not None and self.settings.restated == "refuse":
            fault = ("restated", f"the bag reported {bag.report:g} before")
        elif size is not None and size < bag.events:
            fault = ("size", f"the report is of {size} events and {bag.events} wait")
        if bag is not None and bag.events == 0:
            self.early[name] = None
        if bag is None or fault:
            self.aside.add(*fault, where=name, record=report)
            return False
        if bag.report is not None:
            why = f"a new report arrived: {report:g}"
            self.aside.add("replaced", why, where=name, record=bag.report)
        bag.report, bag.size, bag.noise = given
        self._settle(name)
        return True

    def _settle(self, name: Name) -> None:
        """Note whether a bag is complete."""
        self.ready_events -= self.ready.get(name, 0)
        if self.bags[name].complete():
            self.ready[name] = self.bags[name].events
            self.ready_events += self.ready[name]
        else:
            self.ready.pop(name, None)

    def give_up(self) -> None:
        """Forget early reports that waited too long or are too many, and the oldest events when
        there are too many."""
        most, patience = self.settings.waiting, self.settings.patience
        while self.early:
            waited = self.arrived - self.bags[next(iter(self.early))].since
            if len(self.early) <= most and waited <= patience:
                break
            name, _ = self.early.popitem(last=False)
            report = self.bags.pop(name).report
            self.aside.add("unknown bag", "no event of the bag arrived", where=name, record=report)
        names, excess = [], self.waiting - most
        for name, bag in self.bags.items():
            if excess <= 0:
                break
            if bag.events:
                names.append(name)
                excess -= bag.events
                why = f"{bag.events} events waited too long"
                self.aside.add("no report", why, where=name, record=bag.report)
        self._end(names, "given up")

    def take(self, events: int) -> tuple[Bags, np.ndarray]:
        """The first complete bags, with at least `events` events if there are so many, and the
        score that each event got; they count as learned."""
        names, total = [], 0
        for name, count in self.ready.items():
            if total >= events:
                break
            names.append(name)
            total += count
        bags = [self.bags[name] for name in names]
        numbers = np.array([bag.number for bag in bags])
        X, score, number = self.store.read(numbers.tolist())
        order = np.argsort(numbers)
        place = order[np.searchsorted(numbers[order], number)]
        report, noise = np.array([(bag.report, bag.noise) for bag in bags], float).T
        self._end(names, "learned")
        known = {"noise": noise} if noise.any() else {}
        return Bags(place, report, X=X, **known), score

    def _end(self, names: list[Name], how: str) -> None:
        if not names:
            return
        self.store.drop([self.bags[name].number for name in names])
        for name in names:
            self.waiting -= self.bags.pop(name).events
            self.ready_events -= self.ready.pop(name, 0)
            self.early.pop(name, None)
            self.ended[name] = how
        while len(self.ended) > self.settings.remembered:
            self.ended.popitem(last=False)

    def state(self) -> dict[str, Any]:
        """Everything but the events, for a checkpoint."""
        return {
            "bags": [[name, *vars(bag).values()] for name, bag in self.bags.items()],
            "early": list(self.early),
            "ready": list(self.ready),
            "ended": list(self.ended.items()),
            "counters": [self.arrived, self.numbered],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        self.bags = OrderedDict((name, WaitingBag(*values)) for name, *values in state["bags"])
        self.early = OrderedDict.fromkeys(state["early"])
        self.ready = OrderedDict((name, self.bags[name].events) for name in state["ready"])
        self.ended = OrderedDict(state["ended"])
        self.arrived, self.numbered = state["counters"]
        self.waiting = sum(bag.events for bag in self.bags.values())
        self.ready_events = sum(self.ready.values())
