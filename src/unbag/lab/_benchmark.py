"""Benchmarks: tasks x bags x methods, every run kept in one CSV file and made once."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from unbag._rules import Refused, broken, one_of
from unbag.bags import MAKERS, Bags, make_bags, random_bags, take_rows
from unbag.datasets import Dataset
from unbag.diagnosis import diagnose
from unbag.lab._competitors import LABELS, Budget, Competitor, competitors
from unbag.lab._tasks import TASKS, data_of, trivial_score
from unbag.methods import usual_loss
from unbag.training import labelled_auc

WAYS = ("random", *MAKERS)
QUICK = Budget((16,), 20, 2, (1e-2,))


class BenchmarkRun(NamedTuple):
    """One method on one set of bags; a row of the file.

    Parameters
    ----------
    task, bags_by, size, repetition : str, str, int, int
        The bags: the data, how they are made, of which size, and the seed.
    rows, budget : int, str
        Training rows used, 0 for all; what networks got.
    method : str
        Of a competitor.
    bags : int
        Their number.
    random : bool
        Whether the diagnosis takes the bags for random.
    trivial : float
        Test loss of the prior.
    test_loss, test_auc : float
        By labels of test rows; NaN where the method refused the bags, or for counts.
    seconds : float
        Of CPU to learn, with whatever JAX compiles; other work on the machine does not count.
    note : str
        Why there is no result.
    """

    task: str
    bags_by: str
    size: int
    repetition: int
    rows: int
    budget: str
    method: str
    bags: int = 0
    random: bool = True
    trivial: float = np.nan
    test_loss: float = np.nan
    test_auc: float = np.nan
    seconds: float = np.nan
    note: str = ""

    @property
    def key(self) -> tuple:
        """What makes it this run and no other."""
        return self[:7]

    @property
    def block(self) -> tuple[str, str, int]:
        """The setting whose repetitions are averaged."""
        return self.task, self.bags_by, self.size


@dataclass(frozen=True)
class Benchmark:
    """Which runs to make.

    Parameters
    ----------
    tasks, bags_by, sizes : tuple
        Names of tasks, ways to make bags, and bag sizes; every combination is a block.
    methods : tuple of str
        Names of competitors; none for all.
    repetitions : int
        Seeds of each block, the same for all methods.
    rows, test_rows : int
        First rows used; 0 for all.
    budget : Budget
        Of networks.

    >>> Benchmark(("adult",), sizes=(16, 64), methods=("upm", "em"), repetitions=3).count()
    12
    """

    tasks: tuple[str, ...] = ("adult", "gaussian")
    bags_by: tuple[str, ...] = ("random",)
    sizes: tuple[int, ...] = (16, 128)
    methods: tuple[str, ...] = ()
    repetitions: int = 2
    rows: int = 4096
    test_rows: int = 8192
    budget: Budget = QUICK

    def __post_init__(self) -> None:
        for names, thing, known in (
            (self.tasks, "A task", TASKS),
            (self.bags_by, "A way to make bags", WAYS),
            (self.methods, "A method", competitors()),
        ):
            for name in names:
                one_of(thing, name, known)
        if min(*self.sizes, self.repetitions) < 1:
            raise broken(
                "Bag sizes and repetitions of a benchmark must be positive",
                f"{min(self.sizes)} and {self.repetitions} given",
                "Raise them.",
            )

    def named(self) -> dict[str, Competitor]:
        """The competitors."""
        everybody = competitors()
        return {name: everybody[name] for name in self.methods or everybody}

    def blocks(self) -> list[tuple[str, str, int]]:
        """Settings: task, way and size; counts and classes have random bags only."""
        every = product(self.tasks, self.bags_by, self.sizes)
        return [b for b in every if TASKS[b[0]].kind == "binary" or b[1] == "random"]

    def runs(self) -> Iterator[BenchmarkRun]:
        """Every run without its result, set of bags by set of bags."""
        text = repr(tuple(self.budget))
        for (task, way, size), seed in product(self.blocks(), range(self.repetitions)):
            for name, who in self.named().items():
                if TASKS[task].kind in who.kinds:
                    yield BenchmarkRun(task, way, size, seed, self.rows, text, name)

    def count(self) -> int:
        """The number of runs."""
        return sum(1 for _ in self.runs())


PRESETS: dict[str, dict[str, Any]] = {
    "quick": {},
    "laptop": {
        "tasks": ("adult", "gaussian", "mnist", "higgs"),
        "bags_by": ("random", "simple", "feature"),
        "sizes": (16, 64, 256),
        "repetitions": 3,
        "rows": 16_384,
        "budget": Budget((32,), 40, 3),
    },
    "night": {
        "tasks": (
            "adult", "gaussian", "heavy-tailed", "clicks", "mnist", "cifar-animal", "cifar-cat",
            "higgs", "bike-sharing", "motor-claims",
        ),
        "bags_by": WAYS,
        "sizes": (8, 32, 128, 512),
        "repetitions": 3,
        "rows": 32_768,
        "budget": Budget(),
    },
}  # fmt: skip
"""`quick`: minutes. `laptop`: hours. `night`: every task and every way to make bags."""


def benchmark_preset(name: str, **changes: Any) -> Benchmark:
    """A shipped benchmark, with changes.

    Parameters
    ----------
    name : {"quick", "laptop", "night"}
        Which one.
    **changes : Any
        Fields of `Benchmark`.
    """
    one_of("A preset", name, PRESETS)
    return Benchmark(**{**PRESETS[name], **changes})


def run_benchmark(
    benchmark: Benchmark, path: Path, *, tell: Callable[[str], None] | None = None
) -> list[BenchmarkRun]:
    """Make the runs that the file lacks, one after the other; what was made is kept.

    Every method gets the same bags and the same seed. Networks share one budget, and one rule
    stops them: the likelihood of the counts of bags not learned from. The peers choose their
    penalties by that rule too, and the additive model by its evidence: no label of the training
    rows is used by anybody but `labels`.

    Parameters
    ----------
    benchmark : Benchmark
        Which runs.
    path : Path
        The CSV file; rows are added as runs end.
    tell : callable, optional
        Gets a line for each run.

    Returns
    -------
    list of BenchmarkRun
        Those of this benchmark.
    """
    known = {run.key: run for run in read_benchmark(path)}
    wanted, who = list(benchmark.runs()), benchmark.named()
    bags_of: tuple[Any, Any] = (None, None)
    for number, run in enumerate(wanted, 1):
        if run.key in known:
            continue
        place = (*run.block, run.repetition)
        if place != bags_of[0]:
            bags_of = (place, _drawn(run, benchmark.test_rows))
        done = _made(run, who[run.method], benchmark.budget, *bags_of[1])
        _append(path, done)
        known[run.key] = done
        if tell is not None:
            result = done.note or f"{done.test_loss:.4f} in {done.seconds:.1f} s"
            tell(f"{number}/{len(wanted)} {place} {run.method}: {result}")
    return [known[run.key] for run in wanted]


class _Facts(NamedTuple):
    bags: Bags
    alone: Bags
    data: Dataset
    random: bool
    trivial: float


def _drawn(run: BenchmarkRun, test_rows: int) -> tuple[_Facts]:
    """The bags of a repetition, the same rows in bags of one, and what holds for all methods."""
    data, kind = _apart(data_of(run.task)), TASKS[run.task].kind
    rows = np.arange(min(run.rows or len(data.y), len(data.y)))
    test = np.arange(min(test_rows or len(data.y_test), len(data.y_test)))
    data = data._replace(
        X=take_rows(data.X, rows), y=data.y[rows],
        X_test=take_rows(data.X_test, test), y_test=data.y_test[test],
    )  # fmt: skip
    about: dict[str, Any] = {"seed": run.repetition}
    if kind != "binary":
        about |= {"kind": kind}
    if data.offset is not None and data.offset_test is not None:
        data = data._replace(offset=data.offset[rows], offset_test=data.offset_test[test])
        about |= {"offset": data.offset}
    make = random_bags
    if run.bags_by != "random":
        about["how"] = run.bags_by
        make = make_bags
    bags = make(data.X, data.y, size=run.size, **about)
    about.pop("how", None)
    alone = random_bags(data.X, data.y, size=1, **about)
    score = trivial_score(data, bags.prior, kind)
    alike = _with_offset(np.broadcast_to(score, (len(test), *np.shape(score))), data)
    trivial = float(np.mean(usual_loss("any", kind).value(alike, data.y_test, kind=kind)))
    return (_Facts(bags, alone, data, diagnose(bags, most=2e6).random, trivial),)


def _apart(data: Dataset) -> Dataset:
    """The data with the offset beside the features, and not as their last column."""
    if data.offset is None:
        return data
    return data._replace(X=data.X[:, :-1], X_test=data.X_test[:, :-1])


def _with_offset(score: np.ndarray, data: Dataset) -> np.ndarray:
    if data.offset_test is None:
        return score
    return score + data.offset_test


def _made(run: BenchmarkRun, who: Competitor, budget: Budget, facts: _Facts) -> BenchmarkRun:
    """The run with its result; a refusal is a result too."""
    data, kind = facts.data, TASKS[run.task].kind
    run = run._replace(bags=len(facts.bags), random=facts.random, trivial=facts.trivial)
    bags = facts.bags
    if run.method == LABELS:
        bags = facts.alone
    learner = who.make(budget, getattr(data.X, "ndim", 2) > 2)
    start = time.process_time()
    try:
        with warnings.catch_warnings():  # a benchmark of bags that are not random knows that
            warnings.simplefilter("ignore")
            model = learner.fit(bags, seed=run.repetition)
        seconds = time.process_time() - start
        score = _with_offset(np.asarray(model.scores(data.X_test), float), data)
    except (Refused, ArithmeticError, np.linalg.LinAlgError) as error:
        return run._replace(note=str(error))
    loss = float(np.mean(usual_loss("any", kind).value(score, data.y_test, kind=kind)))
    auc = np.nan
    if kind == "binary":
        auc = float(labelled_auc(score[None], data.y_test)[0])
    return run._replace(test_loss=loss, test_auc=auc, seconds=seconds)


def read_benchmark(path: Path) -> list[BenchmarkRun]:
    """The runs of a file, ours or from outside; columns that are not there have no value.

    Parameters
    ----------
    path : Path
        A CSV file with at least task, bags_by, size, repetition, method and test_loss; none is
        an empty one.
    """
    if not path.exists():
        return []
    hints, needed = get_type_hints(BenchmarkRun), ("task", "size", "method", "test_loss")
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise broken(
                f"Results must have the columns {', '.join(needed)}",
                f"{path.name} lacks {missing[0]}",
                "Add it.",
            )
        rows = [row for row in reader if row.get("test_loss") not in (None, "")]
    usual = {"bags_by": "random", "repetition": 0, "rows": 0, "budget": "", "random": True}
    return [BenchmarkRun(**{**usual, **_typed(row, hints)}) for row in rows]


def _typed(row: dict[str, Any], hints: dict[str, Any]) -> dict[str, Any]:
    made = {name: row[name] for name in hints if row.get(name) not in (None, "")}
    return {
        name: value == "True" if hints[name] is bool else hints[name](value)
        for name, value in made.items()
    }


def _append(path: Path, run: BenchmarkRun) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(BenchmarkRun._fields)
        short = {name: f"{getattr(run, name):.5g}" for name in ("trivial", "test_auc", "seconds")}
        short["test_loss"] = f"{run.test_loss:.6f}"
        writer.writerow([short.get(name, value) for name, value in run._asdict().items()])


def of_blocks(benchmark: Benchmark, outside: Sequence[BenchmarkRun]) -> Sequence[BenchmarkRun]:
    """Those of other people's runs that are of this benchmark's blocks.

    Parameters
    ----------
    benchmark : Benchmark
        Ours.
    outside : sequence of BenchmarkRun
        Read from a file.
    """
    blocks = set(benchmark.blocks())
    kept = [run for run in outside if run.block in blocks]
    if outside and not kept:
        raise broken(
            "Results from outside must be of the benchmark's tasks, bags_by and sizes",
            f"none of {len(outside)} is",
            "Name the blocks as the leaderboard does.",
        )
    return kept
