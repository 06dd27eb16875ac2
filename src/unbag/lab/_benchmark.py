"""Benchmarks: tasks x bags x methods, every run kept in one CSV file and made once; from the runs
a leaderboard: ranks, which differences are more than chance, and the time taken."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from unbag._rules import Refused, broken, one_of
from unbag.bags import MAKERS, Bags, make_bags, random_bags, take_rows
from unbag.datasets import Dataset
from unbag.diagnosis import diagnose
from unbag.lab._catalogue import TASKS, data_of, title_of, trivial_loss
from unbag.lab._competitors import LABELS, Budget, Competitor, competitors
from unbag.lab._figures import save_figure
from unbag.lab._markup import as_latex, as_markdown
from unbag.lab._plan import shipped
from unbag.lab._store import typed
from unbag.losses import proper_loss
from unbag.noise import laplace, noisy
from unbag.plots import Interval, draw_intervals, new_figure
from unbag.training import labelled_auc

WAYS = ("random", *MAKERS)
SHORT = ("trivial", "test_auc", "seconds", "rate")  # columns whose fifth digit nobody needs
QUICK = Budget((16,), 20, 2, (1e-2,))


class Block(NamedTuple):
    """A setting in which methods are ranked.

    Parameters
    ----------
    task, bags_by, size : str, str, int
        The data, how bags are made, and of which size.
    epsilon : float
        Of the Laplace noise on every count; 0 for exact counts.
    """

    task: str
    bags_by: str
    size: int
    epsilon: float = 0.0

    def __str__(self) -> str:
        noise = f", epsilon {self.epsilon:g}" if self.epsilon else ""
        return f"{title_of(self.task)}, {self.bags_by}, {self.size}{noise}"


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
    epsilon : float
        Of the Laplace noise on every count; 0 for exact counts.
    rate : float
        Mean label of the bags; NaN where it is not known.
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
    epsilon: float = 0.0
    rate: float = np.nan

    @property
    def key(self) -> tuple:
        """What makes it this run and no other."""
        return (*self[:7], self.epsilon)

    @property
    def block(self) -> Block:
        """The setting whose repetitions are averaged."""
        return Block(self.task, self.bags_by, self.size, self.epsilon)


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
    epsilons : tuple of float
        Of the Laplace noise on every count; 0 for exact counts.

    >>> Benchmark(("adult",), sizes=(16, 64), methods=("upm", "em"), repetitions=3).count()
    12
    """

    tasks: tuple[str, ...] = ("adult",)
    bags_by: tuple[str, ...] = ("random",)
    sizes: tuple[int, ...] = (16, 128)
    methods: tuple[str, ...] = ()
    repetitions: int = 2
    rows: int = 4096
    test_rows: int = 8192
    budget: Budget = QUICK
    epsilons: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        for names, thing, known in (
            (self.tasks, "A task", TASKS),
            (self.bags_by, "A way to make bags", WAYS),
            (self.methods, "A method", competitors()),
        ):
            for name in names:
                one_of(thing, name, known)
        if min(*self.sizes, self.repetitions) < 1 or not min(self.epsilons) >= 0:
            raise broken(
                "Bag sizes, repetitions and noise of a benchmark must be positive",
                f"{min(self.sizes)}, {self.repetitions} and {min(self.epsilons):g} given",
                "Raise them; an epsilon of 0 stands for exact counts.",
            )

    def named(self) -> dict[str, Competitor]:
        """The competitors."""
        everybody = competitors()
        return {name: everybody[name] for name in self.methods or everybody}

    def blocks(self) -> list[Block]:
        """Settings, random bags first, and every task before the next bag size; counts and classes
        have random bags only."""
        every = product(self.bags_by, self.sizes, self.tasks, self.epsilons)
        blocks = [Block(task, way, size, epsilon) for way, size, task, epsilon in every]
        return [b for b in blocks if TASKS[b.task].kind == "binary" or b.bags_by == "random"]

    def runs(self) -> Iterator[BenchmarkRun]:
        """Every run without its result, set of bags by set of bags.

        Repetitions are outermost, so that a benchmark that is stopped early has seen every block.
        """
        text, named = repr(tuple(self.budget)), self.named()
        for seed, block in product(range(self.repetitions), self.blocks()):
            for name, who in named.items():
                if TASKS[block.task].kind in who.kinds:
                    about = (*block[:3], seed, self.rows, text, name)
                    yield BenchmarkRun(*about, epsilon=block.epsilon)

    def count(self) -> int:
        """The number of runs."""
        return sum(1 for _ in self.runs())


