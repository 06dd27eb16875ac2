"""The learner of a stream: it predicts first, and learns once from every event when the report is
there."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from unbag._rules import broken, rows
from unbag.bags import Bags, from_rows, random_bags
from unbag.datasets import Chunk, Quarantine
from unbag.stream import _settings
from unbag.stream._buffer import Buffer
from unbag.stream._checkpoint import METRICS, QUARANTINE, StreamStore
from unbag.stream._monitor import Monitor, label_metrics
from unbag.stream._settings import Name, StreamSettings
from unbag.training import ChunkTrainer, Devices

# what a checkpoint holds of the learner itself, beside its model, its buffer and its monitor
KEPT = ("position", "chunks", "events_learned", "failures", "rows")
KEPT += ("_features", "_first_prior", "_latest")


class StreamLearner:
    """Predict, evaluate, and learn when the report is there; survives a crash.

    Reports are proportions of a binary label. `rows` holds what was observed of the last `window`
    chunks, the log `metrics.jsonl` in the folder that of all; `counts` says how often something was
    refused or went wrong.

    Parameters
    ----------
    model : pytree
        Any JAX pytree with `model(X)` and `model(X, key=...)`, giving one score for each row.
    settings : StreamSettings, optional
        What decides how the stream is learned; or give its fields as keywords.
    folder : path, optional
        For checkpoints, logs and waiting events. A folder that holds a checkpoint is resumed:
        `position` then says what was taken in, and everything after it must be given again. Without
        a folder nothing outlives the process.
    every : int
        Chunks between checkpoints.
    devices, microbatch : int, optional
        As in `unbag.TrainingConfig`; a stream may be resumed on others.
    **fields : Any
        Of `StreamSettings`.

    >>> from unbag import models
    >>> from unbag.datasets import Chunk
    >>> rng = np.random.default_rng(0)
    >>> model = models.linear(2, key=0, start=0.0)
    >>> learner = StreamLearner(model, method="upm", size=16, batch=256, rate=0.05)
    >>> for _ in range(4):
    ...     x = rng.normal(size=(4096, 2))
    ...     row = learner.learn(Chunk(x, y=rng.random(4096) < 1 / (1 + np.exp(-2 * x[:, 0]))))
    >>> learner.rows[0]["label_log_loss"] > 0.69 and row["label_log_loss"] < 0.55
    True
    """

    def __init__(
        self,
        model: Any,
        settings: StreamSettings | None = None,
        *,
        folder: str | Path | None = None,
        every: int = 8,
        devices: Devices | None = None,
        microbatch: int | None = None,
        **fields: Any,
    ) -> None:
        s = self.settings = replace(settings or StreamSettings(), **fields)
        own = {name: getattr(s, name) for name in ("method", "loss", "rate", "batch", "seed")}
        self._trainer = ChunkTrainer(model, **own, devices=devices, microbatch=microbatch)
        self.every, self.position, self.chunks, self.events_learned = every, 0, 0, 0
        self.failures = 0
        self.rows: list[dict[str, Any]] = []
        self.quarantine = Quarantine()
        self._features: tuple[int, ...] | None = None  # the shape of one event's features
        self._first_prior: float | None = None
        self._latest = -np.inf
        self._since = 0  # chunks since the last checkpoint
        self._logs: dict[str, list[str]] = {METRICS: [], QUARANTINE: []}
        self._store = StreamStore(folder)
        self.folder = self._store.folder
        self._buffer = Buffer(self._store, self.quarantine, s)
        self._monitor = Monitor(s.window)
        if self.folder:
            try:
                self._resume()
            except BaseException:
                self.close()
                raise

    @property
    def model(self) -> Any:
        """The model as it is now."""
        return self._trainer.model

    @property
    def counts(self) -> dict[str, int]:
        """How often each thing was refused, given up or went wrong."""
        counts = dict(sorted(self.quarantine.counts.items()))
        if self.failures:
            counts["checkpoint"] = self.failures
        return counts

    @property
    def waiting(self) -> int:
        """Events that wait for their report."""
        return self._buffer.waiting

    def predict(self, X: Any) -> np.ndarray:
        """Scores (logits) of the model as it is now."""
        X = _settings.features(X, self._features)
        try:
            return self._trainer.predict(X)
        except TypeError as error:
            raise broken(
                "Features must fit the model",
                f"X of shape {X.shape} and type {X.dtype} given, which it does not take",
                "Give the features that it was made for.",
            ) from error

    def learn(self, chunk: Chunk) -> dict[str, Any]:
        """Predict and evaluate labelled events, then learn from the reports of their bags; returns
        what was seen.

        The bags are those of `chunk.bag`, or drawn at random; of the labels, learning sees only the
        bags' proportions. Events without a label, or with a feature that is not finite, are set
        aside; a chunk of none only moves on.
        """
        if chunk.y is None:
            rule = "A chunk to learn at once must have labels"
            raise broken(rule, "y is None", "Use events and reports instead.")
        rows(len(chunk.y), len(chunk.X), thing="y", of="event")
        score, X = self.predict(chunk.X), np.asarray(chunk.X)
        sound, labelled = _settings.finite(X, score), _settings.finite(np.asarray(chunk.y, float))
        kept = np.flatnonzero(sound & labelled)
        if len(kept) < len(X):
            given = {name: getattr(chunk, name) for name in ("X", "y", "bag", "time", "truth")}
            taken = {name: np.asarray(a)[kept] for name, a in given.items() if a is not None}
            chunk, score = chunk._replace(**taken), score[kept]
        bags = self._bags_of(chunk)  # up to here anything may be refused, and nothing was changed
        self._remember(X, chunk.time)
        self._set_aside("feature", "have features or a score that is not finite", np.sum(~sound))
        self._set_aside("label", "have no label", np.sum(sound & ~labelled))
        row: dict[str, Any] = {}
        if len(kept):
            labels, count = label_metrics(score, np.asarray(chunk.y), chunk.truth), len(score)
            # events that fill no bag, or too few bags
            few = f"are too few for bags of {self.settings.size}"
            fault = f"{few}; predicted and judged, not learned from"
            if bags is None or len(bags) < 2:  # the end of a file: too few to learn from
                self._set_aside("leftover", fault, count)
                row = self._note({"events": count, "bags": 0, **labels})
            else:
                self._set_aside("leftover", fault, count - len(bags.bag))
                row = self._learn(bags, score[bags.rows], labels)
        self.advance(chunk.position)
        return row

    def _bags_of(self, chunk: Chunk) -> Bags | None:
        """The bags of labelled events, given or drawn; None where they are too few for one."""
        size = {"labels": 1}.get(self.settings.method, self.settings.size)
        given = chunk.bag is not None and self.settings.method != "labels"
        if len(chunk.X) == 0 or (len(chunk.X) < size and not given):
            return None
        X = np.asarray(chunk.X)
        if given:
            return from_rows(chunk.bag, y=chunk.y, X=X)
        seed = self.settings.seed * 1_000_003 + self.chunks
        return random_bags(X, chunk.y, size=size, seed=seed)

    def _remember(self, X: np.ndarray, time: Any) -> None:
        """The shape of the features, and how late it is; a clock that runs back is noted."""
        if len(X):
            self._features = X.shape[1:]
        if time is None or len(time) == 0:
            return
        ticks = _settings.ticks(time)
        known = ticks[np.isfinite(ticks)]
        low, high = float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
        faults = {"an event has no time; it is learned all the same": len(known) < len(ticks)}
        back = f"the clock ran back by {self._latest - low:g}"
        faults[f"{back}; the events are learned in the order they arrived"] = low < self._latest
        for why in (why for why, happened in faults.items() if happened):
            self.quarantine.add("clock", why, where=self.position)
        self._latest = max(self._latest, high)

    def _set_aside(self, kind: str, fault: str, count: Any) -> None:
        """Count single events of a labelled chunk: its bags are made without them."""
        if count:
            why = f"{count} events {fault}"
            self.quarantine.add(kind, why, where=self.chunks + 1, count=int(count))

    def events(
        self,
        X: Any,
        bag: Sequence[Name] | np.ndarray,
        *,
        time: Any = None,
        position: int | None = None,
    ) -> np.ndarray:
        """Predict for events that will be reported later, and keep them.

        Parameters
        ----------
        X : array
            Features, one row per event.
        bag : sequence of int or str
            The id of each event's bag.
        time : array, optional
            Of each event. Nothing rests on it: order is that of arrival, and a clock that runs back
            is noted.
        position : int, optional
            Where the source stands after these events. With it, checkpoints are made when they are
            due.

        Returns
        -------
        array
            The scores of the events.
        """
        X, names = np.asarray(X), _settings.names(bag)
        rows(len(names), len(X), thing="bag", of="event")
        score = self.predict(X)
        self._remember(X, time)
        self._buffer.add_events(names, X, score, sound=_settings.finite(X, score))
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
        """Take reports, in any order, and learn when the events of a chunk are complete.

        Parameters
        ----------
        bag : sequence of int or str
            Ids of bags.
        report : array
            The proportion of each: its count divided by its size.
        size : array of int, optional
            How many events each report is about; without it, a report closes its bag as it stands.
        noise : array, optional
            Variance of the noise on each bag's count. With it a proportion may lie outside [0, 1],
            but not far.
        position : int, optional
            Where the source stands after these reports.

        Returns
        -------
        int
            How many reports were taken.
        """
        names, values, method = (
            _settings.names(bag),
            np.asarray(report, float),
            self.settings.method,
        )
        _settings.one_each(values, "reports")
        rows(len(values), len(names), thing="report", of="bag")
        sizes: list[int | None] = [{"labels": 1}.get(method)] * len(
            names
        )  # a label is of one event
        if size is not None:
            sizes = _settings.sizes(size)
        noises = np.zeros(len(names))
        if noise is not None:
            noises = np.asarray(noise, float)
            _settings.one_each(noises, "noises")
        rows(len(sizes), len(names), thing="size", of="bag")
        rows(len(noises), len(names), thing="noise", of="bag")
        taken, buffer = 0, self._buffer
        for name, value, k, s2 in zip(names, values.tolist(), sizes, noises.tolist(), strict=True):
            events = buffer.bags[name].events if name in buffer.bags else 0
            why = _settings.bad_report(value, k, s2, method=method, events=events)
            if why:
                self.quarantine.add("report", why, where=name, record=str(value))
            else:
                taken += buffer.add_report(name, value, k, s2)
        self._work(position)
        return taken

    def finish(self) -> None:
        """Learn from the complete bags that are left, though they fill no chunk, and make a
        checkpoint, without which it is an error."""
        if len(self._buffer.ready) >= 2:
            self._learn_complete()
        if self.folder and not self.checkpoint():
            raise OSError(
                f"The last checkpoint in {self.folder} could not be written: what was learned "
                "after the one before is lost with this process. Make room, and run it again."
            )
        self.advance()

    def _work(self, position: int | None) -> None:
        while self._buffer.ready_events >= self.settings.chunk and len(self._buffer.ready) >= 2:
            self._learn_complete()
        if self._buffer.waiting > self.settings.waiting and len(self._buffer.ready) >= 2:
            self._learn_complete()
        self._buffer.give_up()
        self.advance(position)

    def _learn_complete(self) -> None:
        self._learn(*self._buffer.take(self.settings.chunk), {})

    def _learn(self, bags: Bags, score: np.ndarray, labels: dict[str, float]) -> dict[str, Any]:
        number, prior = self.chunks + 1, float(bags.prior)
        if self._first_prior is None:
            self._first_prior = prior
        observed = self._monitor.observe(score, bags, number)
        priors: dict[Any, float] = {"chunk": prior, "first": self._first_prior}
        used = priors.get(self.settings.prior, self.settings.prior)
        objective = self._trainer.learn(replace(bags, known_prior=used), score, number)
        if np.isnan(objective):
            why = "learning broke off; the chunk left no trace"
            self.quarantine.add("diverged", why, where=number)
        else:
            self.events_learned += len(bags.bag)
        row = {"events": len(bags.bag), "bags": len(bags), "prior": prior, "objective": objective}
        return self._note(row | observed | labels)

    def _note(self, row: dict[str, Any]) -> dict[str, Any]:
        self.chunks += 1
        self._since += 1
        row = {"chunk": self.chunks, **row}
        self.rows = [*self.rows, row][-self.settings.window :]
        # JSON knows no NaN, so that is null
        wild = {k: None for k, v in row.items() if isinstance(v, float) and not np.isfinite(v)}
        self._logs[METRICS].append(json.dumps(row | wild, allow_nan=False) + "\n")
        return row

    def advance(self, position: int | None = None) -> None:
        """Note where the source stands, if that is said, and make a checkpoint when one is due.

        Parameters
        ----------
        position : int, optional
            What was taken in wholly, in the source's own count.
        """
        if position is not None:
            self.position = position
        if self.folder is None:  # nothing will be resumed, so no log is kept
            self._logs[METRICS].clear()
            self.quarantine.take_lines()
        elif position is not None and self._since >= self.every:
            self.checkpoint()

    def checkpoint(self, position: int | None = None) -> bool:
        """Make everything so far last.

        When the disk refuses, the old checkpoint stays and the stream goes on; the next chunk tries
        again, and the failure is counted and warned of.

        Returns
        -------
        bool
            Whether it was made.
        """
        if self.folder is None:
            rule = "A checkpoint must have a folder"
            raise broken(rule, "none was given", "Make the learner with {folder}.")
        if position is not None:
            self.position = position
        self._logs[QUARANTINE] += self.quarantine.take_lines()
        leaves, settled = self._trainer.save()
        try:
            self._store.save(self._state() | {"trainer": settled}, leaves, self._logs)
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

    def _state(self) -> dict[str, Any]:
        """Everything but the model."""
        return {
            "settings": asdict(self.settings),
            "learner": {name: getattr(self, name) for name in KEPT},
            "monitor": self._monitor.state(),
            "quarantine": dict(self.quarantine.counts),
            "buffer": self._buffer.state(),
        }

    def _resume(self) -> None:
        """Take up the last checkpoint, if there is one."""
        loaded = self._store.load()
        if loaded is None:
            return
        state, leaves = loaded
        self._check_same(state["settings"], leaves)
        self._trainer.load(leaves, state["trainer"])
        for name, value in state["learner"].items():
            setattr(self, name, value)
        if self._features is not None:
            self._features = tuple(self._features)  # JSON knows only lists
        self._monitor.restore(state["monitor"])
        self.quarantine.counts.update(state["quarantine"])
        self._buffer.restore(state["buffer"])

    def _check_same(self, before: dict[str, Any], leaves: list[np.ndarray]) -> None:
        """Refuse to resume with other settings or another model."""
        differences = [
            f"{name} was {before.get(name)!r} and is {value!r}"
            for name, value in asdict(self.settings).items()
            if before.get(name) != value
        ]
        own, _ = self._trainer.save()
        if [leaf.shape for leaf in own] != [leaf.shape for leaf in leaves]:
            differences.append("the model has other parameters")
        if differences:
            rule = "A stream must be resumed as it was begun"
            remedy = "Use the same, or another folder."
            raise broken(rule, f"in {self.folder} {', '.join(differences)}", remedy)

    def close(self) -> None:
        """Let the folder go."""
        self._store.close()
