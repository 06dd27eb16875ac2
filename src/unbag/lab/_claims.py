"""The paper's claims on the batch experiments, and ours, each with a verdict; see `_verdicts`.

"Small" bags are 2 to 32 and "large" ones 256 to 1024: the paper gives no borders. Numbers are the
best over rate and epoch on test, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unbag.lab._choice import ALL, Chosen
from unbag.lab._methods import Way
from unbag.lab._plan import BATCH
from unbag.lab._results import (
    BestCells,
    Metric,
    Runs,
    average_of,
    cells_of,
    duel_of,
    experiments_of,
)
from unbag.lab._tasks import TASKS, title_of
from unbag.lab._variance import BagDeviation
from unbag.lab._verdicts import (
    ERRORS,
    LARGE,
    NOT_COMPARABLE,
    NOT_RUN,
    NOT_SUPPORTED,
    REPETITIONS,
    SMALL,
    SUPPORTED,
    UNDECIDED,
    ClaimVerdict,
    Duel,
    Judgement,
    is_beaten,
    is_best,
)

BATCH_TASKS = ("adult", "mnist", "cifar-animal", "cifar-cat", "higgs")
PM, EASY, UPM = Way("matching", "log"), Way("easy", "log"), Way("upm", "log")
PAPERS, OURS = (PM, EASY, UPM), Way("anchored", "square")
ENOUGH = 0.9  # of the paper's rows
LARGEST = 2048
Rule = Callable[[Sequence[Duel], Sequence[int]], Judgement]


def _duel(cells: BestCells, a: Way, b: Way, size: int) -> Duel:
    """One method against another."""
    first, second = cells.best[a, size], cells.best[b, size]
    sign = {"test_loss": -1, "test_auc": 1}[cells.metric]
    winner = first
    if sign * first.minus(second)[0] <= 0:
        winner = second
    clear = sign * (winner.mean - cells.trivial) > ERRORS * winner.error
    return duel_of(size, {a: first, b: second}, sign, useful=bool(clear))


def _duels(cells: BestCells, a: Way, others: Sequence[Way], sizes: Sequence[int]) -> list[Duel]:
    """One method against all others, at the sizes that all of them have."""
    there = [k for k in sizes if all((way, k) in cells.best for way in (a, *others))]
    return [_duel(cells, a, b, k) for k in there for b in others]


def judge(everything: Sequence[Runs]) -> list[ClaimVerdict]:
    """The paper's eleven claims on the batch experiments.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    """
    verdicts = []
    for task in BATCH_TASKS:
        claim = "PM has the lowest loss at small bag sizes"
        verdicts.append(_by_both(everything, task, claim, is_best, PM, (EASY, UPM), SMALL))
    for task in BATCH_TASKS:
        rule, claim = is_best, "GeneralUPM has a lower loss than PM and EasyLLP at large bag sizes"
        if task == "mnist":
            rule, claim = is_beaten, "GeneralUPM does not have the lowest loss at large bag sizes"
        verdicts.append(_by_both(everything, task, claim, rule, UPM, (PM, EASY), LARGE))
    return [*verdicts, _all_trivial(everything)]


def _by_both(
    everything: Sequence[Runs],
    task: str,
    claim: str,
    rule: Rule,
    a: Way,
    others: Sequence[Way],
    sizes: Sequence[int],
) -> ClaimVerdict:
    """The verdict by log loss; what AUC says stands beside it."""
    by_loss, by_auc = (
        _on_task(everything, task, metric, rule, a, others, sizes)
        for metric in ("test_loss", "test_auc")
    )
    verdict, numbers = by_loss
    if verdict not in (NOT_RUN, NOT_COMPARABLE):
        numbers += f". By AUC: {by_auc[0]}"
    return ClaimVerdict("paper", claim, title_of(task), verdict, numbers)