# one task of each kind of data, the cheap ones first
EVERY = (
    "adult", "clicks", "criteo", "higgs", "bike-sharing", "motor-claims", "mnist", "cifar-animal",
)  # fmt: skip
# `quick`: two minutes. `rates`, `noise` and `bags`: rare labels, noisy counts, and bags that are
# not random. `laptop`: hours. `night`: every task and every way to make bags.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {},
    "rates": {"tasks": ("clicks-1", "clicks-5", "clicks-20"), "sizes": (16,), "rows": 8192},
    "noise": {"sizes": (64,), "rows": 8192, "epsilons": (0.0, 1.0, 0.3)},
    "bags": {"sizes": (64,), "bags_by": ("random", "simple", "feature")},
    "laptop": {
        "tasks": EVERY, "bags_by": ("random", "simple", "feature"), "sizes": (64, 16, 256),
        "repetitions": 3, "rows": 8192, "budget": Budget((32,), 40, 3),
    },
    "night": {
        "tasks": (*EVERY, "cifar-cat", "gaussian", "heavy-tailed"), "bags_by": WAYS,
        "sizes": (8, 32, 128, 512), "repetitions": 3, "rows": 32_768, "budget": Budget(),
    },
}  # fmt: skip


def benchmark_preset(name: str, **changes: Any) -> Benchmark:
    """A shipped benchmark, with changes.

    Parameters
    ----------
    name : {"quick", "rates", "noise", "bags", "laptop", "night"}
        Which one.
    **changes : Any
        Fields of `Benchmark`.
    """
    return Benchmark(**{**shipped(PRESETS, name), **changes})


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
    facts, place = None, None
    for number, run in enumerate(wanted, 1):
        if run.key in known:
            continue
        if facts is None or place != (run.block, run.repetition):
            place, facts = (run.block, run.repetition), _drawn(run, benchmark.test_rows)
        done = _made(run, who[run.method], benchmark.budget, facts)
        _append(path, done)
        known[run.key] = done
        if tell is not None:
            result = done.note or f"{done.test_loss:.4f} in {done.seconds:.1f} s"
            where = f"{run.block}, repetition {run.repetition}"
            tell(f"{number}/{len(wanted)} {where}, {run.method}: {result}")
    return [known[run.key] for run in wanted]


class _Facts(NamedTuple):
    bags: Bags
    alone: Bags
    data: Dataset
    random: bool
    trivial: float


def _drawn(run: BenchmarkRun, test_rows: int) -> _Facts:
    """The bags of a repetition, the same rows in bags of one, and what holds for all methods."""
    data, kind = data_of(run.task), TASKS[run.task].kind
    if data.offset is not None:  # learners take it beside the features, not as their last column
        data = data._replace(X=data.X[:, :-1], X_test=data.X_test[:, :-1])
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
    alone = random_bags(data.X, data.y, size=1, **about)
    if run.bags_by == "random":
        bags = random_bags(data.X, data.y, size=run.size, **about)
    else:
        bags = make_bags(data.X, data.y, run.bags_by, size=run.size, seed=run.repetition)
    trivial = trivial_loss(data, bags.prior, kind)
    random = diagnose(bags, most=2e6).random
    if run.epsilon:
        bags = noisy(bags, laplace(epsilon=run.epsilon), seed=run.repetition)
    return _Facts(bags, alone, data, random, trivial)


