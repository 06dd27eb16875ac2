"""Chunks, or events and reports, in; predictions first, then a model that has learned: once from every event."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unbag.bags import Bags, from_rows, random_bags
from unbag.checks import rows
from unbag.datasets import Chunk, Quarantine
from unbag.losses import named_loss
from unbag.stream import resuming
from unbag.stream.keeping import Folder
from unbag.stream.settings import Settings
from unbag.stream.stepping import Machine, begin, learn_chunk, predict
from unbag.stream.waiting import Buffer, Name
from unbag.stream.watching import Watch, look_at_labels
from unbag.training.epochs import Shape
from unbag.training.objectives import Setting, default_loss
from unbag.training.placing import Devices, place_on


class StreamLearner:
    """Predict, evaluate, and learn when the report is there; survives a crash.

    Parameters
    ----------
    model : any JAX pytree with `model(X)` and `model(X, key=...)`, giving one score for each row.
    settings : see `Settings`; or give its fields as keywords.
    folder : for checkpoints, logs and waiting events. A folder that holds a checkpoint is resumed: `position` then says
        what was taken in, and everything after it must be given again. Without a folder nothing outlives the process.
    every : chunks between checkpoints.
    devices, microbatch : as in `unbag.sweep`; a stream may be resumed on others.

    Reports are proportions of a binary label. `rows` holds what was seen of the last `window` chunks, the log
    `metrics.jsonl` in the folder of all; `counts` how often something was refused or went wrong.

    >>> from unbag import models
    >>> from unbag.datasets import Chunk
    >>> rng = np.random.default_rng(0)
    >>> learner = StreamLearner(models.linear(2, key=0, start=0.0), method="upm", size=16, batch=256, rate=0.05)
    >>> for _ in range(4):
    ...     x = rng.normal(size=(4096, 2))
    ...     row = learner.learn(Chunk(x, y=rng.random(4096) < 1 / (1 + np.exp(-2 * x[:, 0]))))
    >>> learner.rows[0]["label_log_loss"] > 0.69 and row["label_log_loss"] < 0.55
    True
    """

    def __init__(
        self,
        model: Any,
        settings: Settings | None = None,
        *,
        folder: str | Path | None = None,
        every: int = 8,
        devices: Devices | None = None,
        microbatch: int | None = None,
        **fields: Any,
    ) -> None:
        self.settings = replace(settings or Settings(), **fields)
        loss = named_loss(self.settings.loss) if self.settings.loss else default_loss(self.settings.method, "binary")
        method = "easy" if self.settings.method == "labels" else self.settings.method
        self._machine, self._state = begin(model, Setting(method, loss, "binary"), place_on(devices, microbatch))
        self.folder = Folder(folder) if folder else None
        self.every, self.position, self.chunks, self.events_learned, self.failures = every, 0, 0, 0, 0
        self._shape: Shape | None = None
        self._first_prior: float | None = None
        self._latest = -np.inf
        self._since = 0  # chunks since the last checkpoint
        self._lines: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.quarantine = Quarantine()
        place = self.folder.path if self.folder else _temporary_folder(self)
        s = self.settings
        self._buffer = Buffer(
            place, self.quarantine, bound=s.waiting, patience=s.patience, remembered=s.remembered, restated=s.restated
        )
        self._watch = Watch(s.window)
        if self.folder:
            resuming.resume(self, self.folder)

    @property
    def model(self) -> Any:
        """The model as it is now."""
        return self._machine.model(self._state.params)

    @property
    def counts(self) -> dict[str, int]:
        """How often each thing was refused, given up or went wrong."""
        failed = {"checkpoint": self.failures} if self.failures else {}
        return dict(sorted(self.quarantine.counts.items())) | failed

    @property
    def waiting(self) -> int:
        """Events that wait for their report."""
        return self._buffer.waiting

    def predict(self, X: Any) -> np.ndarray:
        """Scores (logits) of the model as it is now."""
        return predict(self._machine, self._state.params, X, batch=self.settings.batch)

    def learn(self, chunk: Chunk) -> dict[str, Any]:
        """Predict and evaluate labelled events, then learn from the reports of their bags; returns what was seen.

        The bags are those of `chunk.bag`, or drawn at random; of the labels, learning sees only the bags' proportions.
        """
        if chunk.y is None:
            raise ValueError("A chunk to learn at once must have labels: y is None. Use events and reports instead.")
        rows(len(chunk.y), len(chunk.X), thing="y", of="event")
        self._check_clock(chunk.time)
        score = self.predict(chunk.X)
        size = 1 if self.settings.method == "labels" else self.settings.size
        bags = None
        if chunk.bag is not None and self.settings.method != "labels":
            bags = from_rows(chunk.bag, y=chunk.y)
        elif len(chunk.y) >= size:
            bags = random_bags(None, chunk.y, size=size, seed=self.settings.seed * 1_000_003 + self.chunks)
        labels = look_at_labels(score, chunk.y, chunk.truth)
        if bags is None or len(bags) < 2:  # the end of a file: predicted and evaluated, too few to learn from
            self._leave_out(len(chunk.y))
            row = self._note({"events": len(chunk.y), "bags": 0, **labels})
        else:
            kept = np.arange(len(chunk.y)) if bags.rows is None else bags.rows
            self._leave_out(len(chunk.y) - len(kept))
            row = self._learn(replace(bags, X=np.asarray(chunk.X)[kept], rows=None), score[kept], labels)
        self._move(chunk.position)
        return row

    def _leave_out(self, count: int) -> None:
        """Events that fill no bag, or too few bags, are predicted and judged but not learned from; they are counted."""
        if count:
            why = f"{count} events are too few for bags of {self.settings.size}; predicted and judged, not learned from"
            self.quarantine.add("leftover", why, where=self.chunks + 1, count=count)

    def events(
        self, X: Any, bag: Sequence[Name] | np.ndarray, *, time: Any = None, position: int | None = None
    ) -> np.ndarray:
        """Predict for events that will be reported later, and keep them; returns their scores.

        Parameters
        ----------
        bag : the id of each event's bag, whole numbers or strings.
        time : of each event. Nothing rests on it: order is that of arrival, and a clock that runs back is noted.
        position : where the source stands after these events. With it, checkpoints are made when they are due.
        """
        X, names = np.asarray(X), np.asarray(bag).tolist()
        rows(len(names), len(X), thing="bag", of="event")
        self._check_clock(time)
        score = self.predict(X)
        self._buffer.add_events(names, X, score)
        self._work(position)
        return score

    def report(
        self,
        bag: Sequence[Name] | np.ndarray,
        report: Any,
        *,
        size: Any = None,
        noise: Any = None,
        position: int | None = None,
    ) -> int:
        """Take reports, in any order, and learn when the events of a chunk are complete; returns how many were taken.

        Parameters
        ----------
        bag, report : ids of bags, and the proportion of each. size : how many events each report is about; without it,
            a report closes its bag as it stands. noise : variance of the noise on each bag's count.
        """
        names, values = np.asarray(bag).tolist(), np.asarray(report, float)
        rows(len(values), len(names), thing="report", of="bag")
        sizes = [None] * len(names) if size is None else np.asarray(size).astype(int).tolist()
        noises = np.zeros(len(names)) if noise is None else np.asarray(noise, float)
        rows(len(sizes), len(names), thing="size", of="bag")
        rows(len(noises), len(names), thing="noise", of="bag")
        taken = 0
        for name, value, k, s2 in zip(names, values.tolist(), sizes, noises.tolist(), strict=True):
            why = self._bad_report(value, k, s2)
            if why:
                self.quarantine.add("report", why, where=name, record=str(value))
            else:
                taken += self._buffer.add_report(name, value, k, s2)
        self._work(position)
        return taken

    def _bad_report(self, value: float, size: int | None, noise: float) -> str | None:
        """What no method may learn from."""
        if not np.isfinite(value) or not (np.isfinite(noise) and noise >= 0) or (size is not None and size < 1):
            return "a report must be finite, its noise not negative, its size positive"
        may = noise > 0 and self.settings.method in ("upm", "easy", "anchored")
        if not may and not 0 <= value <= 1:
            return f"a proportion must lie in [0, 1] when it has no noise or is learned by {self.settings.method}"
        return None

    def finish(self) -> None:
        """Learn from the complete bags that are left, though they fill no chunk, and make a checkpoint."""
        if len(self._buffer.ready) >= 2:
            self._learn_complete()
        if self.folder:
            self.checkpoint()

    def _work(self, position: int | None) -> None:
        while self._buffer.ready_events >= self.settings.chunk and len(self._buffer.ready) >= 2:
            self._learn_complete()
        if self._buffer.waiting > self.settings.waiting and len(self._buffer.ready) >= 2:
            self._learn_complete()
        self._buffer.give_up()
        if position is not None:
            self._move(position)

    def _learn_complete(self) -> None:
        found = self._buffer.take(self.settings.chunk)
        noise = found.noise if found.noise.any() else None
        self._learn(Bags(found.bag, found.report, X=found.X, noise=noise), found.score, {})

    def _learn(self, bags: Bags, score: np.ndarray, labels: dict[str, float]) -> dict[str, Any]:
        s, number = self.settings, self.chunks + 1
        prior = float(bags.prior)
        self._first_prior = prior if self._first_prior is None else self._first_prior
        used = prior if s.prior == "chunk" else self._first_prior if s.prior == "first" else float(s.prior)
        seen = self._watch.look(score, bags, number)
        machine = self._fitting(int(bags.size.max()))
        found = learn_chunk(
            machine, self._state, replace(bags, known_prior=used), score,
            rate=s.rate, batch=s.batch, seed=s.seed, number=number, shape=self._shape,
        )  # fmt: skip
        self._state, self._shape = found.state, found.shape
        self.events_learned += len(bags.bag)
        if found.steps == 0:
            self.quarantine.add("diverged", "learning broke off; the chunk left no trace", where=number)
        told = {"events": len(bags.bag), "bags": len(bags), "prior": prior, "objective": found.value}
        return self._note(told | seen | labels)

    def _fitting(self, largest: int) -> Machine:
        """The machine for bags of this size; only the likelihood must know the largest, rounded up so as to stay."""
        setting = self._machine.setting
        if setting.method == "likelihood" and largest > setting.largest:
            larger = largest if setting.largest == 0 else 1 << (largest - 1).bit_length()
            self._machine = replace(self._machine, setting=setting._replace(largest=larger))
        return self._machine

    def _note(self, row: dict[str, Any]) -> dict[str, Any]:
        self.chunks += 1
        self._since += 1
        row = {"chunk": self.chunks, **row}
        self.rows = [*self.rows, row][-self.settings.window :]
        self._lines.append(json.dumps(row) + "\n")
        return row

    def _check_clock(self, time: Any) -> None:
        if time is None or len(time) == 0:
            return
        ticks = np.asarray(time)
        ticks = (
            ticks.astype("datetime64[us]").astype(np.int64).astype(float)
            if ticks.dtype.kind == "M"
            else ticks.astype(float)
        )
        known = ticks[np.isfinite(ticks)]
        if len(known) < len(ticks):
            self.quarantine.add("clock", "an event has no time; it is learned all the same", where=self.position)
        low, high = float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
        if low < self._latest:
            back = f"the clock ran back by {self._latest - low:g}; the events are learned in the order they came"
            self.quarantine.add("clock", back, where=self.position)
        self._latest = max(self._latest, high)

    def _move(self, position: int) -> None:
        self.position = position
        if self.folder and self._since >= self.every:
            self.checkpoint()

    def checkpoint(self, position: int | None = None) -> bool:
        """Make everything so far last; false when the disk refuses, in which case the old checkpoint stays.

        The stream goes on, and the next chunk tries again; a failure is counted and warned of.
        """
        if self.folder is None:
            raise ValueError("A checkpoint must have a folder: none was given. Make the learner with folder=.")
        self.position = self.position if position is None else position
        try:
            resuming.write(self, self.folder)
        except OSError as error:
            self.failures += 1
            warnings.warn(
                f"The checkpoint after chunk {self.chunks} could not be written ({error}); the one before stays. Make "
                "room.",
                stacklevel=2,
            )
            return False
        self._since = 0
        return True

    def close(self) -> None:
        """Let the folder go."""
        if self.folder:
            self.folder.close()


def _temporary_folder(owner: Any) -> Path:
    """A folder that goes when its owner goes."""
    path = tempfile.mkdtemp(prefix="unbag-")
    weakref.finalize(owner, shutil.rmtree, path, ignore_errors=True)
    return Path(path)