def _on_task(
    everything: Sequence[Runs],
    task: str,
    metric: Metric,
    rule: Rule,
    a: Way,
    others: Sequence[Way],
    sizes: Sequence[int],
) -> Judgement:
    """By the runs that come nearest to the paper's, at each size."""
    ours = [cells for cells in _experiments(everything, task, metric) if cells.rows]
    ran = [cells for cells in ours if _duels(cells, a, others, sizes)]
    if not ran:
        return NOT_RUN, ""
    reason = _obstacle(ran)
    if reason:
        return NOT_COMPARABLE, reason
    fit = [cells for cells in ran if not _obstacle([cells])]
    duels = []
    for k in sizes:
        candidates = [_duels(cells, a, others, (k,)) for cells in fit]
        duels += max(candidates, key=_evidence, default=[])
    verdict, reason = rule(duels, sizes)
    return verdict, f"{reason} ({_shown(fit[0], (a, *others), sizes)})"


def _evidence(duels: Sequence[Duel]) -> tuple[int, int]:
    """Enough repetitions first, then bests inside the grid."""
    repeated = [duel for duel in duels if duel.repetitions >= REPETITIONS]
    return len(repeated), sum(not duel.edge for duel in duels)


def _experiments(everything: Sequence[Runs], task: str, metric: Metric) -> list[BestCells]:
    """Those of a task with all bags, the longest first."""
    known = [e for e in experiments_of(everything) if e.task == task]
    known.sort(key=lambda experiment: -experiment.epochs)
    return [cells_of(everything, experiment, metric) for experiment in known]


def _obstacle(ran: Sequence[BestCells]) -> str:
    """Why none of these experiments is the paper's; empty when one is."""
    task = TASKS[ran[0].experiment.task]
    reasons = []
    for cells in ran:
        e, wanted = cells.experiment, task.paper_rows or 0
        most = max(len(average.repetitions) for average in cells.best.values())
        reason = ""
        if (e.model, e.start, e.batch) != (task.model, "usual", BATCH):
            reason = f"run with {e.details}; the paper has {task.model}"
        elif cells.rows < ENOUGH * wanted:
            reason = f"{cells.rows:,} of the paper's {wanted:,} rows"
        elif most < REPETITIONS:
            reason = f"{most} repetitions of {e.details}"
        if not reason:
            return ""
        reasons.append((e.model == task.model, reason))
    return max(reasons)[1]  # the nearest to the paper


def _shown(cells: BestCells, ways: Sequence[Way], sizes: Sequence[int]) -> str:
    """The numbers of the smallest and the largest size."""
    there = [k for k in sizes if all((way, k) in cells.best for way in ways)]
    ends = dict.fromkeys([*there[:1], *there[-1:]])
    return "; ".join(
        f"at {k} " + ", ".join(f"{way.title} {cells.best[way, k]}" for way in ways) for k in ends
    )


def _all_trivial(everything: Sequence[Runs]) -> ClaimVerdict:
    """Bags of 2048: one method that clearly beats the trivial predictor speaks against it."""
    claim = "bags of 2048 give a trivial result, on all data and with every method"
    fit, numbers = [], []
    for task in BATCH_TASKS:
        for cells in _experiments(everything, task, "test_loss"):
            there = [way for way in PAPERS if (way, LARGEST) in cells.best]
            if there and not _obstacle([cells]):
                way = min(there, key=lambda way: cells.best[way, LARGEST].mean)
                best = cells.best[way, LARGEST]
                fit.append(best.mean + ERRORS * best.error < cells.trivial)
                facts = f"{way.title} {best}, trivial {cells.trivial:.4f}"
                numbers.append(f"{title_of(task)}: {facts}")
    where = "all data"
    if not fit:
        return ClaimVerdict("paper", claim, where, NOT_RUN, "not run as in the paper")
    verdict = NOT_SUPPORTED if any(fit) else UNDECIDED
    return ClaimVerdict("paper", claim, where, verdict, "; ".join(numbers))


