"""A preset, a TOML file or keywords in, a checked `Plan` out: which runs to make."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.lab._methods import SMOOTHING, WAYS, Way, smoothing_of
from unbag.lab._tasks import MODELS, TASKS, data_of
from unbag.losses import LOSSES

STARTS = ("usual", "trivial")
TOGETHER = {
    "cnn": (1, 1)
}  # rates, repetitions: a large network gains nothing from company, and a kill loses less


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
        return TASKS[self.task].title if self.task in TASKS else self.task

    @property
    def details(self) -> str:
        """What else belongs beside every number."""
        batch = f", batches of {self.batch}" if self.batch != 4096 else ""
        some = f", first {self.rows} rows" if self.rows else ""
        return f"{self.model}, {self.start} start, {self.epochs} epochs{batch}{some}"

    @property
    def title(self) -> str:
        """Both."""
        return f"{self.data} ({self.details})"

    @property
    def name(self) -> str:
        """For files."""
        batch = f"-batch{self.batch}" if self.batch != 4096 else ""
        return "-".join(map(str, self[:4])) + batch + (f"-{self.rows}rows" if self.rows else "")


def _experiment(given: RunSettings | Plan) -> Experiment:
    return Experiment(*(getattr(given, name) for name in Experiment._fields))


class RunSettings(NamedTuple):
    """Everything that decides how a run ends; its identity.

    size : of the bags. repetition : seed of bags, order and initialisation. rows : training rows
        used, 0 for all.
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
        return sha256(repr(tuple(self)).encode()).hexdigest()[:16]


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
        return sha256(repr(self).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """Which runs to make: methods x bag sizes x learning rates x repetitions.

    task, model : by name; the model "" is the task's own. methods : "method" or "method:loss";
        "all" for `WAYS`.
    sizes : of the bags; `labels` always has bags of one. rates : of Adam. batch : instances.
    smoothing : of the labels in the log loss (the square loss, the likelihood and labels have
        none).
    holdout : share of the bags that is held out to choose rate and epoch.
    start : "usual" initialisation, or at the "trivial" predictor. rows : training rows used; 0 for
        all.
    rates_together, repetitions_together : how much trains (and is stored) at once, which bounds the
        memory; 0 for what suits the model.

    >>> Plan("adult", methods=("anchored:square", "upm"), sizes=(16,), rates=(1e-3,), repetitions=2).count()
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
            object.__setattr__(self, "methods", WAYS[TASKS[self.task].kind])
        for name, kind in (("methods", str), ("sizes", int), ("rates", float)):
            object.__setattr__(self, name, _tuple(name, getattr(self, name), kind))
        object.__setattr__(self, "rates", tuple(float(f"{rate:.6g}") for rate in self.rates))
        _check_names(self)
        _check_numbers(self)
        for name in ("smoothing", "holdout"):
            object.__setattr__(self, name, float(getattr(self, name)))  # 0 and 0.0 are one identity
        object.__setattr__(self, "model", self.model or TASKS[self.task].model)
        for name, usual in zip(
            ("rates_together", "repetitions_together"),
            TOGETHER.get(self.model, (16, 10)),
            strict=True,
        ):
            object.__setattr__(self, name, getattr(self, name) or usual)

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
        for size in sorted(self.sizes, reverse=True):
            yield from (
                g for way in self.ways if way.method != "labels" for g in self._groups(way, size)
            )
        yield from (g for way in self.ways if way.method == "labels" for g in self._groups(way, 1))

    def _groups(self, way: Way, size: int) -> Iterator[Group]:
        common = RunSettings(
            self.task, self.model, *way, size, 0.0, 0, self.epochs, self.batch, smoothing_of(way, self.smoothing),
            self.holdout, self.start, self.rows,
        )  # fmt: skip
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
        needed = 4 if self.holdout else 2
        if max(self.sizes) * needed > rows:
            raise broken(
                f"A bag size must leave at least {needed} bags",
                f"bags of {max(self.sizes)} came for the {rows} rows of {self.task}",
                "Make the bags smaller.",
            )


def _tuple(name: str, value: Any, kind: type) -> tuple:
    """A tuple of one kind of thing; whole numbers stand for floats."""
    values = (
        tuple(value)
        if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
        else None
    )
    allowed = {str: (str,), int: (int, np.integer), float: (int, float, np.number)}[kind]
    if not values or not all(isinstance(v, allowed) and not isinstance(v, bool) for v in values):
        raise broken(
            f"A plan's {name} must be a list with at least one {kind.__name__}",
            f"{value!r} came",
            "Give one.",
        )
    return tuple(dict.fromkeys(kind(v) for v in values))


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise broken(
            f"A plan's {name} must be a text", f"{value!r} came", "Put one name in quotation marks."
        )


def _check_names(plan: Plan) -> None:
    for thing, came, known in (
        ("task", plan.task, TASKS),
        ("model", plan.model or "linear", MODELS),
        ("start", plan.start, STARTS),
    ):
        if came not in known:
            raise broken(
                f"A plan's {thing} must be one of {', '.join(known)}",
                f"{came!r} came",
                "Choose one of these.",
            )
    for way in plan.ways:
        LOSSES[way.loss].form(TASKS[plan.task].kind)
    object.__setattr__(plan, "methods", tuple(str(way) for way in plan.ways))


def _check_numbers(plan: Plan) -> None:
    for name, low in (
        ("repetitions", 1), ("epochs", 1), ("batch", 1), ("rows", 0), ("rates_together", 0), ("repetitions_together", 0)
    ):  # fmt: skip
        value = getattr(plan, name)
        if not isinstance(value, int) or value < low:
            raise broken(
                f"A plan's {name} must be a whole number of at least {low}",
                f"{value!r} came",
                "Change it.",
            )
    if min(plan.sizes) < 1 or min(plan.rates) <= 0:
        raise broken(
            "Bag sizes and learning rates must be positive",
            f"the smallest are {min(plan.sizes)} and {min(plan.rates):g}",
            "Leave these out.",
        )
    if not all(
        isinstance(share, int | float) and 0 <= share < 1
        for share in (plan.holdout, plan.smoothing)
    ):
        raise broken(
            "A plan's holdout and smoothing must lie in [0, 1)",
            f"{plan.holdout!r} and {plan.smoothing!r} came",
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
"""`paper`: the whole grid of the paper, whose number of epochs is not known. `laptop`: hours on 2 cores.
`smoke`: a minute."""


def preset(name: str, task: str, **changes: Any) -> Plan:
    """A shipped plan, with changes.

    >>> preset("paper", "adult").count()
    11680
    >>> preset("smoke", "adult", sizes=(64,)).sizes
    (64,)
    """
    if name not in PRESETS:
        raise broken(
            f"A preset must be one of {', '.join(PRESETS)}",
            f"{name!r} came",
            "Choose one of these.",
        )
    return Plan(**{"task": task, **PRESETS[name], **changes})


def read_plan(path: str | Path, **changes: Any) -> Plan:
    """A plan from a TOML file, whose keys are the fields of `Plan`, and `preset` for where it
    starts from."""
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
            f"{', '.join(unknown) or 'no task'} came in {path}",
            "Fix it.",
        )
    given |= changes
    return preset(base, given.pop("task"), **given)
