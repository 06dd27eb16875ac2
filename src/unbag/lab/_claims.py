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
    """What the runs show of one claim, a verdict, and why.

    A comparison decides when both methods were repeated at least five times, the best of each lies
    inside the grid of rates and epochs, their mean paired difference is beyond two standard errors,
    and the better one beats the trivial predictor by as much. A claim that a method is the best is
    supported where it is decided for it at every bag size, and not supported where it is decided
    against it at half of them or more and for it at none; otherwise it is undecided, and the reason
    stands beside it. Runs with another network than the paper's, with fewer repetitions or with
    fewer rows are not comparable with it, whatever they show; the table says what they show all the
    same. Batches may be smaller than the paper's: they hold at least four bags, as its own do at
    bags of 1,024. These and steps in bfloat16 are named. That a method is not worse is supported
    where no size is decided against it and each difference decides or, with enough repetitions and
    inside the grid, is within two standard errors.
    """

    whose: str
    claim: str
    where: str
    sees: str
    verdict: str
    why: str


class Judgement(NamedTuple):
    """What the runs show, a verdict, and why; the claim itself stands elsewhere."""

    sees: str
    verdict: str
    why: str = ""


def _times(repetitions: int) -> str:
    return f"{repetitions} repetition{'s' * (repetitions != 1)}"


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
        if not self.repetitions:
            return "not run"
        if self.repetitions < REPETITIONS:
            return _times(self.repetitions)
        if self.edge:
            return EDGE
        if not abs(self.lead) > ERRORS * self.error:
            return LEVEL
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
        return Judgement("", NOT_RUN)
    score: dict[int, int] = {}
    reasons: dict[str, list[str]] = {}
    for k in sizes:
        there = [duel for duel in duels if duel.size == k]
        score[k] = min((duel.winner for duel in there), default=0) * (1 - 2 * never)
        doubts = [(d.doubt, d.edge) for d in there if d.doubt]
        reason, edge = (*doubts, ("not run as in the paper", ""))[0]
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
    elif max(score.values()) < 1 and -2 * sum(score.values()) >= len(sizes):
        verdict = NOT_SUPPORTED
    return Judgement("", verdict, "; ".join(parts))


EDGE = "a best at an end of the rates or in the last epoch"
LEVEL = "no difference beyond two standard errors"


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
    return as_markdown(["", says, "where", "we see", "verdict", "why"], rows)


READINGS = {"higgs": ("higgs", "higgs-all")}  # the paper does not say which features it takes
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
        there = _nearest(everything, task, "test_loss", claim)
        found = _decided(there, claim)
        if found.verdict not in (NOT_RUN, NOT_COMPARABLE):
            by_auc = _decided(_nearest(everything, task, "test_auc", claim), claim)
            found = found._replace(why=f"{found.why}. By AUC: {by_auc.why or by_auc.verdict}")
        if there:
            found = found._replace(sees=_leaders(there, (claim.method, *claim.others)))
        where = ", or ".join(title_of(reading) for reading in READINGS.get(task, (task,)))
        verdicts.append(ClaimVerdict("paper", claim.text, where, *found))
    return [*verdicts, _all_trivial(everything)]


class Nearest(NamedTuple):
    """Of all experiments with some bag size the one that is nearest to the paper's.

    Parameters
    ----------
    cells : BestCells
        Of the experiment.
    duels : list of Duel
        Of the claim's method against others, at this size.
    obstacle : str
        Why it is not the paper's; empty when it is.
    """

    cells: BestCells
    duels: list[Duel]
    obstacle: str

    def place(self) -> tuple:
        """The paper's experiment goes first, and of several those with enough repetitions and bests
        inside the grid; then its network, start and rows; then its own steps, and the longer."""
        e, evidence = self.cells.experiment, (0, 0)
        if not self.obstacle:
            repeated = [duel.repetitions >= REPETITIONS for duel in self.duels]
            evidence = (sum(repeated), sum(not duel.edge for duel in self.duels))
        rows = self.cells.rows / (TASKS[e.task].paper_rows or self.cells.rows)
        share = min(round(rows, 2), 1.0)  # the last rows fill no bag
        likeness = (has_papers_network(e.task, e.model), e.start == "usual", share)
        return not self.obstacle, *evidence, *likeness, not _is_rough(e), e.epochs


def _nearest(
    everything: Sequence[Runs], task: str, metric: Metric, claim: PaperClaim
) -> dict[int, Nearest]:
    """At each of the claim's bag sizes the runs that come nearest to the paper's; of all, where
    none are the paper's."""
    there: dict[int, Nearest] = {}
    for k, cells in product(claim.sizes, _experiments(everything, task, metric)):
        duels = _duels(cells, claim.method, claim.others, (k,))
        if duels:
            one = Nearest(cells, duels, _obstacle(cells, min(duel.repetitions for duel in duels)))
            there[k] = max(there.get(k, one), one, key=Nearest.place)
    fit = {k: one for k, one in there.items() if not one.obstacle}
    return fit or there