def judge_ours(
    everything: Sequence[Runs], spreads: Sequence[BagDeviation], choices: Sequence[Chosen]
) -> list[ClaimVerdict]:
    """Our own claims on every task, and the paper's on the variance of an estimate.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    spreads : sequence of BagDeviation
        What was measured of the variance.
    choices : sequence of Chosen
        What held-out bags chose.
    """
    verdicts = [_spread(spreads)]
    for task in sorted({r.experiment.task for r in everything if np.isfinite(r.test_auc).any()}):
        known = _experiments(everything, task, "test_loss")
        chosen = [choice for choice in choices if choice.experiment.task == task]
        verdicts += _of_ours(max(known, key=_breadth), chosen)
    return [verdict for verdict in verdicts if verdict.verdict != NOT_RUN]


def _breadth(cells: BestCells) -> tuple[int, int]:
    """Repetitions first, then how much was run."""
    return max(len(cell.repetitions) for cell in cells.best.values()), len(cells.best)


def _of_ours(cells: BestCells, choices: Sequence[Chosen]) -> Iterator[ClaimVerdict]:
    title, data = cells.experiment.title, cells.experiment.data
    sizes = sorted({size for _, size in cells.best})
    others = [way for way in PAPERS if any((way, k) in cells.best for k in sizes)]
    claim = "anchored with the square loss is worse than PM, EasyLLP or GeneralUPM at no bag size"
    duels = _duels(cells, OURS, others, sizes)
    there = sorted({duel.size for duel in duels})
    yield ClaimVerdict("ours", claim, title, *_is_not_worse(duels, there))
    claim = "what held-out bags choose is not worse than the best single method chosen so"
    yield ClaimVerdict("ours", claim, data, *_choice_is_good(choices))


def _is_not_worse(duels: Sequence[Duel], sizes: Sequence[int]) -> Judgement:
    """One size against it is enough."""
    _, reason = is_best(duels, sizes)
    if any(duel.winner < 0 for duel in duels):
        return NOT_SUPPORTED, reason
    if not duels:
        return NOT_RUN, ""
    if any(duel.edge or duel.repetitions < REPETITIONS for duel in duels):
        return UNDECIDED, reason
    return SUPPORTED, reason


def _choice_is_good(choices: Sequence[Chosen]) -> Judgement:
    numbers, gaps = [], []
    for where in sorted({(c.size, c.holdout) for c in choices if c.among == ALL}):
        here = [c for c in choices if (c.size, c.holdout) == where]
        names = [name for name in dict.fromkeys(c.among for c in here) if " smoothed" not in name]
        averages = {name: average_of(here, name) for name in names}
        chosen = averages.pop(ALL)
        name, best = min(averages.items(), key=lambda pair: pair[1].mean)
        gaps.append((*chosen.minus(best), len(chosen.values)))
        numbers.append(f"k={where[0]}: chosen {chosen}, {Way.read(name).title} {best}")
    if not numbers:
        return NOT_RUN, ""
    verdict = SUPPORTED
    if any(gap > ERRORS * error for gap, error, _ in gaps):
        verdict = NOT_SUPPORTED
    elif min(count for *_, count in gaps) < REPETITIONS:
        verdict = UNDECIDED
    return verdict, "; ".join(numbers)


def _spread(spreads: Sequence[BagDeviation]) -> ClaimVerdict:
    claim = "the variance of GeneralUPM's estimate from one bag does not grow with the bag size"
    numbers, level = [], []
    for task in dict.fromkeys(s.task for s in spreads):
        mine = sorted((s for s in spreads if s.task == task and s.size > 1), key=lambda s: s.size)
        first, last = mine[0], mine[-1]
        level.append(max(s.upm for s in mine) < 1.5 * min(s.upm for s in mine))
        numbers.append(
            f"{title_of(task)}: {first.upm:.3f} at {first.size}, {last.upm:.3f} at {last.size} "
            f"(EasyLLP {first.easy:.3f}, {last.easy:.3f})"
        )
    verdict = NOT_RUN
    if numbers:
        verdict = SUPPORTED if all(level) else NOT_SUPPORTED
    facts = f"standard deviation between bags. {'; '.join(numbers)}"
    return ClaimVerdict("theory", claim, "Lemma 3.1", verdict, facts)
