"""What the paper reports: the lowest over rate and epoch of the mean over repetitions, with its
error.

Beside it what a user can get: rate and epoch chosen from held-out bags, and what that costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from unbag.lab._catalogue import WAYS, Way, curve_of
from unbag.lab._markup import as_markdown
from unbag.lab._plan import Experiment

if TYPE_CHECKING:
    from unbag.lab._choice import Chosen
    from unbag.lab._store import RunStore


Metric = Literal["test_loss", "test_auc"]
METRICS: dict[str, Metric] = {"log-loss": "test_loss", "auc": "test_auc"}


class Runs(NamedTuple):
    """Runs of one experiment with one method and bag size; arrays by (repetition, rate, epoch), NaN
    after divergence.

    Every repetition has every rate: where the store has more of either, the larger rectangle of
    runs counts. Of the rates that it leaves out, `worse` has those that were worse than one of its
    own in every repetition that has them, with the metric: an end of the rates is then no end.
    """

    experiment: Experiment
    way: Way
    size: int
    smoothing: float
    holdout: float
    bags: int
    trivial: float
    repetitions: tuple[int, ...]
    rates: tuple[float, ...]
    test_loss: np.ndarray
    test_auc: np.ndarray
    choice: np.ndarray
    worse: tuple[tuple[Metric, float], ...] = ()

    def part(self, repetitions: Sequence[int], rates: Sequence[float]) -> Runs:
        """Only these repetitions and rates."""
        s = [self.repetitions.index(each) for each in repetitions]
        where = np.ix_(s, [self.rates.index(each) for each in rates])
        return self._replace(
            repetitions=tuple(self.repetitions[i] for i in s),
            rates=tuple(float(rate) for rate in rates),
            test_loss=self.test_loss[where],
            test_auc=self.test_auc[where],
            choice=self.choice[where],
            worse=(),
        )


class Average(NamedTuple):
    """A number of a figure: the mean over repetitions, its standard error, and where it is from.

    `values` has one per repetition; `rate` and `epoch` are NaN and 0 where each repetition has its
    own. `edge` says that more may be had, because this is the last epoch or an end of the rates; a
    star shows it.
    """

    mean: float
    error: float
    values: np.ndarray
    repetitions: tuple[int, ...]
    rate: float = np.nan
    epoch: int = 0
    edge: bool = False

    def __str__(self) -> str:
        error = f" ± {self.error:.4f}" * bool(np.isfinite(self.error))
        return f"{self.mean:.4f}{error}{'*' * self.edge}"

    def minus(self, other: Average) -> tuple[float, float]:
        """The mean difference and its standard error, by repetitions in common: these had the same
        rows in bags."""
        mine, others = (dict(zip(x.repetitions, x.values, strict=True)) for x in (self, other))
        gap = np.array([mine[s] - others[s] for s in mine if s in others])
        return mean_and_error(gap)

    def p_value(self, other: Average) -> float:
        """Of a two-sided paired t test that both are alike; NaN with fewer than two
        repetitions in common."""
        from scipy.stats import t

        gap, error = self.minus(other)
        common = len(set(self.repetitions) & set(other.repetitions))
        if not error > 0:
            return np.nan
        return float(2 * t.sf(abs(gap / error), common - 1))


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean over repetitions and its standard error, NaN where there are too few."""
    if len(values) == 0:
        return np.nan, np.nan
    if len(values) == 1:
        return float(values[0]), np.nan
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


# what runs that are shown together have in common
COMMON = (*Experiment._fields, "method", "loss", "size", "smoothing", "holdout")


def read_runs(store: RunStore, *, task: str | None = None) -> list[Runs]:
    """Everything in a store, in a fixed order.

    Parameters
    ----------
    store : RunStore
        The runs.
    task : str, optional
        Only those of a task.
    """
    which = {} if task is None else {"task": task}
    facts = ("bags", "trivial", "test_loss", "test_auc", "choice")
    table = store.runs(facts, **which)
    table = table.sort_by([(name, "ascending") for name in (*COMMON, "repetition", "rate")])
    keys = zip(*(table[name].to_pylist() for name in COMMON), strict=True)
    runs, start = [], 0
    for key, rows in groupby(keys):
        count = len(list(rows))
        runs.append(_runs(key, table.slice(start, count)))
        start += count
    return runs