def _decided(there: Mapping[int, Nearest], claim: PaperClaim) -> Judgement:
    """What these runs decide."""
    if not there:
        return Judgement("", NOT_RUN)
    first = max(there.values(), key=Nearest.place)
    if first.obstacle:
        return Judgement("", NOT_COMPARABLE, first.obstacle)
    duels = [duel for one in there.values() for duel in one.duels]
    return is_best(duels, claim.sizes, never=claim.never)


def _leaders(there: Mapping[int, Nearest], ways: Sequence[Way]) -> str:
    """Who has the lowest mean at which bag sizes, with the two best at the least and the largest,
    and of which runs they are; errors are in `best.csv`."""
    best = {k: one.cells.best for k, one in there.items()}
    order = {
        k: sorted((way for way in ways if (way, k) in own), key=lambda way: own[way, k].mean)
        for k, own in best.items()
    }
    parts: list[str] = []
    runs: dict[str, list[str]] = {}
    for way in dict.fromkeys(first for first, *_ in order.values()):
        sizes = [str(k) for k, (first, *_) in order.items() if first == way]
        parts.append(f"{way.title} at {', '.join(sizes)}")
    numbers = []
    for k in dict.fromkeys((min(there), max(there))):
        means = [best[k][way, k].mean for way in order[k][:2]]
        digits = 3 + (f"{means[0]:.3f}" == f"{means[-1]:.3f}")
        both = zip(order[k], means, strict=False)
        leaders = " before ".join(f"{way.title} {mean:.{digits}f}" for way, mean in both)
        numbers.append(f"at {k} {leaders}")
    for k, one in there.items():
        e = one.cells.experiment
        words = e.title if any(e.task in tasks for tasks in READINGS.values()) else e.details
        runs.setdefault(words, []).append(str(k))
    shown = list(runs)
    if len(runs) > 1:
        shown = [f"{own} at {', '.join(sizes)}" for own, sizes in runs.items()]
    text = f"lowest mean: {'; '.join(parts)} ({'; '.join(numbers)}; {'; '.join(shown)})"
    idle = [str(k) for k, own in best.items() if own[order[k][0], k].mean >= there[k].cells.trivial]
    if idle:
        text += f". Nobody is better than the trivial predictor at {', '.join(idle)}"
    return text


def _is_rough(e: Experiment) -> bool:
    """Whether steps are rounded, or batches smaller than the paper's."""
    return e.batch != BATCH or e.model != TASKS[e.task].model


def _experiments(everything: Sequence[Runs], task: str, metric: Metric) -> list[BestCells]:
    """Those of a task with all bags, the longest first."""
    known = [e for e in experiments_of(everything) if e.task in READINGS.get(task, (task,))]
    known.sort(key=lambda experiment: -experiment.epochs)
    return [cells_of(everything, experiment, metric) for experiment in known]


def _obstacle(cells: BestCells, repetitions: int) -> str:
    """Why an experiment with so many repetitions is not the paper's; empty when it is."""
    e, task = cells.experiment, TASKS[cells.experiment.task]
    wanted = task.paper_rows or 0
    papers = {
        task.model: has_papers_network(e.task, e.model),
        "the usual start": e.start == "usual",
        f"batches of {BATCH}": e.batch <= BATCH,
    }
    other = " and ".join(words for words, same in papers.items() if not same)
    if other:
        return f"the paper has {other}"
    if cells.rows < ENOUGH * wanted:
        return f"{cells.rows:,} of the paper's {wanted:,} rows"
    if repetitions < REPETITIONS:
        return _times(repetitions)
    return ""


def _all_trivial(everything: Sequence[Runs]) -> ClaimVerdict:
    """Bags of 2048: one method that clearly beats the trivial predictor speaks against it."""
    claim = "bags of 2048 give a trivial result, on all data and with every method"
    fit: dict[str, bool] = {}
    sees = []
    for task in BATCH_TASKS:
        for cells in _experiments(everything, task, "test_loss"):
            there = {
                way: cells.best[way, LARGEST] for way in PAPERS if (way, LARGEST) in cells.best
            }
            there = {w: a for w, a in there.items() if not _obstacle(cells, len(a.repetitions))}
            if there:
                way, best = min(there.items(), key=lambda pair: pair[1].mean)
                fit[task] = fit.get(task, False) or best.mean + ERRORS * best.error < cells.trivial
                facts = f"{way.title} {best}, trivial {cells.trivial:.4f}"
                e = cells.experiment
                sees.append(f"{e.data}, {e.epochs} epochs: {facts}")
    found = Judgement("", NOT_RUN, "not run as in the paper")
    if any(fit.values()):
        found = Judgement("; ".join(sees), NOT_SUPPORTED, "one that is not trivial is enough")
    elif fit:
        why = f"nobody beats the trivial predictor on {len(fit)} of {len(BATCH_TASKS)} data sets"
        found = Judgement("; ".join(sees), UNDECIDED, why)
    return ClaimVerdict("paper", claim, "all data", *found)


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

    # Of runs with all bags where there are some.
    runs = sorted(everything, key=lambda runs: -runs.holdout)
    verdicts, trivial = [_spread(spreads)], {r.experiment: r.trivial for r in runs}
    for task in sorted({r.experiment.task for r in everything if np.isfinite(r.test_auc).any()}):
        cells = max(_experiments(everything, task, "test_loss"), key=breadth)
        chosen = [choice for choice in choices if choice.experiment.task == task]
        e, own = cells.experiment, (_is_not_worse(cells), _choice_is_good(chosen, trivial))
        verdicts.append(ClaimVerdict("ours", NOT_WORSE, e.data, *own[0]))
        verdicts.append(ClaimVerdict("ours", CHOSEN_WELL, e.data, *own[1]))
    return [verdict for verdict in verdicts if verdict.verdict != NOT_RUN]


