"""The paper's claims, and ours, each with a verdict.

"Small" bags are 2 to 32 and "large" ones 256 to 1024: the paper gives no borders. Numbers are the
best over rate and epoch on test, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from unbag.lab._catalogue import TASKS, Way, has_papers_network, title_of
from unbag.lab._choice import ALL, BagDeviation, Chosen
from unbag.lab._markup import as_markdown
from unbag.lab._plan import BATCH, Experiment
from unbag.lab._results import (
    Average,
    BestCells,
    Metric,
    Runs,
    average_of,
    cells_of,
    experiments_of,
)

LARGE = (256, 512, 1024)
SMALL = (2, 4, 8, 16, 32)
REPETITIONS, ERRORS = 5, 2.0
SUPPORTED, NOT_SUPPORTED, UNDECIDED = "supported", "not supported", "undecided"
NOT_RUN, NOT_COMPARABLE = "not yet run", "not comparable"


class ClaimVerdict(NamedTuple):
    """What the runs say of one claim.

    A comparison decides when both methods were repeated at least five times, the best of each lies
    inside the grid of rates and epochs, their mean paired difference is beyond two standard errors,
    and the better one beats the trivial predictor by as much. A claim that a method is the best is
    supported where it is decided for it at every bag size, and not supported where it is decided
    against it at some and for it at none; otherwise it is undecided, and the reason stands beside
    it. Runs with another network than the paper's, with fewer repetitions or with fewer rows are
    not comparable with it, whatever they show. Steps in bfloat16 and batches that are smaller than
    the paper's, but have as many bags as its have at bags of 1,024, are named beside the verdict.
    """

    whose: str
    claim: str
    where: str
    verdict: str
    numbers: str


Judgement = tuple[str, str]  # a verdict and its numbers


class Duel(NamedTuple):
    """One method against another at a bag size.

    Parameters
    ----------
    size : int
        Of the bags.
    lead : float
        By how much the first is better, with its standard error.
    error : float
        Of the lead.
    repetitions : int
        That both have.
    edge : str
        Whose best lies at an end of the rates or in the last epoch; empty when nobody's.
    useful : bool
        Whether the better one beats the trivial predictor beyond two standard errors.
    """

    size: int
    lead: float
    error: float
    repetitions: int
    edge: str = ""
    useful: bool = True

    @property
    def doubt(self) -> str:
        """Why it decides nothing; empty when it does."""
        if self.repetitions < REPETITIONS:
            return f"{self.repetitions} repetitions"
        if self.edge:
            return EDGE
        if not abs(self.lead) > ERRORS * self.error:
            return "no difference beyond two standard errors"
        if not self.useful:
            return "nobody beats the trivial predictor"
        return ""

    @property
    def winner(self) -> int:
        """1 for the first, -1 for the other, 0 when nothing is decided."""
        if self.doubt:
            return 0
        return 1 if self.lead > 0 else -1


def duel_of(size: int, pair: Mapping[Way, Average], sign: int, trivial: float) -> Duel:
    """One method against another at a bag size; a positive sign means that higher is better."""
    first, second = pair.values()
    gap, error = first.minus(second)
    winner = (first, second)[not sign * gap > 0]
    useful = bool(sign * (winner.mean - trivial) > ERRORS * winner.error)
    both = set(first.repetitions) & set(second.repetitions)
    edges = [way.title for way, average in pair.items() if average.edge]
    return Duel(size, sign * gap, error, len(both), " and ".join(edges), useful)


def is_best(duels: Sequence[Duel], sizes: Sequence[int], *, never: bool = False) -> Judgement:
    """Whether the first method is better than every other at each of the sizes.

    Parameters
    ----------
    duels : sequence of Duel
        Of the first method against others.
    sizes : sequence of int
        Of the bags.
    never : bool
        Whether to ask instead if at each of the sizes some other method is better than the first.
    """
    if not duels:
        return NOT_RUN, ""
    score: dict[int, int] = {}
    reasons: dict[str, list[str]] = {}
    for k in sizes:
        there = [duel for duel in duels if duel.size == k]
        score[k] = min((duel.winner for duel in there), default=0) * (1 - 2 * never)
        doubts = [(d.doubt, d.edge) for d in there if d.doubt]
        reason, edge = (*doubts, ("not run", ""))[0]
        if not score[k]:
            reasons.setdefault(reason, []).append(f"{k}{f' ({edge})' * (reason == EDGE)}")
    parts = [
        f"{word} at {', '.join(str(k) for k in sizes if score[k] == value)}"
        for word, value in (("for it", 1), ("against it", -1))
        if value in score.values()
    ]
    # Why sizes decide nothing, each reason once.
    parts += [f"undecided at {', '.join(there)}: {why}" for why, there in reasons.items()]
    verdict = UNDECIDED
    if set(score.values()) == {1}:
        verdict = SUPPORTED
    elif min(score.values()) < 0 and max(score.values()) < 1:
        verdict = NOT_SUPPORTED
    return verdict, "; ".join(parts)


EDGE = "a best at an end of the rates or in the last epoch"


def verdict_table(verdicts: Sequence[ClaimVerdict], *, says: str = "the paper says") -> str:
    """Verdicts as a numbered table.

    Parameters
    ----------
    verdicts : sequence of ClaimVerdict
        One for each row.
    says : str
        What the column of the claims is called.
    """
    rows = [[str(i), *verdict[1:]] for i, verdict in enumerate(verdicts, 1)]
    return as_markdown(["", says, "where", "verdict", "we see"], rows)


BATCH_TASKS = ("adult", "mnist", "cifar-animal", "cifar-cat", "higgs")
PM, EASY, UPM = Way("matching", "log"), Way("easy", "log"), Way("upm", "log")
PAPERS, OURS = (PM, EASY, UPM), Way("anchored", "square")
ENOUGH = 0.9  # of the paper's rows
LARGEST = 2048


def _duels(cells: BestCells, a: Way, others: Sequence[Way], sizes: Sequence[int]) -> list[Duel]:
    """One method against all others, at the sizes that all of them have."""
    sign = {"test_loss": -1, "test_auc": 1}[cells.metric]
    there = [k for k in sizes if all((way, k) in cells.best for way in (a, *others))]
    return [
        duel_of(k, {way: cells.best[way, k] for way in (a, other)}, sign, cells.trivial)
        for k, other in product(there, others)
    ]


class PaperClaim(NamedTuple):
    """What the paper says of one method against others, at some bag sizes.

    `never` : that another one is better at each of them.
    """

    text: str
    method: Way
    others: Sequence[Way]
    sizes: Sequence[int]
    never: bool = False


BEST_SMALL = PaperClaim("PM has the lowest loss at small bag sizes", PM, (EASY, UPM), SMALL)
BEST_LARGE = PaperClaim(
    "GeneralUPM has a lower loss than PM and EasyLLP at large bag sizes", UPM, (PM, EASY), LARGE
)
NOT_ON_MNIST = BEST_LARGE._replace(
    text="GeneralUPM does not have the lowest loss at large bag sizes", never=True
)


def judge(everything: Sequence[Runs]) -> list[ClaimVerdict]:
    """The paper's eleven claims on the batch experiments.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    """
    large = dict.fromkeys(BATCH_TASKS, BEST_LARGE) | {"mnist": NOT_ON_MNIST}
    verdicts = []
    for task, claim in (*((task, BEST_SMALL) for task in BATCH_TASKS), *large.items()):
        verdict, numbers = _on_task(everything, task, "test_loss", claim)
        if verdict not in (NOT_RUN, NOT_COMPARABLE):
            numbers += f". By AUC: {_on_task(everything, task, 'test_auc', claim)[0]}"
        verdicts.append(ClaimVerdict("paper", claim.text, title_of(task), verdict, numbers))
    return [*verdicts, _all_trivial(everything)]


