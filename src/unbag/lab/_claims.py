"""Results of a store in, a verdict on each claim out: the paper's and ours, with the numbers behind
it.

A claim that A is the best is supported when at no bag size another method is better by more than
one standard error of the (paired) difference, and A is the best at most of the sizes; "as far as
run" when some of the methods or sizes were not run, and one repetition decides nothing. That A is
not the best is supported when another is better by more than one standard error at some size; it is
undecided when none is and A is not clearly the best. "Small" bags are 2 to 32, "large" ones 256 to
1024: the paper gives no borders. A result is trivial when it is less than a tenth of the way from
the trivial predictor to the best with bags of one. Where we have fewer than half of the paper's
rows, its claims are not comparable. Numbers are the best over rate and epoch, mean and standard
error over repetitions; a star marks what was found in the last epoch or at an end of the rates, so
that more may be had. Many sizes are compared, by few repetitions: some differences of more than one
standard error are chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from unbag.lab._choice import ALL, Chosen
from unbag.lab._methods import Way
from unbag.lab._plan import Experiment
from unbag.lab._results import (
    METRICS,
    Found,
    Metric,
    Runs,
    best_cells,
    experiments_of,
    found_of,
    full_runs,
)
from unbag.lab._tasks import TASKS
from unbag.lab._variance import Spread

SMALL, LARGE = (2, 4, 8, 16, 32), (256, 512, 1024)
BATCH_TASKS = ("mnist", "cifar-animal", "cifar-cat", "higgs", "adult")
PM, EASY, UPM = Way("matching", "log"), Way("easy", "log"), Way("upm", "log")
PAPERS, OURS = (PM, EASY, UPM), Way("anchored", "square")
SUPPORTED, NOT_SUPPORTED, NOT_RUN, NOT_COMPARABLE = (
    "supported",
    "not supported",
    "not yet run",
    "not comparable",
)
IN_PART, ONCE, UNDECIDED = "supported as far as run", "run once only", "undecided"


class Verdict(NamedTuple):
    """What the runs say of one claim in one experiment."""

    whose: str
    claim: str
    where: str
    verdict: str
    numbers: str


Compared = dict[tuple[Way, int], tuple[float, float]]


class Cells(NamedTuple):
    """The best results of one experiment, by method and bag size."""

    metric: Metric
    best: dict[tuple[Way, int], Found]
    bags: dict[int, int]
    trivial: float

    def compared(self, a: Way, others: Sequence[Way], among: Sequence[int]) -> Compared:
        """By how much a is worse than each other one at each bag size, and the standard error,
        where both were run."""
        pairs = [
            (b, k) for k in among for b in others if (a, k) in self.best and (b, k) in self.best
        ]
        gaps = {(b, k): self.best[a, k].minus(self.best[b, k]) for b, k in pairs}
        sign = 1 if self.metric == "test_loss" else -1
        return {pair: (sign * gap, error) for pair, (gap, error) in gaps.items()}


def judge(
    everything: Sequence[Runs], spreads: Sequence[Spread] = (), choices: Sequence[Chosen] = ()
) -> list[Verdict]:
    """Every claim in every experiment of the five batch tasks (and of further tasks for our own
    claims)."""
    binary = {r.experiment.task for r in everything if np.isfinite(r.test_auc).any()}
    tasks = [*BATCH_TASKS, *sorted(binary - set(BATCH_TASKS))]
    verdicts: list[Verdict] = []
    for task in tasks:
        experiments = [
            experiment for experiment in experiments_of(everything) if experiment.task == task
        ]
        told: list[Verdict] = []
        for experiment in experiments or [None]:
            mine = full_runs(everything, experiment)
            told += _of_paper(task, experiment, mine) if task in BATCH_TASKS else []
            chosen = [choice for choice in choices if choice.experiment == experiment]
            told += _of_ours(task, experiment, mine, chosen)
        verdicts += _said_once(told, _title(task, None))
        verdicts += (
            [_spread(task, [s for s in spreads if s.task == task])] if task in BATCH_TASKS else []
        )
    return sorted(verdicts, key=lambda v: (v.whose == "ours", v.claim))


def _said_once(told: Sequence[Verdict], task: str) -> list[Verdict]:
    """Without what one experiment did not run, where another of the task tells; where none does,
    that is said once."""
    judged = {verdict.claim for verdict in told if verdict.numbers}
    missing = {v.claim: v._replace(where=task) for v in told if v.claim not in judged}
    return [verdict for verdict in told if verdict.numbers] + list(missing.values())


def _cells(mine: Sequence[Runs], metric: Metric) -> Cells:
    return Cells(
        metric,
        best_cells(mine, metric),
        {r.size: r.bags for r in mine},
        mine[0].trivial if mine else np.nan,
    )


def _of_paper(task: str, experiment: Experiment | None, mine: Sequence[Runs]) -> Iterator[Verdict]:
    title, comparable = _title(task, experiment), _comparable(task, mine)
    for metric in METRICS.values():
        by = "log loss" if metric == "test_loss" else "AUC"
        cells = _cells(mine, metric)
        claims: list[tuple[str, tuple[str, str]]] = [
            (f"PM is best at small bag sizes ({by})", _is_best(cells, PM, (EASY, UPM), SMALL)),
            (f"bags of 2048 give a trivial result with every method ({by})", _is_trivial(cells)),
        ]
        if task == "mnist":
            large = _is_not_best(cells, UPM, (PM, EASY), LARGE)
            claims.append((f"on MNIST GeneralUPM is not best at large bag sizes ({by})", large))
        else:
            large = _is_best(cells, UPM, (PM, EASY), LARGE)
            claims.append(
                (f"GeneralUPM is better than PM and EasyLLP at large bag sizes ({by})", large)
            )
        for claim, (verdict, numbers) in claims:
            verdict = NOT_COMPARABLE if not comparable and verdict != NOT_RUN else verdict
            yield Verdict("paper", claim, title, verdict, numbers)


def _of_ours(
    task: str, experiment: Experiment | None, mine: Sequence[Runs], choices: Sequence[Chosen]
) -> Iterator[Verdict]:
    title, cells = _title(task, experiment), _cells(mine, "test_loss")
    claim = (
        "anchored with the square loss is not worse than PM, EasyLLP or GeneralUPM at any bag size"
    )
    yield Verdict("ours", claim, title, *_is_not_worse(cells, OURS, PAPERS))
    claim = "method, rate and epoch chosen from held-out bags are not worse than the best single method chosen so"
    yield Verdict("ours", claim, title, *_choice_is_good(choices))


def _title(task: str, experiment: Experiment | None) -> str:
    return experiment.title if experiment else TASKS[task].title if task in TASKS else task


def _comparable(task: str, mine: Sequence[Runs]) -> bool:
    rows = max((runs.bags * runs.size for runs in mine), default=0)
    return rows >= (TASKS[task].paper_rows or 0) / 2


def _is_best(cells: Cells, a: Way, others: Sequence[Way], among: Sequence[int]) -> tuple[str, str]:
    worse = cells.compared(a, others, among)
    if not worse:
        return NOT_RUN, ""
    sizes = {k for _, k in worse}
    beaten = any(gap > error for gap, error in worse.values())
    first = [k for k in sizes if all(gap < 0 for (_, size), (gap, _) in worse.items() if size == k)]
    good = not beaten and len(first) > len(sizes) / 2
    return _verdict(good, worse, others, among), _show(cells, a, worse)


def _is_not_best(
    cells: Cells, a: Way, others: Sequence[Way], among: Sequence[int]
) -> tuple[str, str]:
    best, numbers = _is_best(cells, a, others, among)
    if best in (NOT_RUN, ONCE):
        return best, numbers
    beaten = any(gap > error for gap, error in cells.compared(a, others, among).values())
    return SUPPORTED if beaten else NOT_SUPPORTED if best == SUPPORTED else UNDECIDED, numbers


def _verdict(good: bool, worse: Compared, others: Sequence[Way], among: Sequence[int]) -> str:
    """What may be said of a comparison with others, if all of them are there and there is an error
    to measure with."""
    if not all(np.isfinite(error) for _, error in worse.values()):
        return ONCE
    every = len(worse) == len(others) * len(among)
    return NOT_SUPPORTED if not good else SUPPORTED if every else IN_PART


def _is_not_worse(cells: Cells, a: Way, others: Sequence[Way]) -> tuple[str, str]:
    sizes = sorted(cells.bags)
    worse = cells.compared(a, others, sizes)
    if not worse:
        return NOT_RUN, ""
    beaten = {pair: w for pair, w in worse.items() if w[0] > w[1]}
    if not beaten:
        return _verdict(True, worse, others, sizes), _show(cells, a, worse)
    told = [
        f"k={k}: {gap:.4f} ± {error:.4f} above {b.title}" for (b, k), (gap, error) in beaten.items()
    ]
    return NOT_SUPPORTED, f"{'; '.join(told)} ({len({k for _, k in worse})} sizes run)"


def _is_trivial(cells: Cells) -> tuple[str, str]:
    ways = [way for way in PAPERS if (way, 2048) in cells.best]
    at_one = [found.mean for (_, size), found in cells.best.items() if size == 1]
    if len(ways) < len(PAPERS) or not at_one:
        return NOT_RUN, ""
    trivial, good = (
        (cells.trivial, min(at_one)) if cells.metric == "test_loss" else (0.5, max(at_one))
    )
    share = {way: (trivial - cells.best[way, 2048].mean) / (trivial - good) for way in ways}
    told = [f"{way.title} {cells.best[way, 2048]} ({share[way]:.0%} of the way)" for way in ways]
    verdict = SUPPORTED if max(share.values()) < 0.1 else NOT_SUPPORTED
    return (
        verdict,
        (
            f"trivial {trivial:.4f}, bags of one {good:.4f}, {cells.bags[2048]} bags: "
            f"{', '.join(told)}"
        ),
    )


def _choice_is_good(choices: Sequence[Chosen]) -> tuple[str, str]:
    told, bad, once = [], False, False
    for size, holdout in sorted(
        {(choice.size, choice.holdout) for choice in choices if choice.among == ALL}
    ):
        here = [choice for choice in choices if (choice.size, choice.holdout) == (size, holdout)]
        names = [
            name
            for name in dict.fromkeys(choice.among for choice in here)
            if " smoothed by " not in name
        ]
        found = {name: found_of(here, name) for name in names}
        chosen = found.pop(ALL)
        name, best = min(found.items(), key=lambda pair: pair[1].mean)
        gap, error = chosen.minus(best)
        bad, once = bad or gap > error, once or not np.isfinite(error)
        told.append(f"k={size}: chosen {chosen}, {Way.read(name).title} {best}")
    if not told:
        return NOT_RUN, ""
    return NOT_SUPPORTED if bad else ONCE if once else SUPPORTED, "; ".join(told)


def _spread(task: str, spreads: Sequence[Spread]) -> Verdict:
    claim = "the variance of GeneralUPM's estimate from one bag does not grow with the bag size"
    many = [s for s in spreads if s.size > 1]
    if len(many) < 2:
        return Verdict("paper", claim, TASKS[task].title, NOT_RUN, "")
    upm = [s.upm for s in many]
    told = ", ".join(f"k={s.size}: {s.upm:.3f} (EasyLLP {s.easy:.3f})" for s in many)
    verdict = SUPPORTED if max(upm) < 1.5 * min(upm) else NOT_SUPPORTED
    return Verdict(
        "paper", claim, TASKS[task].title, verdict, f"standard deviation between bags, {told}"
    )


def _show(cells: Cells, a: Way, worse: Compared) -> str:
    ways: Callable[[int], list[Way]] = lambda k: [a, *(b for b, size in worse if size == k)]
    line: Callable[[int], str] = lambda k: ", ".join(
        f"{way.title} {cells.best[way, k]}" for way in ways(k)
    )
    return "; ".join(
        f"k={k} ({cells.bags[k]} bags): {line(k)}" for k in dict.fromkeys(k for _, k in worse)
    )


def as_markdown(verdicts: Sequence[Verdict]) -> str:
    """The claims as a table."""
    lines = ["| whose | claim | where | verdict | numbers |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {' | '.join(verdict)} |" for verdict in verdicts), ""])