def _runs(key: tuple, table: pa.Table) -> Runs:
    experiment, way, (size, smoothing, holdout) = Experiment(*key[:6]), Way(*key[6:8]), key[8:]
    repetitions, s = np.unique(table["repetition"].to_numpy(), return_inverse=True)
    rates, r = np.unique(table["rate"].to_numpy(), return_inverse=True)
    made = np.zeros((len(repetitions), len(rates)), bool)
    made[s, r] = True
    arrays = []
    for name in ("test_loss", "test_auc", "choice"):
        array = np.full((*made.shape, experiment.epochs), np.nan)
        for row, values in enumerate(table[name]):
            if values.is_valid and len(values):
                history = values.values.to_numpy(zero_copy_only=False)
                array[s[row], r[row], : len(history)] = history
        arrays.append(array)
    facts = (size, smoothing, holdout, table["bags"][0].as_py(), table["trivial"][0].as_py())
    axes = (tuple(repetitions.tolist()), tuple(rates.tolist()))
    runs = Runs(experiment, curve_of(way, smoothing), *facts, *axes, *arrays)
    # All repetitions and the rates that each has, or all rates and the repetitions that have each.
    long = (
        runs.repetitions,
        [rate for rate, every in zip(rates, made.T, strict=True) if every.all()],
    )
    wide = ([s for s, every in zip(repetitions, made, strict=True) if every.all()], runs.rates)
    kept = runs.part(*max(long, wide, key=_extent))
    return kept._replace(worse=tuple(_worse_rates(runs, kept.rates, made)))


def _extent(part: tuple[Sequence[int], Sequence[float]]) -> tuple[bool, int]:
    """How much of a grid repetitions and rates cover; a search for a rate, in one repetition, puts
    no repetitions out."""
    repetitions, rates = part
    return len(repetitions) > 1 and len(rates) > 0, len(repetitions) * len(rates)


def _worse_rates(
    runs: Runs, kept: Sequence[float], made: np.ndarray
) -> Iterator[tuple[Metric, float]]:
    """The rates that are not kept and, in each repetition that has them, worse than a kept one."""
    own = [rate in kept for rate in runs.rates]
    for metric in METRICS.values():
        best = np.nan_to_num(_losses(runs, metric), nan=np.inf).min(axis=2)
        worse = best > best[:, own].min(axis=1, keepdims=True)
        for place, rate in enumerate(runs.rates):
            if not own[place] and worse[made[:, place], place].all():
                yield metric, rate


def _losses(runs: Runs, metric: Metric) -> np.ndarray:
    """What is to be least."""
    return {"test_loss": runs.test_loss, "test_auc": -runs.test_auc}[metric]


def best_on_test(runs: Runs, metric: Metric = "test_loss") -> Average | None:
    """As the paper reports: the rate and epoch with the best mean over repetitions.

    Of a rate at which a repetition diverged, only the epochs before that count.

    Parameters
    ----------
    runs : Runs
        Of one experiment with one method and bag size.
    metric : {"test_loss", "test_auc"}
        What is to be best.

    Returns
    -------
    Average or None
        None when nothing is left.
    """
    mean = _losses(runs, metric).mean(axis=0)
    if not np.isfinite(mean).any():
        return None
    place, epoch = np.unravel_index(np.nanargmin(mean), mean.shape)
    rate, mine = runs.rates[place], getattr(runs, metric)[:, place, epoch]
    rates = [*runs.rates, *(each for which, each in runs.worse if which == metric)]
    last = np.isfinite(mean[place]).sum()  # some end early
    edge = bool(epoch + 1 == last or rate in (min(rates), max(rates)))
    return Average(*mean_and_error(mine), mine, runs.repetitions, rate, int(epoch) + 1, edge)


