"""Plans of the batch experiments, from a preset, a TOML file or keywords: which runs to make."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken, one_of
from unbag.lab._catalogue import (
    MODELS,
    SMOOTHING,
    TASKS,
    WAYS,
    Way,
    data_of,
    smoothing_of,
    title_of,
)
from unbag.losses import LOSSES

STARTS = ("usual", "trivial")
BATCH = 4096  # instances, in the paper
BAGS = 4  # in a smaller batch, at least: as many as the paper has at bags of 1,024
# Rates and repetitions that train together: a large network gains nothing from company, and a kill
# loses less.
TOGETHER: dict[str, tuple[int, int]] = dict.fromkeys(("cnn", "cnn-bfloat16"), (1, 1))
LEAST: dict[str, int] = dict.fromkeys(("repetitions", "epochs", "batch"), 1)
LEAST |= dict.fromkeys(("rows", "rates_together", "repetitions_together"), 0)


def identity_of(value: Any) -> str:
    """A short name that depends on nothing but the value."""
    return sha256(repr(value).encode()).hexdigest()[:16]


class Experiment(NamedTuple):
    """What all curves of one figure have in common."""

    task: str
    model: str
    start: str
    epochs: int
    batch: int
    rows: int

    @property
    def data(self) -> str:
        """What figures and tables call the task."""
        return title_of(self.task)

    @property
    def details(self) -> str:
        """What else belongs beside every number."""
        batch, rows = f", batches of {self.batch}" * (self.batch != BATCH), ""
        batch += f" or {BAGS} bags" * (self.batch < BATCH)
        if self.rows:
            rows = f", first {self.rows:,} rows"
        return f"{self.model}, {self.start} start, {self.epochs} epochs{batch}{rows}"

    @property
    def title(self) -> str:
        """Both."""
        return f"{self.data} ({self.details})"

    @property
    def name(self) -> str:
        """For files."""
        batch, rows = (
            f"-batch{self.batch}" * (self.batch != BATCH),
            f"-{self.rows}rows" * (self.rows > 0),
        )
        return f"{self.task}-{self.model}-{self.start}-{self.epochs}{batch}{rows}"

    @classmethod
    def of(cls, given: RunSettings | Plan) -> Experiment:
        """The figure that a run, or the runs of a plan, belong to."""
        return cls(*(getattr(given, name) for name in cls._fields))


class RunSettings(NamedTuple):
    """Everything that decides how a run ends; its identity.

    `size` is that of the bags, `repetition` the seed of bags, order and initialisation, `rows` the
    training rows used, 0 for all.
    """

    task: str
    model: str
    method: str
    loss: str
    size: int
    rate: float
    repetition: int
    epochs: int
    batch: int
    smoothing: float
    holdout: float
    start: str
    rows: int

    @property
    def experiment(self) -> Experiment:
        """The figure that the run belongs to."""
        return Experiment.of(self)

    @property
    def instances(self) -> int:
        """In a step: a batch that is smaller than the paper's grows with the bags."""
        return max(self.batch, min(BAGS * self.size, BATCH))

    def identity(self) -> str:
        """A name for the run that depends on nothing but its settings."""
        return identity_of(tuple(self))


class Group(NamedTuple):
    """Runs that differ only in rate and repetition: they train together."""

    common: RunSettings
    rates: tuple[float, ...]
    repetitions: tuple[int, ...]

    @property
    def title(self) -> str:
        """What people call it."""
        c = self.common
        return f"{c.task} {Way(c.method, c.loss)} bags of {c.size}"

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.rates) * len(self.repetitions)

    def runs(self) -> list[RunSettings]:
        """All of them, by repetition and rate."""
        pairs = product(self.repetitions, self.rates)
        return [self.common._replace(rate=r, repetition=s) for s, r in pairs]

    def lacking(self, finished: set[RunSettings]) -> list[Group]:
        """Those that are not finished: repetitions that lack the same rates go together."""
        by_rates: dict[tuple[float, ...], list[int]] = {}
        for repetition in self.repetitions:
            own = [self.common._replace(rate=r, repetition=repetition) for r in self.rates]
            rates = tuple(run.rate for run in own if run not in finished)
            if rates:
                by_rates.setdefault(rates, []).append(repetition)
        return [self._replace(rates=r, repetitions=tuple(s)) for r, s in by_rates.items()]

    def identity(self) -> str:
        """A name for the group."""
        return identity_of(self)


