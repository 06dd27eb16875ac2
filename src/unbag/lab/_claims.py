"""The paper's claims and ours, each with a verdict and the numbers behind it.

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

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from unbag.lab._choice import ALL, Chosen
from unbag.lab._methods import Way
from unbag.lab._plan import Experiment, title_of
from unbag.lab._results import (
    Average,
    Metric,
    Runs,
    average_of,
    best_cells,
    experiments_of,
    full_runs,
)
from unbag.lab._tasks import TASKS
from unbag.lab._variance import BagDeviation
from unbag.lab._verdicts import (
    IN_PART,
    LARGE,
    NOT_COMPARABLE,
    NOT_RUN,
    NOT_SUPPORTED,
    ONCE,
    SUPPORTED,
    UNDECIDED,
    Judgement,
    Verdict,
)

SMALL = (2, 4, 8, 16, 32)
BATCH_TASKS = ("mnist", "cifar-animal", "cifar-cat", "higgs", "adult")
PM, EASY, UPM = Way("matching", "log"), Way("easy", "log"), Way("upm", "log")
PAPERS, OURS = (PM, EASY, UPM), Way("anchored", "square")
Gaps = dict[tuple[Way, int], tuple[float, float]]
"""By how much a method is worse than another at a bag size, and the standard error."""


class Comparison(NamedTuple):
    """The best results of one experiment, by method and bag size."""

    metric: Metric
    best: dict[tuple[Way, int], Average]
    bags: dict[int, int]
    trivial: float

    def gaps(self, a: Way, others: Sequence[Way], among: Sequence[int]) -> Gaps:
        """By how much a is worse than each other one at each bag size where both were run."""
        sign = {"test_loss": 1, "test_auc": -1}[self.metric]
        gaps: Gaps = {}
        for k, b in product(among, others):
            if (a, k) in self.best and (b, k) in self.best:
                gap, error = self.best[a, k].minus(self.best[b, k])
                gaps[b, k] = (sign * gap, error)
        return gaps


def judge(
    everything: Sequence[Runs], spreads: Sequence[BagDeviation] = (), choices: Sequence[Chosen] = ()
) -> list[Verdict]:
    """Every claim in every experiment of the five batch tasks, our own ones of further tasks too.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    spreads : sequence of BagDeviation
        What was measured of the variance.
    choices : sequence of Chosen
        What held-out bags chose.
    """
    binary = {r.experiment.task for r in everything if np.isfinite(r.test_auc).any()}
    verdicts: list[Verdict] = []
    for task in (*BATCH_TASKS, *sorted(binary - set(BATCH_TASKS))):
        experiments = [e for e in experiments_of(everything) if e.task == task]
        judged: list[Verdict] = []
        for experiment in experiments or [None]:
            mine = full_runs(everything, experiment)
            if task in BATCH_TASKS:
                judged += _of_paper(task, experiment, mine)
            chosen = [choice for choice in choices if choice.experiment == experiment]
            judged += _of_ours(task, experiment, mine, chosen)
        verdicts += _said_once(judged, title_of(task))
        if task in BATCH_TASKS:
            verdicts.append(_spread(task, [s for s in spreads if s.task == task]))
    return sorted(verdicts, key=lambda v: (v.whose == "ours", v.claim))


def _said_once(judged: Sequence[Verdict], task: str) -> list[Verdict]:
    """Without what one experiment did not run, where another of the task did; where none did, that
    is said once."""
    claims = {verdict.claim for verdict in judged if verdict.numbers}
    missing = {v.claim: v._replace(where=task) for v in judged if v.claim not in claims}
    return [verdict for verdict in judged if verdict.numbers] + list(missing.values())


def _comparison(mine: Sequence[Runs], metric: Metric) -> Comparison:
    bags, trivial = {r.size: r.bags for r in mine}, np.nan
    if mine:
        trivial = mine[0].trivial
    return Comparison(metric, best_cells(mine, metric), bags, trivial)


def _of_paper(task: str, experiment: Experiment | None, mine: Sequence[Runs]) -> Iterator[Verdict]:
    rows = max((runs.bags * runs.size for runs in mine), default=0)
    comparable = rows >= (TASKS[task].paper_rows or 0) / 2
    names: dict[Metric, str] = {"test_loss": "log loss", "test_auc": "AUC"}
    for metric, by in names.items():
        cells = _comparison(mine, metric)
        claims: dict[str, Judgement] = {
            "PM is best at small bag sizes": _is_best(cells, PM, (EASY, UPM), SMALL),
            "bags of 2048 give a trivial result with every method": _is_trivial(cells),
        }
        if task == "mnist":
            large = _is_not_best(cells, UPM, (PM, EASY), LARGE)
            claims["on MNIST GeneralUPM is not best at large bag sizes"] = large
        else:
            large = _is_best(cells, UPM, (PM, EASY), LARGE)
            claims["GeneralUPM is better than PM and EasyLLP at large bag sizes"] = large
        for claim, (verdict, numbers) in claims.items():
            if not comparable and verdict != NOT_RUN:
                verdict = NOT_COMPARABLE
            yield Verdict("paper", f"{claim} ({by})", _title(task, experiment), verdict, numbers)


def _of_ours(
    task: str, experiment: Experiment | None, mine: Sequence[Runs], choices: Sequence[Chosen]
) -> Iterator[Verdict]:
    title, cells = _title(task, experiment), _comparison(mine, "test_loss")
    claim = (
        "anchored with the square loss is not worse than PM, EasyLLP or GeneralUPM at any bag size"
    )
    yield Verdict("ours", claim, title, *_is_not_worse(cells, OURS, PAPERS))
    claim = (
        "method, rate and epoch chosen from held-out bags are not worse than the best single "
        "method chosen so"
    )
    yield Verdict("ours", claim, title, *_choice_is_good(choices))


def _title(task: str, experiment: Experiment | None) -> str:
    if experiment is None:
        return title_of(task)
    return experiment.title


def _is_best(cells: Comparison, a: Way, others: Sequence[Way], among: Sequence[int]) -> Judgement:
    worse = cells.gaps(a, others, among)
    if not worse:
        return NOT_RUN, ""
    sizes = {k for _, k in worse}
    first = [k for k in sizes if all(gap < 0 for (_, size), (gap, _) in worse.items() if size == k)]
    good = not _beaten(worse) and len(first) > len(sizes) / 2
    return _verdict(good, worse, len(others) * len(among)), _show(cells, a, worse)


def _is_not_best(
    cells: Comparison, a: Way, others: Sequence[Way], among: Sequence[int]
) -> Judgement:
    best, numbers = _is_best(cells, a, others, among)
    if best in (NOT_RUN, ONCE):
        return best, numbers
    if _beaten(cells.gaps(a, others, among)):
        return SUPPORTED, numbers
    return {SUPPORTED: NOT_SUPPORTED}.get(best, UNDECIDED), numbers


def _beaten(worse: Gaps) -> Gaps:
    """Where the other one is better by more than a standard error."""
    return {pair: (gap, error) for pair, (gap, error) in worse.items() if gap > error}


def _verdict(good: bool, worse: Gaps, wanted: int) -> str:
    """What may be said of comparisons, of which `wanted` would be all."""
    if not all(np.isfinite(error) for _, error in worse.values()):
        return ONCE
    if not good:
        return NOT_SUPPORTED
    if len(worse) < wanted:
        return IN_PART
    return SUPPORTED


def _is_not_worse(cells: Comparison, a: Way, others: Sequence[Way]) -> Judgement:
    sizes = sorted(cells.bags)
    worse = cells.gaps(a, others, sizes)
    if not worse:
        return NOT_RUN, ""
    beaten = _beaten(worse)
    if not beaten:
        return _verdict(True, worse, len(others) * len(sizes)), _show(cells, a, worse)
    numbers = [
        f"k={k}: {gap:.4f} ± {error:.4f} above {b.title}" for (b, k), (gap, error) in beaten.items()
    ]
    return NOT_SUPPORTED, f"{'; '.join(numbers)} ({len({k for _, k in worse})} sizes run)"


def _is_trivial(cells: Comparison) -> Judgement:
    ways = [way for way in PAPERS if (way, 2048) in cells.best]
    at_one = [average.mean for (_, size), average in cells.best.items() if size == 1]
    if len(ways) < len(PAPERS) or not at_one:
        return NOT_RUN, ""
    trivial, good = 0.5, max(at_one)
    if cells.metric == "test_loss":
        trivial, good = cells.trivial, min(at_one)
    share = {way: (trivial - cells.best[way, 2048].mean) / (trivial - good) for way in ways}
    numbers = [f"{way.title} {cells.best[way, 2048]} ({share[way]:.0%} of the way)" for way in ways]
    facts = f"trivial {trivial:.4f}, bags of one {good:.4f}, {cells.bags[2048]} bags"
    return _supported(max(share.values()) < 0.1), f"{facts}: {', '.join(numbers)}"


def _supported(good: bool) -> str:
    return (NOT_SUPPORTED, SUPPORTED)[bool(good)]


def _choice_is_good(choices: Sequence[Chosen]) -> Judgement:
    numbers, gaps = [], []
    for where in sorted({(c.size, c.holdout) for c in choices if c.among == ALL}):
        here = [c for c in choices if (c.size, c.holdout) == where]
        names = [name for name in dict.fromkeys(c.among for c in here) if " smoothed" not in name]
        averages = {name: average_of(here, name) for name in names}
        chosen = averages.pop(ALL)
        name, best = min(averages.items(), key=lambda pair: pair[1].mean)
        gaps.append(chosen.minus(best))
        numbers.append(f"k={where[0]}: chosen {chosen}, {Way.read(name).title} {best}")
    if not numbers:
        return NOT_RUN, ""
    if any(gap > error for gap, error in gaps):
        return NOT_SUPPORTED, "; ".join(numbers)
    if not all(np.isfinite(error) for _, error in gaps):
        return ONCE, "; ".join(numbers)
    return SUPPORTED, "; ".join(numbers)


def _spread(task: str, spreads: Sequence[BagDeviation]) -> Verdict:
    claim = "the variance of GeneralUPM's estimate from one bag does not grow with the bag size"
    many = [s for s in spreads if s.size > 1]
    if len(many) < 2:
        return Verdict("paper", claim, TASKS[task].title, NOT_RUN, "")
    upm = [s.upm for s in many]
    numbers = ", ".join(f"k={s.size}: {s.upm:.3f} (EasyLLP {s.easy:.3f})" for s in many)
    verdict = _supported(max(upm) < 1.5 * min(upm))
    facts = f"standard deviation between bags, {numbers}"
    return Verdict("paper", claim, TASKS[task].title, verdict, facts)


def _show(cells: Comparison, a: Way, worse: Gaps) -> str:
    parts = []
    for k in dict.fromkeys(k for _, k in worse):
        ways = [a, *(b for b, size in worse if size == k)]
        numbers = ", ".join(f"{way.title} {cells.best[way, k]}" for way in ways)
        parts.append(f"k={k} ({cells.bags[k]} bags): {numbers}")
    return "; ".join(parts)