def average_of(choices: Sequence[Chosen], among: str) -> Average:
    """What a user can get: in each repetition what its held-out bags choose (`unbag.choose`) among
    some runs."""
    mine = sorted((c for c in choices if c.among == among), key=lambda choice: choice.repetition)
    values = np.array([c.test_loss for c in mine])
    return Average(*mean_and_error(values), values, tuple(c.repetition for c in mine))


class Price(NamedTuple):
    """What choosing from held-out bags costs in test loss, against the best on test with all
    bags."""

    runs: Runs
    best: Average
    chosen: Average
    fewer_bags: tuple[float, float]
    worse_choice: tuple[float, float]


def prices(everything: Sequence[Runs], choices: Sequence[Chosen]) -> list[Price]:
    """The price of choosing wherever runs with and without a holdout exist, split into fewer bags
    (best on test with and without a holdout) and worse choice (chosen against best on test).

    Only rates and repetitions that both have are compared.
    """
    where, costs = lambda runs: (runs.experiment, runs.way, runs.size, runs.smoothing), []
    without = {where(runs): runs for runs in everything if runs.holdout == 0}
    for held, full in ((h, without.get(where(h))) for h in everything if h.holdout):
        if full is None:
            continue
        own = (held.experiment, held.size, held.holdout)
        mine = [c for c in choices if c[:3] == own and c.among == str(held.way)]
        seeds = {choice.repetition for choice in mine} & set(full.repetitions)
        both = (
            [s for s in held.repetitions if s in seeds],
            [rate for rate in held.rates if rate in full.rates],
        )
        if not all(both):
            continue
        held, full = held.part(*both), full.part(*both)
        chosen = average_of(
            [choice for choice in mine if choice.repetition in seeds], str(held.way)
        )
        best, with_all = best_on_test(held), best_on_test(full)
        if best is not None and with_all is not None:
            costs.append(Price(held, with_all, chosen, best.minus(with_all), chosen.minus(best)))
    return costs


def in_order(ways: Sequence[Way]) -> list[Way]:
    """Ways in the order of figures: the paper's, ours, then yours."""
    known = [Way.named(text, kind) for kind, texts in WAYS.items() for text in texts]
    methods = [way.method for way in known]

    def place(way: Way) -> tuple:
        return [*known, way].index(way), [*methods, way.method].index(way.method), way

    return sorted(set(ways), key=place)


def best_rows(everything: Sequence[Runs]) -> list[dict[str, Any]]:
    """The table of all best results, one row per experiment, method, bag size, holdout and
    metric."""
    rows = []
    for runs, metric in product(everything, METRICS.values()):
        best = best_on_test(runs, metric)
        if best:
            facts = {"smoothing": runs.smoothing, "holdout": runs.holdout, "metric": metric}
            facts |= {"mean": f"{best.mean:.6f}", "standard_error": f"{best.error:.6f}"}
            facts |= {"rate": best.rate, "epoch": best.epoch}
            rows.append(_row(runs, facts) | {"trivial": f"{runs.trivial:.6f}"})
    return rows


def price_rows(costs: Sequence[Price]) -> list[dict[str, Any]]:
    """The table of prices."""
    rows = []
    for runs, best, chosen, fewer, worse in costs:
        facts = {"holdout": runs.holdout, "best_on_test_all_bags": str(best)}
        facts |= {"chosen_from_bags": str(chosen)}
        for name, (gap, error) in {"fewer_bags": fewer, "worse_choice": worse}.items():
            facts[name] = f"{gap:.4f} ± {error:.4f}"
        rows.append(_row(runs, facts))
    return rows


def _row(runs: Runs, facts: dict[str, Any]) -> dict[str, Any]:
    """Facts about runs between which runs they are and how many."""
    which = {**runs.experiment._asdict(), **runs.way._asdict(), "size": runs.size}
    count = {"repetitions": len(runs.repetitions), "rates": len(runs.rates)}
    return {**which, "bags": runs.bags, **facts, **count}