@dataclass(frozen=True)
class Plan:
    """Which runs to make: methods x bag sizes x learning rates x repetitions.

    Parameters
    ----------
    task : str
        The data, by name.
    model : str
        The network, by name; by default the task's own.
    methods : tuple of str
        "method" or "method:loss"; by default all that fit the task's reports.
    sizes : tuple of int
        Of the bags; `labels` always has bags of one.
    rates : tuple of float
        Learning rates of Adam.
    repetitions : int
        How often each run is made, each time with other bags, order and initialisation.
    epochs : int
        How often a run passes over the data.
    batch : int
        Instances in a step; fewer than 4,096 grow to hold four bags, up to 4,096.
    smoothing : float
        Of the labels in the log loss (the square loss, the likelihood and labels have none).
    holdout : float
        Share of the bags that is held out to choose rate and epoch.
    start : {"usual", "trivial"}
        The usual initialisation, or at the trivial predictor.
    rows : int
        Training rows used; 0 for all.
    rates_together, repetitions_together : int
        How much trains (and is stored) at once, which bounds the memory; 0 for what suits the
        model.

    Examples
    --------
    >>> Plan("adult", methods=("upm",), sizes=(16, 64), rates=(1e-3,), repetitions=2).count()
    4
    """

    task: str
    model: str = ""
    methods: tuple[str, ...] = ("all",)
    sizes: tuple[int, ...] = tuple(2**i for i in range(12))
    rates: tuple[float, ...] = tuple(np.logspace(-7, -1, 16))
    repetitions: int = 10
    epochs: int = 50
    batch: int = 4096
    smoothing: float = SMOOTHING
    holdout: float = 0.0
    start: str = "usual"
    rows: int = 0
    rates_together: int = 0
    repetitions_together: int = 0

    def __post_init__(self) -> None:
        for name in ("task", "model", "start"):
            value = getattr(self, name)
            if not isinstance(value, str):
                remedy = "Put one name in quotation marks."
                raise broken(f"A plan's {name} must be a text", f"{value!r} given", remedy)
        if self.task in TASKS and self.methods in (("all",), ["all"]):
            self._set(methods=WAYS[TASKS[self.task].kind])
        for name, kind in (("methods", str), ("sizes", int), ("rates", float)):
            self._set(**{name: as_tuple(name, getattr(self, name), kind)})
        self._set(rates=tuple(float(f"{rate:.6g}") for rate in self.rates))
        names = {"task": (self.task, TASKS), "start": (self.start, STARTS)}
        for thing, (name, known) in (names | {"model": (self.model or "linear", MODELS)}).items():
            one_of(f"A plan's {thing}", name, known)
        for way in self.ways:
            LOSSES[way.loss].form(TASKS[self.task].kind)  # refuses a loss that does not fit
        check_counts(self, LEAST)
        shares = (self.holdout, self.smoothing)
        if not all(isinstance(share, int | float) and 0 <= share < 1 for share in shares):
            raise broken(
                "A plan's holdout and smoothing must lie in [0, 1)",
                f"{self.holdout!r} and {self.smoothing!r} given",
                "Use 0.2 to hold out a fifth of the bags.",
            )
        model = self.model or TASKS[self.task].model
        rates, repetitions = TOGETHER.get(model, (16, 10))
        self._set(
            methods=tuple(str(way) for way in self.ways),
            smoothing=float(self.smoothing),  # 0 and 0.0 are one identity
            holdout=float(self.holdout),
            model=model,
            rates_together=self.rates_together or rates,
            repetitions_together=self.repetitions_together or repetitions,
        )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the plan is frozen for everyone else

    @property
    def experiment(self) -> Experiment:
        """The figure that its runs belong to."""
        return Experiment.of(self)

    @property
    def ways(self) -> list[Way]:
        """The methods with their losses."""
        return [Way.named(text, TASKS[self.task].kind) for text in self.methods]

    def groups(self) -> Iterator[Group]:
        """What trains together, largest bags first: few bags are quick, so errors show early."""
        labels = [(1, way) for way in self.ways if way.method == "labels"]
        others = [way for way in self.ways if way.method != "labels"]
        shared = {name: getattr(self, name) for name in RunSettings._fields if hasattr(self, name)}
        seeds, rates = range(self.repetitions), self.rates
        parts = [
            (rates[r : r + self.rates_together], tuple(seeds[s : s + self.repetitions_together]))
            for s in range(0, len(seeds), self.repetitions_together)
            for r in range(0, len(rates), self.rates_together)
        ]
        for size, way in (*product(sorted(self.sizes, reverse=True), others), *labels):
            own = {**way._asdict(), "smoothing": smoothing_of(way, self.smoothing)}
            common = RunSettings(**{**shared, **own, "size": size, "rate": 0.0, "repetition": 0})
            yield from (Group(common, *part) for part in parts)

    def count(self) -> int:
        """The number of runs."""
        return sum(group.size for group in self.groups())

    def check_data(self) -> None:
        """Refuse bags that do not fit into the data."""
        rows = len(data_of(self.task).y)
        rows = min(self.rows or rows, rows)
        needed = 2 + 2 * bool(self.holdout)
        if max(self.sizes) * needed > rows:
            raise broken(
                f"A bag size must leave at least {needed} bags",
                f"bags of {max(self.sizes)} given for the {rows} rows of {self.task}",
                "Make the bags smaller.",
            )


