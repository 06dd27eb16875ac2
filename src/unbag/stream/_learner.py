"""Chunks, or events and reports, in; predictions first, then a model that has learned: once from
every event."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unbag._rules import broken, rows
from unbag.bags import Bags, from_rows, random_bags
from unbag.datasets import Chunk, Quarantine
from unbag.stream import _rules, _state
from unbag.stream._buffer import Buffer
from unbag.stream._checkpoint import Folder, as_line, temporary_folder
from unbag.stream._monitor import Watch, look_at_labels
from unbag.stream._settings import Settings
from unbag.stream._store import Name
from unbag.training import ChunkTrainer, Devices


class StreamLearner:
    """Predict, evaluate, and learn when the report is there; survives a crash.

    Parameters
    ----------
    model : any JAX pytree with `model(X)` and `model(X, key=...)`, giving one score for each row.
    settings : see `Settings`; or give its fields as keywords.
    folder : for checkpoints, logs and waiting events. A folder that holds a checkpoint is resumed:
        `position` then says what was taken in, and everything after it must be given again. Without
        a folder nothing outlives the process.
    every : chunks between checkpoints.
    devices, microbatch : as in `unbag.sweep`; a stream may be resumed on others.

    Reports are proportions of a binary label. `rows` holds what was seen of the last `window`
    chunks, the log `metrics.jsonl` in the folder of all; `counts` how often something was refused
    or went wrong.

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
        s = self.settings
        self._trainer = ChunkTrainer(
            model,
            method=s.method,
            loss=s.loss,
            rate=s.rate,
            batch=s.batch,
            seed=s.seed,
            devices=devices,
            microbatch=microbatch,
        )
        self.folder = Folder(folder) if folder else None
        self.every, self.position, self.chunks, self.events_learned, self.failures = (
            every,
            0,
            0,
            0,
            0,
        )
        self._features: tuple[int, ...] | None = None  # the shape of one event's features
        self._first_prior: float | None = None
        self._latest = -np.inf
        self._since = 0  # chunks since the last checkpoint
        self._lines: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.quarantine = Quarantine()
        place = self.folder.path if self.folder else temporary_folder(self)
        self._buffer = Buffer(
            place,
            self.quarantine,
            bound=s.waiting,
            patience=s.patience,
            remembered=s.remembered,
            restated=s.restated,
        )
        self._watch = Watch(s.window)
        if self.folder:
            _state.resume(self, self.folder)

    @property
    def model(self) -> Any:
        """The model as it is now."""
        return self._trainer.model

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
        X = _rules.features(X, self._features)
        try:
            return self._trainer.predict(X)
        except TypeError as error:
            raise broken(
                "Features must fit the model",
                f"X of shape {X.shape} and type {X.dtype} came, which it does not take",
                "Give the features that it was made for.",
            ) from error

    def learn(self, chunk: Chunk) -> dict[str, Any]:
        """Predict and evaluate labelled events, then learn from the reports of their bags; returns
        what was seen.

        The bags are those of `chunk.bag`, or drawn at random; of the labels, learning sees only the
        bags' proportions. Events without a label, or with a feature that is not finite, are set
        aside; a chunk of none only moves on.
        """
        _rules.check_chunk(chunk)
        score, X = self.predict(chunk.X), np.asarray(chunk.X)
        sound, labelled = _rules.finite(X, score), _rules.finite(np.asarray(chunk.y, float))
        kept = np.flatnonzero(sound & labelled)
        if len(kept) < len(X):
            chunk, score = _rules.take_events(chunk, kept), score[kept]
        bags = self._bags_of(chunk)  # up to here anything may be refused, and nothing was changed
        self._remember(X, chunk.time)
        self._set_aside("feature", "have features or a score that is not finite", np.sum(~sound))
        self._set_aside("label", "have no label", np.sum(sound & ~labelled))
        row = self._learn_labelled(chunk, bags, score) if len(kept) else {}
        self._move(chunk.position)
        return row

    def _bags_of(self, chunk: Chunk) -> Bags | None:
        """The bags of labelled events, given or drawn; None where they are too few for one."""
        size = 1 if self.settings.method == "labels" else self.settings.size
        if chunk.bag is not None and self.settings.method != "labels":
            return from_rows(chunk.bag, y=chunk.y) if len(chunk.bag) else None
        if len(chunk.X) < size:
            return None
        return random_bags(
            None, chunk.y, size=size, seed=self.settings.seed * 1_000_003 + self.chunks
        )

    def _learn_labelled(self, chunk: Chunk, bags: Bags | None, score: np.ndarray) -> dict[str, Any]:
        count = len(score)
        labels = look_at_labels(score, np.asarray(chunk.y), chunk.truth)
        if (
            bags is None or len(bags) < 2
        ):  # the end of a file: predicted and evaluated, too few to learn from
            self._leave_out(count)
            return self._note({"events": count, "bags": 0, **labels})
        kept = np.arange(count) if bags.rows is None else bags.rows
        self._leave_out(count - len(kept))
        return self._learn(
            replace(bags, X=np.asarray(chunk.X)[kept], rows=None), score[kept], labels
        )

    def _remember(self, X: np.ndarray, time: Any) -> None:
        """The shape of the features, and how late it is."""
        self._features = X.shape[1:] if len(X) else self._features
        self._check_clock(time)

    def _set_aside(self, kind: str, fault: str, count: Any) -> None:
        """Single events of a labelled chunk: their bags are then made without them."""
        if count:
            self.quarantine.add(
                kind, f"{count} events {fault}", where=self.chunks + 1, count=int(count)
            )

    def _leave_out(self, count: int) -> None:
        """Events that fill no bag, or too few bags, are predicted and judged but not learned from;
        they are counted."""
        if count:
            why = f"{count} events are too few for bags of {self.settings.size}; predicted and judged, not learned from"
            self.quarantine.add("leftover", why, where=self.chunks + 1, count=count)

    def events(
        self,
        X: Any,
        bag: Sequence[Name] | np.ndarray,
        *,
        time: Any = None,
        position: int | None = None,
    ) -> np.ndarray:
        """Predict for events that will be reported later, and keep them; returns their scores.

        Parameters
        ----------
        bag : the id of each event's bag, whole numbers or strings.
        time : of each event. Nothing rests on it: order is that of arrival, and a clock that runs
            back is noted.
        position : where the source stands after these events. With it, checkpoints are made when
            they are due.
        """
        X, names = np.asarray(X), _rules.names(bag)
        rows(len(names), len(X), thing="bag", of="event")
        score = self.predict(X)
        self._remember(X, time)
        self._buffer.add_events(names, X, score, sound=_rules.finite(X, score))
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
        """Take reports, in any order, and learn when the events of a chunk are complete; returns
        how many were taken.

        Parameters
        ----------
        bag, report : ids of bags, and the proportion of each: its count divided by its size.
        size : how many events each report is about; without it, a report closes its bag as it
            stands.
        noise : variance of the noise on each bag's count. With it a proportion may lie outside [0,
            1], but not far.
        """
        names, values = _rules.names(bag), np.asarray(report, float)
        rows(len(values), len(names), thing="report", of="bag")
        sizes = [None] * len(names) if size is None else np.asarray(size).astype(int).tolist()
        noises = np.zeros(len(names)) if noise is None else np.asarray(noise, float)
        rows(len(sizes), len(names), thing="size", of="bag")
        rows(len(noises), len(names), thing="noise", of="bag")
        taken, method = 0, self.settings.method
        for name, value, k, s2 in zip(names, values.tolist(), sizes, noises.tolist(), strict=True):
            k = 1 if k is None and method == "labels" else k
            why = _rules.bad_report(
                value, k, s2, method=method, events=self._buffer.events_of(name)
            )
            if why:
                self.quarantine.add("report", why, where=name, record=str(value))
            else:
                taken += self._buffer.add_report(name, value, k, s2)
        self._work(position)
        return taken

    def finish(self) -> None:
        """Learn from the complete bags that are left, though they fill no chunk, and make a
        checkpoint."""
        if len(self._buffer.ready) >= 2:
            self._learn_complete()
        if self.folder:
            self.checkpoint()
        self._move(None)

    def _work(self, position: int | None) -> None:
        while self._buffer.ready_events >= self.settings.chunk and len(self._buffer.ready) >= 2:
            self._learn_complete()
        if self._buffer.waiting > self.settings.waiting and len(self._buffer.ready) >= 2:
            self._learn_complete()
        self._buffer.give_up()
        self._move(position)

    def _learn_complete(self) -> None:
        found = self._buffer.take(self.settings.chunk)
        noise = found.noise if found.noise.any() else None
        self._learn(Bags(found.bag, found.report, X=found.X, noise=noise), found.score, {})

    def _learn(self, bags: Bags, score: np.ndarray, labels: dict[str, float]) -> dict[str, Any]:
        s, number = self.settings, self.chunks + 1
        prior = float(bags.prior)
        self._first_prior = prior if self._first_prior is None else self._first_prior
        used = (
            prior
            if s.prior == "chunk"
            else self._first_prior
            if s.prior == "first"
            else float(s.prior)
        )
        seen = self._watch.look(score, bags, number)
        objective = self._trainer.learn(replace(bags, known_prior=used), score, number)
        if np.isnan(objective):
            self.quarantine.add(
                "diverged", "learning broke off; the chunk left no trace", where=number
            )
        else:
            self.events_learned += len(bags.bag)
        told = {"events": len(bags.bag), "bags": len(bags), "prior": prior, "objective": objective}
        return self._note(told | seen | labels)

    def _note(self, row: dict[str, Any]) -> dict[str, Any]:
        self.chunks += 1
        self._since += 1
        row = {"chunk": self.chunks, **row}
        self.rows = [*self.rows, row][-self.settings.window :]
        self._lines.append(as_line(row))
        return row

    def _check_clock(self, time: Any) -> None:
        if time is None or len(time) == 0:
            return
        ticks = _rules.ticks(time)
        known = ticks[np.isfinite(ticks)]
        if len(known) < len(ticks):
            self.quarantine.add(
                "clock", "an event has no time; it is learned all the same", where=self.position
            )
        low, high = float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
        if low < self._latest:
            back = f"the clock ran back by {self._latest - low:g}; the events are learned in the order they came"
            self.quarantine.add("clock", back, where=self.position)
        self._latest = max(self._latest, high)

    def _move(self, position: int | None) -> None:
        """Note where the source stands, if it is told, and make a checkpoint when one is due."""
        self.position = self.position if position is None else position
        if self.folder is None:  # nothing will be resumed, so no log is kept
            self._lines = []
            self.quarantine.take_lines()
        elif position is not None and self._since >= self.every:
            self.checkpoint()

    def checkpoint(self, position: int | None = None) -> bool:
        """Make everything so far last; false when the disk refuses, in which case the old
        checkpoint stays.

        The stream goes on, and the next chunk tries again; a failure is counted and warned of.
        """
        if self.folder is None:
            raise broken(
                "A checkpoint must have a folder",
                "none was given",
                "Make the learner with {folder}.",
            )
        self.position = self.position if position is None else position
        try:
            _state.write(self, self.folder)
        except OSError as error:
            self.failures += 1
            warnings.warn(
                f"The checkpoint after chunk {self.chunks} could not be written ({error}); the "
                "one before stays. Make room.",
                stacklevel=2,
            )
            return False
        self._since = 0
        return True

    def close(self) -> None:
        """Let the folder go."""
        if self.folder:
            self.folder.close()