def experiments_of(everything: Sequence[Runs]) -> list[Experiment]:
    """Experiments with all bags; none of one repetition, as the search for a rate, where its task
    has others."""
    most: dict[Experiment, int] = {}
    for runs in everything:
        if not runs.holdout:
            most[runs.experiment] = max(most.get(runs.experiment, 0), len(runs.repetitions))
    repeated = {experiment.task for experiment, count in most.items() if count > 1}
    return sorted(e for e, count in most.items() if count > 1 or e.task not in repeated)


class BestCells(NamedTuple):
    """The best results of one experiment with all bags, by method and bag size.

    `trivial` is what a model without features reaches, `rows` how many rows were trained on, and
    `bags` how many bags there are of each size.
    """

    experiment: Experiment
    metric: Metric
    best: dict[tuple[Way, int], Average]
    trivial: float
    rows: int
    bags: dict[int, int]

    @property
    def learned(self) -> dict[tuple[Way, int], Average]:
        """Those that learned from bags."""
        return {where: a for where, a in self.best.items() if where[0].method != "labels"}

    @property
    def repetitions(self) -> str:
        """How many stand behind the means; from the fewest to the most where they differ."""
        counts = [len(average.repetitions) for average in self.best.values()]
        return " to ".join(str(n) for n in dict.fromkeys([min(counts), max(counts)]))

    @property
    def labels(self) -> Average | None:
        """What labels reach, if they were run."""
        return next((a for (way, _), a in self.best.items() if way.method == "labels"), None)


def cells_of(everything: Sequence[Runs], experiment: Experiment, metric: Metric) -> BestCells:
    """The best results of an experiment that has runs with all bags.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    experiment : Experiment
        Which of them.
    metric : {"test_loss", "test_auc"}
        What is to be best.
    """
    mine = [runs for runs in everything if runs.experiment == experiment and not runs.holdout]
    best = {(runs.way, runs.size): best_on_test(runs, metric) for runs in mine}
    known = {where: average for where, average in best.items() if average is not None}
    trivial = {"test_loss": mine[0].trivial, "test_auc": 0.5}[metric]
    rows = max(runs.bags * runs.size for runs in mine)
    bags = dict(sorted((runs.size, runs.bags) for runs in mine))
    return BestCells(experiment, metric, known, trivial, rows, bags)


def size_table(cells: Mapping[tuple[Way, int], Average]) -> tuple[list[int], list[list[str]]]:
    """Bag sizes, and of each method its title and its numbers."""
    sizes = sorted({size for _, size in cells})
    ways = in_order([way for way, _ in cells])
    return sizes, [[way.title, *(str(cells.get((way, k), "")) for k in sizes)] for way in ways]


def experiment_table(cells: BestCells) -> str:
    """Methods by bag sizes, in Markdown; the number of bags stands below each size."""
    sizes, rows = size_table(cells.best)
    if cells.metric == "test_loss":
        rows.append(["(trivial)", *([f"{cells.trivial:.4f}"] * len(sizes))])
    return _with_bags(sizes, rows, cells.bags)


def choice_table(
    everything: Sequence[Runs], choices: Sequence[Chosen], experiment: Experiment, holdout: float
) -> str:
    """The same for what held-out bags choose: among the rates of each method, and among all
    methods; test loss."""
    runs = [r for r in everything if r.experiment == experiment and r.holdout == holdout]
    mine = [c for c in choices if c.experiment == experiment and c.holdout == holdout]
    cells = {
        (Way.read(name), size): average_of([c for c in mine if c.size == size], name)
        for name, size in dict.fromkeys((c.among, c.size) for c in mine)
    }
    return _with_bags(*size_table(cells), {r.size: r.bags for r in runs})


def _with_bags(sizes: Sequence[int], rows: list[list[str]], bags: Mapping[int, int]) -> str:
    counts = ["number of bags", *(str(bags[k]) for k in sizes)]
    return as_markdown(["bags of", *map(str, sizes)], [counts, *rows])