def _made(run: BenchmarkRun, who: Competitor, budget: Budget, facts: _Facts) -> BenchmarkRun:
    """The run with its result; a refusal is a result too."""
    data, kind = facts.data, TASKS[run.task].kind
    run = run._replace(bags=len(facts.bags), random=facts.random, trivial=facts.trivial)
    if kind == "binary":
        run = run._replace(rate=float(np.mean(data.y)))
    bags = facts.bags
    if run.method == LABELS:
        bags = facts.alone
    learner = who.make(budget)
    start = time.process_time()
    try:
        with warnings.catch_warnings():  # a benchmark of bags that are not random knows that
            warnings.simplefilter("ignore")
            model = learner.fit(bags, seed=run.repetition)
        seconds = time.process_time() - start
        score = np.asarray(model.scores(data.X_test), float)
    except (Refused, ArithmeticError, np.linalg.LinAlgError) as error:
        return run._replace(note=str(error))
    if data.offset_test is not None:
        score = score + data.offset_test
    loss = float(np.mean(proper_loss(kind).value(score, data.y_test, kind=kind)))
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
    needed = ("task", "size", "method", "test_loss")
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            rule = f"Results must have the columns {', '.join(needed)}"
            raise broken(rule, f"{path.name} lacks {missing[0]}", "Add it.")
        rows = [row for row in reader if row.get("test_loss") not in (None, "")]
    usual = {"bags_by": "random", "repetition": 0, "rows": 0, "budget": "", "random": True}
    return [BenchmarkRun(**{**usual, **typed(BenchmarkRun, row)}) for row in rows]


def _append(path: Path, run: BenchmarkRun) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(BenchmarkRun._fields)
        short = {name: f"{getattr(run, name):.5g}" for name in SHORT}
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
        rule = "Results from outside must be of the benchmark's tasks, bags_by and sizes"
        raise broken(rule, f"none of {len(outside)} is", "Name the blocks as the leaderboard does.")
    return kept


def finished(runs: Sequence[BenchmarkRun]) -> list[BenchmarkRun]:
    """The runs of the settings in which no method is missing that others of its kind have.

    Parameters
    ----------
    runs : sequence of BenchmarkRun
        Of one benchmark that was perhaps stopped; one file of runs.
    """
    methods = {(run.block, run.repetition, run.method) for run in runs}
    wanted = {kind: {run.method for run in own} for kind, own in by_kind(runs).items()}
    return [
        run
        for run in runs
        if all((run.block, run.repetition, name) in methods for name in wanted[_kind(run)])
    ]


def by_kind(runs: Sequence[BenchmarkRun]) -> dict[str, list[BenchmarkRun]]:
    """Runs on labels, totals and classes apart: few methods take all of them.

    Parameters
    ----------
    runs : sequence of BenchmarkRun
        Of one benchmark.
    """
    kinds = dict.fromkeys(map(_kind, runs))
    return {kind: [run for run in runs if _kind(run) == kind] for kind in kinds}


def _kind(run: BenchmarkRun) -> str:
    if run.task in TASKS:
        return TASKS[run.task].kind
    return "binary"


LEVEL = 0.05
# share of the prior's loss that labels must remove for a way from one to the other to be told
LEAST_ROOM = 0.005


class Standing(NamedTuple):
    """One line of the leaderboard.

    Parameters
    ----------
    method, title : str
        Who.
    rank : float
        Mean over the blocks, from 1.
    wins : int
        Blocks in which nobody was better.
    way : float
        Median over the blocks of how far it went from the prior's loss (0) to that of a network
        with labels (1); below 0 it is worse than the prior.
    auc : float
        Median over the blocks.
    seconds : float
        Of CPU to learn, median over the runs.
    refused : int
        Blocks without a result.
    """

    method: str
    title: str
    rank: float
    wins: int
    way: float
    auc: float
    seconds: float
    refused: int


