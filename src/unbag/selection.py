"""Runs (or models of any kind) and held-out bags in, the one to use out: chosen from bags alone,
with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, Kind
from unbag.losses import Loss
from unbag.metrics._evaluate import chosen_losses
from unbag.metrics._intervals import Estimate, interval
from unbag.metrics._leakage import check_apart
from unbag.metrics._paired import Judged, judge_all
from unbag.metrics._randomness import doubts, warn_of
from unbag.metrics._scores import is_array, scores_of
from unbag.metrics._sums import checked_scores, predict
from unbag.tournaments import tournament

PREFERRED = [
    ("anchored", loss) for loss in ("square", "brier", "poisson")
]  # unless another is better beyond doubt
LARGEST = 1e50  # a count beyond which squares overflow
CAUTION = 2.0  # standard errors that a candidate's loss is raised by before the lowest is taken


class Candidate(NamedTuple):
    """One of those to choose among; those of one group (a method) differ in learning rate, seed or
    the like."""

    name: str
    group: Any
    model: Any


class Compared(NamedTuple):
    """A candidate's loss and its paired difference to the chosen one, estimated from held-out bags;
    `labelled` is its loss on labelled test data where there are any."""

    name: str
    loss: Estimate
    difference: Estimate
    labelled: float | None = None


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    table : all candidates, best first. behind : how much worse on labelled test data than the best
        candidate there.
    notes : why the choice cannot be trusted, if so.
    """

    name: str
    model: Any = field(repr=False)
    reason: str
    table: list[Compared] = field(repr=False)
    bags: int
    behind: float | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"chosen from {self.bags} held-out bags: {self.name}. {self.reason}"]
        for row in self.table:
            labelled = "" if row.labelled is None else f"  labelled {row.labelled:.4f}"
            lines.append(f"  {row.name:<34} loss {row.loss}  difference {row.difference}{labelled}")
        if self.behind is not None:
            lines.append(f"  The best of them by labels is better by {self.behind:.4f}.")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def choose(
    candidates: Any,
    held_out: Bags,
    *,
    rule: Literal["paired", "tournament"] = "paired",
    loss: Loss | str | None = None,
    level: float = 0.95,
    beta: float = 0.05,
    scale: Literal["score", "probability"] | None = None,
    test: tuple[Any, Any] | None = None,
    trained_on: Bags | None = None,
) -> Choice:
    """Choose among trained models from held-out bags alone.

    Candidates are judged by their paired differences to the consensus of their predictions
    (`unbag.metrics._paired`). Within a method, the learning rate with the lowest loss plus two
    standard errors of that difference wins. Between methods anchored with the square loss stays, if
    it is among them, unless another's difference to it lies below 0 with its whole interval: with
    few bags nothing is certain, and a habit is better than a dice. Models that you name yourself
    are one group, without a habit. Bags that are not random choose badly: where predictions show
    that they are not, there is a warning (BagsNotRandom) and a note.

    Parameters
    ----------
    candidates : runs of `train` or `sweep` (lists in lists are fine), a mapping from names to
        models or scores, or a list of `Candidate`, which say to which group (method) they belong.
    rule : "paired", or "tournament" for the paper's tournament at this `beta`, with its guarantee.
    loss : what decides; by default the log loss (cross entropy, Poisson).
    level : of the intervals.
    scale : say "probability" when you give probabilities in place of scores.
    test : labelled features and labels, only ever to tell how far the choice is behind the best
        one. Scores of the held-out bags say nothing of them, so that candidates must then be
        models.
    trained_on : the bags that the models learned from, to make sure that none of them is held out.

    >>> from unbag import random_bags
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=40_000)
    >>> bags = random_bags(None, rng.uniform(size=40_000) < 1 / (1 + np.exp(-x)), size=20, seed=0)
    >>> print(choose({"half": x / 2, "right": x, "double": 2 * x, "wrong": -x}, bags))
    chosen from 2000 held-out bags: right. The lowest loss plus two standard errors.
      right                              loss 0.6012 [0.5822, 0.6203]  difference 0.0000 [0.0000,
      0.0000] half                               loss 0.6210 [0.6115, 0.6306]  difference 0.0198
      [0.0103, 0.0293] double                             loss 0.6583 [0.6204, 0.6963]  difference
      0.0571 [0.0381, 0.0761] wrong                              loss 1.0115 [0.9920, 1.0310]
      difference 0.4103 [0.3719, 0.4487]
    """
    judging: dict[str, Any] = {
        "loss": loss,
        "level": level,
        "scale": scale,
        "trained_on": trained_on,
    }
    found = choose_and_note(candidates, held_out, rule=rule, beta=beta, test=test, **judging)
    warn_of(found.notes)
    return found