def as_tuple(name: str, value: Any, kind: type) -> tuple:
    """A tuple of one kind of thing; whole numbers stand for floats."""
    values = ()
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        values = tuple(value)
    allowed = {str: (str,), int: (int, np.integer), float: (int, float, np.number)}[kind]
    if not values or not all(isinstance(v, allowed) and not isinstance(v, bool) for v in values):
        rule = f"A plan's {name} must be a list with at least one {kind.__name__}"
        raise broken(rule, f"{value!r} given", "Give one.")
    return tuple(dict.fromkeys(kind(v) for v in values))


def check_counts(plan: Any, least: Mapping[str, int]) -> None:
    """Refuse numbers of a plan, batch or online, that are too small.

    Parameters
    ----------
    plan : Plan or OnlinePlan
        With `sizes` and `rates`.
    least : mapping from str to int
        The least that other fields may be.
    """
    for name, low in least.items():
        value = getattr(plan, name)
        if not isinstance(value, int) or value < low:
            rule = f"A plan's {name} must be a whole number of at least {low}"
            raise broken(rule, f"{value!r} given", "Change it.")
    if min(plan.sizes) < 1 or min(plan.rates) <= 0:
        rule, remedy = "Bag sizes and learning rates must be positive", "Leave these out."
        raise broken(rule, f"the smallest are {min(plan.sizes)} and {min(plan.rates):g}", remedy)


# `paper`: the whole grid of the paper, whose number of epochs is not known. `laptop`: hours on 2
# cores. `smoke`: a minute.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "laptop": {
        "sizes": tuple(2**i for i in range(11)), "rates": tuple(np.logspace(-4.5, -1, 8)),
        "repetitions": 3, "epochs": 30,
    },
    "smoke": {
        "methods": ("matching", "easy", "upm", "anchored", "labels"), "sizes": (16, 256),
        "rates": (1e-3, 1e-2), "repetitions": 2, "epochs": 3, "rows": 8192,
    },
}  # fmt: skip


def preset(name: str, task: str, **changes: Any) -> Plan:
    """A shipped plan, with changes.

    Parameters
    ----------
    name : {"paper", "laptop", "smoke"}
        Which plan.
    task : str
        The data, by name.
    **changes : Any
        Fields of `Plan`.

    >>> preset("paper", "adult").count()
    11680
    >>> preset("smoke", "adult", sizes=(64,)).sizes
    (64,)
    """
    return Plan(**{"task": task, **shipped(PRESETS, name), **changes})


def shipped(presets: Mapping[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """The fields of a shipped plan."""
    one_of("A preset", name, presets)
    return presets[name]


def read_plan(path: str | Path, **changes: Any) -> Plan:
    """A plan from a TOML file, whose keys are the fields of `Plan`, and `preset` where it starts.

    Parameters
    ----------
    path : str or Path
        The file.
    **changes : Any
        Fields of `Plan` that take the place of the file's.
    """
    try:
        given = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise broken("A plan must be a TOML file", f"{path} is not ({error})", "Fix it.") from None
    base = given.pop("preset", "paper")
    known = [field.name for field in fields(Plan)]
    unknown = sorted(set(given) - set(known))
    if unknown or "task" not in {**given, **changes}:
        rule = f"A plan must name a task and may have preset, {', '.join(known[1:])}"
        raise broken(rule, f"{', '.join(unknown) or 'no task'} given in {path}", "Fix it.")
    given |= changes
    return preset(base, given.pop("task"), **given)
