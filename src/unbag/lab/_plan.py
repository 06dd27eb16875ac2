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
from unbag.lab._methods import SMOOTHING, WAYS, Way, smoothing_of
from unbag.lab._tasks import MODELS, TASKS, data_of, title_of
from unbag.losses import LOSSES

STARTS = ("usual", "trivial")
BATCH = 4096  # instances, in the paper
# Rates and repetitions that train together: a large network gains nothing from company, and a kill
# loses less.
TOGETHER = {"cnn": (1, 1)}
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
        parts = [self.model, f"{self.start} start", f"{self.epochs} epochs"]
        if self.batch != BATCH:
            parts.append(f"batches of {self.batch}")
        if self.rows:
            parts.append(f"first {self.rows:,} rows")
        return ", ".join(parts)

    @property
    def title(self) -> str:
        """Both."""
        return f"{self.data} ({self.details})"

    @property
    def name(self) -> str:
        """For files."""
        parts = [self.task, self.model, self.start, str(self.epochs)]
        if self.batch != BATCH:
            parts.append(f"batch{self.batch}")
        if self.rows:
            parts.append(f"{self.rows}rows")
        return "-".join(parts)


def _experiment(given: RunSettings | Plan) -> Experiment:
    return Experiment(*(getattr(given, name) for name in Experiment._fields))


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
        return _experiment(self)

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

    def runs(self) -> list[RunSettings]:
        """All of them, by repetition and rate."""
        return [
            self.common._replace(rate=r, repetition=s)
            for s, r in product(self.repetitions, self.rates)
        ]

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
        Instances in a step.
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
            _check_text(name, getattr(self, name))
        if self.task in TASKS and self.methods in (("all",), ["all"]):
            self._set(methods=WAYS[TASKS[self.task].kind])
        for name, kind in (("methods", str), ("sizes", int), ("rates", float)):
            self._set(**{name: as_tuple(name, getattr(self, name), kind)})
        self._set(rates=tuple(float(f"{rate:.6g}") for rate in self.rates))
        _check_names(self)
        _check_numbers(self)
        rates, repetitions = TOGETHER.get(self.model or TASKS[self.task].model, (16, 10))
        self._set(
            methods=tuple(str(way) for way in self.ways),
            smoothing=float(self.smoothing),  # 0 and 0.0 are one identity
            holdout=float(self.holdout),
            model=self.model or TASKS[self.task].model,
            rates_together=self.rates_together or rates,
            repetitions_together=self.repetitions_together or repetitions,
        )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the plan is frozen for everyone else

    @property
    def experiment(self) -> Experiment:
        """The figure that its runs belong to."""
        return _experiment(self)

    @property
    def ways(self) -> list[Way]:
        """The methods with their losses."""
        return [Way.named(text, TASKS[self.task].kind) for text in self.methods]

    def groups(self) -> Iterator[Group]:
        """Runs that train together, largest bags first: few bags are quick, so errors show
        early."""
        labels = [way for way in self.ways if way.method == "labels"]
        others = [way for way in self.ways if way.method != "labels"]
        for size, way in product(sorted(self.sizes, reverse=True), others):
            yield from self._groups(way, size)
        for way in labels:
            yield from self._groups(way, 1)

    def _groups(self, way: Way, size: int) -> Iterator[Group]:
        own = {**way._asdict(), "size": size, "rate": 0.0, "repetition": 0}
        own["smoothing"] = smoothing_of(way, self.smoothing)
        shared = {name: getattr(self, name) for name in RunSettings._fields if name not in own}
        common = RunSettings(**shared, **own)
        for repetitions in _pieces(range(self.repetitions), self.repetitions_together):
            for rates in _pieces(self.rates, self.rates_together):
                yield Group(common, rates, repetitions)

    def count(self) -> int:
        """The number of runs."""
        return sum(len(group.rates) * len(group.repetitions) for group in self.groups())

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
        raise broken(
            f"A plan's {name} must be a list with at least one {kind.__name__}",
            f"{value!r} given",
            "Give one.",
        )
    return tuple(dict.fromkeys(kind(v) for v in values))


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise broken(
            f"A plan's {name} must be a text",
            f"{value!r} given",
            "Put one name in quotation marks.",
        )


def _check_names(plan: Plan) -> None:
    names = {"task": (plan.task, TASKS), "start": (plan.start, STARTS)}
    names["model"] = (plan.model or "linear", MODELS)
    for thing, (name, known) in names.items():
        one_of(f"A plan's {thing}", name, known)
    for way in plan.ways:
        LOSSES[way.loss].form(TASKS[plan.task].kind)  # refuses a loss that does not fit


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
            raise broken(
                f"A plan's {name} must be a whole number of at least {low}",
                f"{value!r} given",
                "Change it.",
            )
    if min(plan.sizes) < 1 or min(plan.rates) <= 0:
        raise broken(
            "Bag sizes and learning rates must be positive",
            f"the smallest are {min(plan.sizes)} and {min(plan.rates):g}",
            "Leave these out.",
        )


def _check_numbers(plan: Plan) -> None:
    check_counts(plan, LEAST)
    shares = (plan.holdout, plan.smoothing)
    if not all(isinstance(share, int | float) and 0 <= share < 1 for share in shares):
        raise broken(
            "A plan's holdout and smoothing must lie in [0, 1)",
            f"{plan.holdout!r} and {plan.smoothing!r} given",
            "Use 0.2 to hold out a fifth of the bags.",
        )


def _pieces(values: Sequence, length: int) -> list[tuple]:
    return [tuple(values[i : i + length]) for i in range(0, len(values), length)]


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "laptop": {
        "sizes": tuple(2**i for i in range(11)),
        "rates": tuple(np.logspace(-4.5, -1, 8)),
        "repetitions": 3,
        "epochs": 30,
    },
    "smoke": {
        "methods": ("matching", "easy", "upm", "anchored", "labels"),
        "sizes": (16, 256),
        "rates": (1e-3, 1e-2),
        "repetitions": 2,
        "epochs": 3,
        "rows": 8192,
    },
}
"""`paper`: the whole grid of the paper, whose number of epochs is not known. `laptop`: hours on 2
cores. `smoke`: a minute."""


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
        raise broken(
            f"A plan must name a task and may have preset, {', '.join(known[1:])}",
            f"{', '.join(unknown) or 'no task'} given in {path}",
            "Fix it.",
        )
    given |= changes
    return preset(base, given.pop("task"), **given)