def _on_task(everything: Sequence[Runs], task: str, metric: Metric, claim: PaperClaim) -> Judgement:
    """By the runs that come nearest to the paper's, at each size."""
    _, a, others, sizes, never = claim
    ours = [cells for cells in _experiments(everything, task, metric) if cells.rows]
    ran = {k: [(cells, _duels(cells, a, others, (k,))) for cells in ours] for k in sizes}
    ran = {k: [pair for pair in pairs if pair[1]] for k, pairs in ran.items()}
    if not any(ran.values()):
        return NOT_RUN, ""
    reason = _obstacle([(cells, k) for k, pairs in ran.items() for cells, _ in pairs])
    if reason:
        return NOT_COMPARABLE, reason
    duels, nearest = [], {}
    for k, pairs in ran.items():
        fit = [pair for pair in pairs if not _obstacle([(pair[0], k)])]
        if fit:
            nearest[k], there = max(fit, key=lambda pair: _evidence(*pair))
            duels += there
    verdict, reason = is_best(duels, sizes, never=never)
    ends = dict.fromkeys([min(nearest), max(nearest)])  # from the runs that were judged there
    shown = {k: [f"{way.title} {nearest[k].best[way, k]}" for way in (a, *others)] for k in ends}
    numbers = "; ".join(f"at {k} {', '.join(own)}" for k, own in shown.items())
    other = dict.fromkeys(e.details for e in (c.experiment for c in nearest.values()) if _rough(e))
    return verdict, f"{reason} ({numbers})" + "".join(f"; run with {words}" for words in other)