NOT_WORSE = "anchored with the square loss is worse than PM, EasyLLP or GeneralUPM at no bag size"
CHOSEN_WELL = "what held-out bags choose is not worse than the best single method chosen so"


def _is_not_worse(cells: BestCells) -> Judgement:
    """One size against it is enough."""
    duels = []
    for k in sorted({size for way, size in cells.best if way == OURS}):
        others = [way for way in PAPERS if (way, k) in cells.best]
        if others:
            duels += _duels(cells, OURS, others, (k,))
            # One that was not run decides nothing, as on a stream.
            duels += [Duel(k, np.nan, np.nan, 0)] * (len(others) < len(PAPERS))
    both = sorted({duel.size for duel in duels})
    found = is_best(duels, both)
    if not duels:
        return found
    verdict = SUPPORTED
    if any(duel.winner < 0 for duel in duels):
        verdict = NOT_SUPPORTED
    elif any(duel.doubt not in ("", LEVEL) for duel in duels):
        verdict = UNDECIDED
    sees = _leaders(dict.fromkeys(both, Nearest(cells, duels, "")), (OURS, *PAPERS))
    return Judgement(sees, verdict, found.why)


def _choice_is_good(choices: Sequence[Chosen], trivial: Mapping[Experiment, float]) -> Judgement:
    """By the bag sizes and held-out shares of each experiment of a task."""
    sees, gaps, idle, runs = [], [], [], []
    for where in sorted({c[:3] for c in choices if c.among == ALL}):
        (experiment, size, _), here = where, [c for c in choices if c[:3] == where]
        names = [name for name in dict.fromkeys(c.among for c in here) if " smoothed" not in name]
        averages = {name: average_of(here, name) for name in names}
        chosen = averages.pop(ALL)
        name, best = min(averages.items(), key=lambda pair: pair[1].mean)
        gaps.append((*chosen.minus(best), len(chosen.values)))
        level = trivial.get(experiment, np.nan)
        idle += [str(size)] * (not chosen.mean + ERRORS * chosen.error < level)
        sees.append(f"at {size} {chosen}, {Way.read(name).title} {best}")
        runs.append(f"trivial {level:.4f}; {experiment.details}")
    if not sees:
        return Judgement("", NOT_RUN)
    facts = "; ".join([*sees, *dict.fromkeys(runs)])
    text = f"chosen, and the best single method: {facts}"
    if any(gap > ERRORS * error and n >= REPETITIONS for gap, error, n in gaps):
        return Judgement(text, NOT_SUPPORTED, "worse beyond two standard errors")
    if min(count for *_, count in gaps) < REPETITIONS:
        return Judgement(text, UNDECIDED, "too few repetitions")
    if idle:
        why = f"what is chosen is not better than the trivial predictor at {', '.join(idle)}"
        return Judgement(text, UNDECIDED, why)
    return Judgement(text, SUPPORTED, "nowhere worse beyond two standard errors")


STEADY = 1.5


def _spread(spreads: Sequence[BagDeviation]) -> ClaimVerdict:
    """Lemma 3.1 is an upper bound; that the deviation stays level is more."""
    largest = max((spread.size for spread in spreads), default=0)
    claim = (
        "the standard deviation of GeneralUPM's estimate from one bag is about the same for bags "
        f"of 2 and of {largest}"
    )
    sees, level = [], []
    for task in dict.fromkeys(s.task for s in spreads):
        mine = sorted((s for s in spreads if s.task == task and s.size > 1), key=lambda s: s.size)
        first, last = mine[0], mine[-1]
        level.append(max(s.upm for s in mine) < STEADY * min(s.upm for s in mine))
        sees.append(
            f"{title_of(task)}: {first.upm:.3f} at {first.size}, {last.upm:.3f} at {last.size} "
            f"(EasyLLP {first.easy:.3f}, {last.easy:.3f})"
        )
    found = Judgement("", NOT_RUN)
    if sees:
        verdict = SUPPORTED if all(level) else NOT_SUPPORTED
        words = "everywhere" if all(level) else "not everywhere"
        why = f"the largest is below {STEADY} times the smallest {words}"
        found = Judgement("; ".join(sees), verdict, why)
    return ClaimVerdict("theory", claim, "Lemma 3.1", *found)