class Leaderboard(NamedTuple):
    """What the runs of a benchmark say.

    A method's rank in a block (task, bags, size) is by its mean test loss over the repetitions; a
    method that refused a block is last in it. Friedman's test asks whether the ranks differ at all.
    Two methods differ by more than chance at the level of 5 per cent, over all pairs, when their
    mean ranks differ by the critical difference of Nemenyi, q sqrt(k (k + 1) / 6 N), with k
    methods, N blocks and q of the studentized range divided by sqrt 2 (Demsar 2006). Few blocks
    make it wide.

    Parameters
    ----------
    standings : list of Standing
        Best first.
    blocks : list of (task, bags, size)
        What they are ranked by.
    losses : dict
        Mean test loss of a method in a block, with `labels`.
    critical : float
        Difference of mean ranks that is more than chance.
    chance : float
        Of ranks as different as these if all methods were alike, by Friedman's test.
    facts : dict
        Of each block a run, which knows the loss of the prior, the number of bags, and whether they
        look random.
    """

    standings: list[Standing]
    blocks: list[Block]
    losses: dict[tuple[str, Block], float]
    critical: float
    chance: float
    facts: dict[Block, BenchmarkRun]

    def markdown(self) -> str:
        """Ranks as a table."""
        return as_markdown(HEADER, self.rows())

    def rows(self) -> list[list[str]]:
        """The cells of the table of ranks."""
        shown = [
            [f"{s.rank:.2f}", str(s.wins), f"{s.way:.2f}", f"{s.auc:.3f}"] for s in self.standings
        ]
        return [
            [s.title, *numbers, f"{s.seconds:.1f}", str(s.refused)]
            for s, numbers in zip(self.standings, shown, strict=True)
        ]

    def losses_markdown(self) -> str:
        """Mean test losses, a row for each method and a column for each block."""
        named = {s.method: s.title for s in self.standings}
        if any(name == LABELS for name, _ in self.losses):
            named[LABELS] = "labels, network"
        rows = {
            title: [
                f"{self.losses.get((name, b), np.nan):.4f}".replace("nan", "") for b in self.blocks
            ]
            for name, title in named.items()
        }
        facts, words = [self.facts[block] for block in self.blocks], {True: "yes", False: "no"}
        by_labels = rows.pop("labels, network", None)
        rows["prior"] = [f"{run.trivial:.4f}" for run in facts]
        if by_labels:
            rows["labels, network"] = by_labels
        rows["bags"] = [str(run.bags) for run in facts]
        rows["look random?"] = [words[run.random] for run in facts]
        header = ["method", *(str(block) for block in self.blocks)]
        return as_markdown(header, [[title, *cells] for title, cells in rows.items()])

    def latex(self) -> str:
        """Ranks as a table for a paper; who is not clearly behind the best is bold."""
        best = min(s.rank for s in self.standings)
        bold = [(i, 1) for i, s in enumerate(self.standings) if s.rank - best < self.critical]
        caption = (
            f"Mean ranks over {len(self.blocks)} settings; critical difference {self.critical:.2f} "
            f"(Nemenyi, {LEVEL:.0%}). Bold: not clearly behind the best."
        )
        return as_latex(HEADER, self.rows(), caption=caption, label="tab:leaderboard", bold=bold)


HEADER = ["method", "mean rank", "wins", "way to labels", "AUC", "CPU seconds", "refused"]