def _rough(e: Experiment) -> bool:
    """Whether steps are rounded, or batches smaller than the paper's."""
    return e.batch != BATCH or e.model != TASKS[e.task].model


def _evidence(cells: BestCells, duels: Sequence[Duel]) -> tuple[int, int, bool]:
    """Enough repetitions first, then bests inside the grid, then the paper's own steps."""
    repeated = [duel for duel in duels if duel.repetitions >= REPETITIONS]
    return len(repeated), sum(not duel.edge for duel in duels), not _rough(cells.experiment)


def _experiments(everything: Sequence[Runs], task: str, metric: Metric) -> list[BestCells]:
    """Those of a task with all bags, the longest first."""
    known = [e for e in experiments_of(everything) if e.task == task]
    known.sort(key=lambda experiment: -experiment.epochs)
    return [cells_of(everything, experiment, metric) for experiment in known]


def _obstacle(ran: Sequence[tuple[BestCells, int]]) -> str:
    """Why none of these experiments is the paper's at its bag size; empty when one is."""
    task = TASKS[ran[0][0].experiment.task]
    reasons = []
    for cells, k in ran:
        e, wanted = cells.experiment, task.paper_rows or 0
        most = max(len(average.repetitions) for average in cells.best.values())
        its_network = has_papers_network(e.task, e.model)
        papers = {
            task.model: its_network,
            "the usual start": e.start == "usual",
            f"batches of {BATCH}": e.batch <= BATCH,
        }
        other = " and ".join(words for words, same in papers.items() if not same)
        reason = ""
        if other:
            reason = f"run with {e.details}; the paper has {other}"
        elif cells.rows < ENOUGH * wanted:
            reason = f"{cells.rows:,} of the paper's {wanted:,} rows"
        elif most < REPETITIONS:
            reason = f"{most} repetitions of {e.details}"
        if not reason:
            return ""
        reasons.append((its_network, reason))
    return max(reasons)[1]  # the nearest to the paper


def _all_trivial(everything: Sequence[Runs]) -> ClaimVerdict:
    """Bags of 2048: one method that clearly beats the trivial predictor speaks against it."""
    claim = "bags of 2048 give a trivial result, on all data and with every method"
    fit, numbers = [], []
    for task in BATCH_TASKS:
        for cells in _experiments(everything, task, "test_loss"):
            there = [way for way in PAPERS if (way, LARGEST) in cells.best]
            if there and not _obstacle([(cells, LARGEST)]):
                way = min(there, key=lambda way: cells.best[way, LARGEST].mean)
                best = cells.best[way, LARGEST]
                fit.append(best.mean + ERRORS * best.error < cells.trivial)
                facts = f"{way.title} {best}, trivial {cells.trivial:.4f}"
                numbers.append(f"{title_of(task)}, {cells.experiment.epochs} epochs: {facts}")
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

    def breadth(cells: BestCells) -> tuple[int, int, int]:
        """Enough repetitions first, then how much was run of what is compared, then the epochs."""
        most = max(len(cell.repetitions) for cell in cells.best.values())
        compared = sum(way in (*PAPERS, OURS) for way, _ in cells.best)
        return min(most, REPETITIONS), compared, cells.experiment.epochs

    verdicts = [_spread(spreads)]
    for task in sorted({r.experiment.task for r in everything if np.isfinite(r.test_auc).any()}):
        cells = max(_experiments(everything, task, "test_loss"), key=breadth)
        chosen = [choice for choice in choices if choice.experiment.task == task]
        e, own = cells.experiment, (_is_not_worse(cells), _choice_is_good(chosen))
        verdicts.append(ClaimVerdict("ours", NOT_WORSE, e.title, *own[0]))
        verdicts.append(ClaimVerdict("ours", CHOSEN_WELL, e.data, *own[1]))
    return [verdict for verdict in verdicts if verdict.verdict != NOT_RUN]


NOT_WORSE = "anchored with the square loss is worse than PM, EasyLLP or GeneralUPM at no bag size"
CHOSEN_WELL = "what held-out bags choose is not worse than the best single method chosen so"


def _is_not_worse(cells: BestCells) -> Judgement:
    """One size against it is enough."""
    sizes = sorted({size for _, size in cells.best})
    others = [way for way in PAPERS if any((way, k) in cells.best for k in sizes)]
    duels = _duels(cells, OURS, others, sizes)
    verdict, reason = is_best(duels, sorted({duel.size for duel in duels}))
    if not duels:
        return verdict, reason
    if any(duel.winner < 0 for duel in duels):
        return NOT_SUPPORTED, reason
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