def choose_and_note(
    candidates: Any,
    held_out: Bags,
    *,
    rule: str = "paired",
    loss: Loss | str | None = None,
    level: float = 0.95,
    beta: float = 0.05,
    scale: str | None = None,
    test: tuple[Any, Any] | None = None,
    trained_on: Bags | None = None,
) -> Choice:
    """The same without a warning, for those who print the notes."""
    listed = _listed(candidates)
    for candidate in listed:
        check_apart(candidate.model, held_out, trained_on)
    _check_test(listed, test)
    chosen_loss = chosen_losses(None if loss is None else [loss], held_out.kind)[0]
    score_on = lambda c, X: _column(
        scores_of(c.model, X, held_out.kind, scale, loss=chosen_loss), held_out.kind
    )
    scored = [(c, score_on(c, held_out.X)) for c in listed]
    good = [
        (c, checked_scores(score, held_out))
        for c, score in scored
        if _usable(score, held_out, chosen_loss)
    ]
    if not good:
        raise broken(
            "A candidate must have finite scores",
            f"none of {len(scored)} has",
            "Train with a lower rate.",
        )
    if rule not in ("paired", "tournament"):
        raise broken(
            "A rule must be paired or tournament", f"{rule!r} came", "Choose one of these."
        )
    listed, scores = [c for c, _ in good], [score for _, score in good]
    best = _best_of_groups(listed, scores, held_out, chosen_loss)
    consensus = _consensus([scores[i] for i in best.values()], held_out, chosen_loss)
    judged = judge_all(scores, held_out, consensus, chosen_loss)
    if rule == "tournament":
        winner, reason = _by_tournament(scores, held_out, chosen_loss, beta)
    else:
        winner, reason = _by_pairs(listed, best, judged, level)
    lost, wild = (
        len(scored) - len(good),
        f" or counts above {LARGEST:g}" if held_out.kind == "total" else "",
    )
    reason += (
        f" {lost} of {len(scored)} candidates predict NaN{wild} and are left out." if lost else ""
    )
    value = lambda c, X, y: float(np.mean(chosen_loss.value(score_on(c, X), y, kind=held_out.kind)))
    labelled = [None if test is None else value(c, *test) for c in listed]
    found = _told(listed, winner, reason, judged, labelled, int(held_out.observed.sum()), level)
    return replace(found, notes=doubts(consensus, held_out))


def _column(score: np.ndarray, kind: Kind) -> np.ndarray:
    """Scores that came as a table of one column, as one score per instance."""
    return score[:, 0] if kind != "histogram" and score.ndim == 2 and score.shape[1] == 1 else score


def _listed(candidates: Any) -> list[Candidate]:
    if isinstance(candidates, Sequence) and all(isinstance(one, Candidate) for one in candidates):
        listed = list(candidates)
    elif isinstance(candidates, Mapping):
        listed = [Candidate(str(name), "yours", model) for name, model in candidates.items()]
    else:
        listed = [_of_run(run) for run in _flat(candidates) if getattr(run, "epoch", 1) > 0]
    if not listed:
        raise broken(
            "There must be candidates to choose among",
            "none came",
            "Give runs, or a mapping of models.",
        )
    return listed


def _check_test(listed: Sequence[Candidate], test: Any) -> None:
    given = [candidate.name for candidate in listed if is_array(candidate.model)]
    if test is not None and given:
        raise broken(
            "A candidate must be a model where test= is given",
            f"{given[0]} came as scores, which are those of the held-out bags",
            "Give models, or leave test out.",
        )


def _flat(runs: Any) -> Iterable[Any]:
    if hasattr(runs, "history") or not isinstance(runs, Iterable):
        yield runs
        return
    for run in runs:
        yield from _flat(run)