def leaderboard(runs: Sequence[BenchmarkRun]) -> Leaderboard:
    """Rank the methods that took part in every block.

    Parameters
    ----------
    runs : sequence of BenchmarkRun
        Of one benchmark, with those from outside.
    """
    blocks = sorted({run.block for run in runs})
    by: dict[tuple[str, Block], list[BenchmarkRun]] = {}
    for run in runs:
        by.setdefault((run.method, run.block), []).append(run)
    names = [n for n in dict.fromkeys(run.method for run in runs) if n != LABELS]
    whole = [n for n in names if all((n, block) in by for block in blocks)]
    if len(whole) < 2:
        rule = "A leaderboard must have two methods with runs in every block"
        raise broken(rule, f"{len(whole)} given", "Run more methods.")
    losses = {key: float(np.mean([run.test_loss for run in own])) for key, own in by.items()}
    table = np.array([[losses[n, block] for block in blocks] for n in whole])
    ranks = rankdata(np.where(np.isfinite(table), table, np.inf), axis=0)
    facts = {run.block: run for run in runs if run.bags}
    trivial = np.array([facts[block].trivial for block in blocks])
    room = trivial - np.array([losses.get((LABELS, block), np.nan) for block in blocks])
    room = np.where(room > LEAST_ROOM * trivial, room, np.nan)  # where labels teach nothing either
    known, standings = competitors(), []

    def median(values: Any) -> float:
        finite = [value for value in values if np.isfinite(value)]
        if not finite:
            return np.nan
        return float(np.median(finite))

    for name, loss, rank in zip(whole, table, ranks, strict=True):
        own = [by[name, block] for block in blocks]
        standing = Standing(
            name,
            getattr(known.get(name), "title", name),
            rank=float(rank.mean()),
            wins=int((rank == 1).sum()),
            way=median((trivial - loss) / room),
            auc=median([np.mean([run.test_auc for run in block]) for block in own]),
            seconds=median([run.seconds for block in own for run in block]),
            refused=int(np.isnan(loss).sum()),
        )
        standings.append(standing)
    chance = np.nan
    if len(ranks) > 2 and len(blocks) > 1:
        chance = float(friedmanchisquare(*ranks).pvalue)
    critical = critical_difference(len(whole), len(blocks))
    standings.sort(key=lambda standing: standing.rank)
    return Leaderboard(standings, blocks, losses, critical, chance, facts)


def critical_difference(methods: int, blocks: int) -> float:
    """Of mean ranks, by Nemenyi at the level of 5 per cent.

    Parameters
    ----------
    methods, blocks : int
        How many were ranked, and how often.

    >>> round(critical_difference(5, 30), 3)  # 2.728 sqrt(5 * 6 / 180), Demsar's table
    1.114
    """
    q = float(studentized_range.ppf(1 - LEVEL, methods, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def write_leaderboard(board: Leaderboard, folder: Path, *, line: str = "") -> list[Path]:
    """Write `leaderboard.md`, `leaderboard.tex` and `ranks.svg`.

    Parameters
    ----------
    board : Leaderboard
        What the runs say.
    folder : Path
        Made where it does not exist.
    line : str
        The command that made the runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words = f"Friedman's test: p = {board.chance:.2g}. Critical difference: {board.critical:.2f}."
    page = ["# Leaderboard\n", f"Made by `{line}`.\n" if line else "", board.markdown()]
    rule = " ".join(str(Leaderboard.__doc__).split("\n\n")[1].split())
    page += [f"{words} {rule}\n", "![Mean ranks](ranks.svg)\n", "## Mean test loss\n"]
    texts = {"leaderboard.md": "\n".join([*page, board.losses_markdown()])}
    texts["leaderboard.tex"] = board.latex()
    for name, text in texts.items():
        (folder / name).write_text(text)
    figure = new_figure(6.4, 0.35 * len(board.standings) + 0.9)
    half = board.critical / 2
    draw_intervals(
        figure.subplots(),
        [Interval(s.title, s.rank, s.rank - half, s.rank + half) for s in board.standings],
        x="mean rank; methods whose bars overlap do not differ by more than chance",
    )
    return [*(folder / name for name in texts), save_figure(figure, folder / "ranks")]