def _of_run(run: Any) -> Candidate:
    if not hasattr(run, "learning_rate"):
        raise broken(
            "Candidates must be runs, or a mapping from names to models",
            f"a {type(run).__name__} came",
            "Name your models in a dict.",
        )
    method = (
        run.method if isinstance(run.method, str) else getattr(run.method, "__name__", "own method")
    )
    return Candidate(
        f"{method} {run.loss}, rate {run.learning_rate:g}, seed {run.seed}", (method, run.loss), run
    )


def _consensus(scores: Sequence[Any], held_out: Bags, loss: Loss) -> np.ndarray:
    """The mean of what they predict; for totals what their median score predicts, because a count
    has no upper bound and one wild candidate would carry a mean away."""
    if held_out.kind == "total":
        return predict(np.median(scores, axis=0), loss, held_out.kind)
    return np.mean([predict(score, loss, held_out.kind) for score in scores], axis=0)


def _usable(score: np.ndarray, held_out: Bags, loss: Loss) -> bool:
    """Whether all scores are finite, and small enough to be reckoned with where they predict
    counts."""
    if not np.isfinite(score).all():
        return False
    return held_out.kind != "total" or bool(
        (np.abs(predict(score, loss, held_out.kind)) < LARGEST).all()
    )


def _best_of_groups(
    listed: Sequence[Candidate], scores: Sequence[Any], held_out: Bags, loss: Loss
) -> dict[Any, int]:
    """Of each group the candidate with the lowest cautious loss, judged against the consensus of
    its own group: a consensus of all would draw a good method towards the bad ones."""
    best = {}
    for group in dict.fromkeys(candidate.group for candidate in listed):
        members = [i for i, candidate in enumerate(listed) if candidate.group == group]
        inside = [scores[i] for i in members]
        judged = judge_all(inside, held_out, _consensus(inside, held_out, loss), loss)
        best[group] = members[int(np.argmin(judged.cautious(CAUTION)))]
    return best


def _by_pairs(
    listed: Sequence[Candidate], best: dict[Any, int], judged: Judged, level: float
) -> tuple[int, str]:
    """The preferred group's best, unless another group's best is better beyond doubt."""
    lowest = min(best.values(), key=lambda i: judged.cautious(CAUTION)[i])
    first = next((group for group in PREFERRED if group in best), None)
    others = [i for group, i in best.items() if group != first]
    if first is None or not others:
        return lowest, "The lowest loss plus two standard errors."
    incumbent = best[first]
    against = {
        i: interval(judged.found[i] - judged.found[incumbent], judged.judge, level=level)
        for i in others
    }
    surely = [i for i, difference in against.items() if difference.high < 0]
    if surely:
        winner = min(surely, key=lambda i: judged.cautious(CAUTION)[i])
        return (
            winner,
            (
                f"It is better than {listed[incumbent].name} by {-against[winner].value:.4f}, "
                "beyond doubt."
            ),
        )
    return (
        incumbent,
        f"No other is better beyond doubt ({level:.0%} intervals of paired differences).",
    )


def _by_tournament(
    scores: Sequence[Any], held_out: Bags, loss: Loss, beta: float
) -> tuple[int, str]:
    result = tournament(list(scores), held_out, beta=beta, loss=loss)
    if result.chosen is None:
        raise ValueError(
            f"A tournament must leave a model. {result} Raise beta, or use rule='paired'."
        )
    text = f"The tournament leaves {len(result.pool)} of {len(scores)}; within {result.regret_bound:.3g} of the best."
    return int(result.chosen), text


def _told(
    listed: Sequence[Candidate],
    winner: int,
    reason: str,
    judged: Judged,
    labelled: Sequence[float | None],
    bags: int,
    level: float,
) -> Choice:
    rows = [
        Compared(
            c.name,
            interval(judged.found[i], judged.judge, level=level),
            interval(judged.found[i] - judged.found[winner], judged.judge, level=level),
            labelled[i],
        )
        for i, c in enumerate(listed)
    ]
    known = [value for value in labelled if value is not None]
    behind = labelled[winner] - min(known) if known and labelled[winner] is not None else None  # type: ignore[operator]
    order = np.argsort(judged.cautious(CAUTION), kind="stable")
    table = [rows[i] for i in order]
    return Choice(listed[winner].name, listed[winner].model, reason, table, bags, behind)
