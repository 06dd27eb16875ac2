"""Choosing among trained models from held-out bags alone, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from unbag._lazy import as_html
from unbag._rules import broken, one_of
from unbag.bags import Bags, Kind, checked_scores, one_column
from unbag.losses import Loss
from unbag.metrics import (
    Estimate,
    Note,
    PairedLosses,
    Scale,
    check_apart,
    chosen_losses,
    doubts,
    is_array,
    judge_all,
    predict,
    scores_of,
    scores_on,
    warn_of,
)
from unbag.tournaments import tournament

# these stay unless another is better beyond doubt
PREFERRED = [("anchored", loss) for loss in ("square", "brier", "poisson")]
LARGEST = 1e50  # a count beyond which squares overflow
CAUTION = 2.0  # standard errors that a candidate's loss is raised by before the lowest is taken


class Candidate(NamedTuple):
    """One of those to choose among.

    Parameters
    ----------
    name : str
        What it is called.
    group : object
        Its method; candidates of one group differ in learning rate, seed or the like.
    model : object
        A model, or its scores.
    """

    name: str
    group: Any
    model: Any


class Compared(NamedTuple):
    """A candidate's loss, estimated from held-out bags.

    Parameters
    ----------
    name : str
        Of the candidate.
    loss : Estimate
        Its loss.
    difference : Estimate
        The paired difference to the chosen one.
    labelled : float or None
        Its loss on labelled test data, where there are any.
    """

    name: str
    loss: Estimate
    difference: Estimate
    labelled: float | None = None


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Parameters
    ----------
    name : str
        Of the chosen candidate.
    model : object
        The chosen model, or its scores.
    reason : str
        Why it was chosen.
    table : list of Compared
        All candidates, best first.
    bags : int
        How many held-out bags chose.
    behind : float or None
        How much worse on labelled test data than the best candidate there.
    notes : tuple of Note
        Why the choice cannot be trusted, if so.
    """

    name: str
    model: Any = field(repr=False)
    reason: str
    table: list[Compared] = field(repr=False)
    bags: int
    behind: float | None = None
    notes: tuple[Note, ...] = ()

    _repr_html_ = as_html

    def __str__(self) -> str:
        lines = [f"chosen from {self.bags} held-out bags: {self.name}. {self.reason}"]
        for row in self.table:
            line = f"  {row.name:<34} loss {row.loss}  difference {row.difference}"
            if row.labelled is not None:
                line += f"  labelled {row.labelled:.4f}"
            lines.append(line)
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
    delta: float = 0.05,
    scale: Scale | None = None,
    test: tuple[Any, Any] | None = None,
    trained_on: Bags | None = None,
    warn: bool = True,
) -> Choice:
    """Choose among trained models from held-out bags alone.

    Candidates are judged by their paired differences to the consensus of their predictions
    (`unbag.metrics.judge_all`). Within a method, the learning rate with the lowest loss plus two
    standard errors of that difference wins. Between methods anchored with the square loss stays, if
    it is among them, unless another's difference to it lies below 0 with its whole interval: with
    few bags a fixed preference is safer than a noisy choice. Models that you name yourself form one
    group, without a preference. Bags that are not random choose badly: where predictions show that
    they are not, there is a warning (BagsNotRandom) and a note.

    Parameters
    ----------
    candidates : runs, mapping or list of Candidate
        Runs of `train` or `sweep` (lists in lists are fine), a mapping from names to models or
        scores, or a list of `Candidate`, which say to which group (method) they belong.
    held_out : Bags
        Bags that none of them learned from.
    rule : {"paired", "tournament"}
        As above, or the paper's tournament at this `beta` and `delta`.
    loss : Loss or str, optional
        What decides; by default the log loss (cross entropy, Poisson).
    level : float
        Of the intervals.
    beta, delta : float
        Of the tournament: the regret to allow, and the chance of failure.
    scale : {"score", "probability"}, optional
        Say "probability" when you give probabilities in place of scores.
    test : (array, array), optional
        Labelled features and labels, only ever to tell how far the choice is behind the best one.
        Scores of the held-out bags say nothing of them, so that candidates must then be models.
    trained_on : Bags, optional
        The bags that the models learned from, to make sure that none of them is held out.
    warn : bool
        Whether to warn of bags that are not random; the note is there in any case.

    >>> from unbag import random_bags
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=40_000)
    >>> bags = random_bags(None, rng.uniform(size=40_000) < 1 / (1 + np.exp(-x)), size=20, seed=0)
    >>> choice = choose({"half": x / 2, "right": x, "double": 2 * x, "wrong": -x}, bags)
    >>> choice.name, choice.reason
    ('right', 'Its loss plus two standard errors is the lowest.')
    >>> for row in choice.table:
    ...     print(f"{row.name:<8} loss {row.loss}  difference {row.difference}")
    right    loss 0.6012 [0.5822, 0.6203]  difference 0.0000 [0.0000, 0.0000]
    half     loss 0.6210 [0.6115, 0.6306]  difference 0.0198 [0.0103, 0.0293]
    double   loss 0.6583 [0.6204, 0.6963]  difference 0.0571 [0.0381, 0.0761]
    wrong    loss 1.0115 [0.9920, 1.0310]  difference 0.4103 [0.3719, 0.4487]
    """
    one_of("A rule", rule, ("paired", "tournament"))
    kind, everyone = held_out.kind, _listed(candidates)
    for candidate in everyone:
        check_apart(candidate.model, held_out, trained_on)
    given = [candidate.name for candidate in everyone if is_array(candidate.model)]
    if test is not None and given:
        raise broken(
            "A candidate must be a model where test= is given",
            f"{given[0]} given as scores, which are those of the held-out bags",
            "Give models, or leave test out.",
        )
    chosen_loss = chosen_losses(loss and [loss], kind)[0]
    listed, scores = [], []
    for each in everyone:
        own = one_column(scores_on(each.model, held_out, scale, loss=chosen_loss), kind)
        usable = bool(np.isfinite(own).all())
        if usable and kind == "total":  # squares of larger counts would overflow
            usable = bool((np.abs(predict(own, chosen_loss, kind)) < LARGEST).all())
        if usable:
            listed.append(each)
            scores.append(checked_scores(own, held_out))
    if not listed:
        given = f"none of {len(everyone)} has"
        raise broken("A candidate must have finite scores", given, "Train with a lower rate.")
    best = _best_of_groups(listed, scores, held_out, chosen_loss)
    consensus = _consensus([scores[i] for i in best.values()], chosen_loss, kind)
    losses = judge_all(scores, held_out, consensus, chosen_loss)
    if rule == "tournament":
        winner, reason = _by_tournament(scores, held_out, chosen_loss, beta, delta)
    else:
        winner, reason = _by_pairs(listed, best, losses, level)
    if len(listed) < len(everyone):
        wild = f" or counts above {LARGEST:g}" * (kind == "total")
        lost = f"{len(everyone) - len(listed)} of {len(everyone)} candidates"
        reason += f" {lost} predict NaN{wild} and are left out."
    labelled: Any = [None] * len(listed)
    behind = None
    if test is not None:
        X, y = test
        by_labels = [scores_of(each.model, X, kind, scale, loss=chosen_loss) for each in listed]
        known = [chosen_loss.value(one_column(s, kind), y, kind=kind) for s in by_labels]
        labelled = [float(np.mean(own)) for own in known]
        behind = labelled[winner] - min(labelled)
    rows = []
    for i, candidate in enumerate(listed):
        numbers = losses.loss(i, level=level), losses.difference(i, winner, level=level)
        rows.append(Compared(candidate.name, *numbers, labelled[i]))
    choice = Choice(
        listed[winner].name,
        listed[winner].model,
        reason,
        [rows[i] for i in np.argsort(losses.cautious(CAUTION), kind="stable")],
        int(held_out.observed.sum()),
        behind,
        doubts(consensus, held_out),
    )
    if warn:
        warn_of(choice.notes)
    return choice


def _listed(candidates: Any) -> list[Candidate]:
    if isinstance(candidates, Mapping):
        listed = [Candidate(str(name), "yours", model) for name, model in candidates.items()]
    elif isinstance(candidates, Sequence) and all(isinstance(c, Candidate) for c in candidates):
        listed = list(candidates)
    else:
        listed = []
        for run in (run for run in _flat(candidates) if getattr(run, "epoch", 1) > 0):
            if not hasattr(run, "learning_rate"):
                rule = "Candidates must be runs, or a mapping from names to models"
                raise broken(rule, f"a {type(run).__name__} given", "Name your models in a dict.")
            method = run.method
            if not isinstance(method, str):
                method = getattr(method, "__name__", "own method")
            name = f"{method} {run.loss}, rate {run.learning_rate:g}, seed {run.seed}"
            listed.append(Candidate(name, (method, run.loss), run))
    if not listed:
        rule = "There must be candidates to choose among"
        raise broken(rule, "none given", "Give runs, or a mapping of models.")
    return listed


def _flat(runs: Any) -> Iterable[Any]:
    """Runs in lists in lists, one after the other."""
    if hasattr(runs, "history") or not isinstance(runs, Iterable):
        yield runs
        return
    for run in runs:
        yield from _flat(run)


def _consensus(scores: Sequence[np.ndarray], loss: Loss, kind: Kind) -> np.ndarray:
    """The mean of what they predict; for totals what their median score predicts, because a count
    has no upper bound and one wild candidate would carry a mean away."""
    if kind == "total":
        return predict(np.median(scores, axis=0), loss, kind)
    return np.mean([predict(score, loss, kind) for score in scores], axis=0)


def _best_of_groups(
    listed: Sequence[Candidate], scores: Sequence[np.ndarray], held_out: Bags, loss: Loss
) -> dict[Any, int]:
    """Of each group the candidate with the lowest cautious loss, judged against the consensus of
    its own group: a consensus of all would draw a good method towards the bad ones."""
    best = {}
    for group in dict.fromkeys(candidate.group for candidate in listed):
        members = [i for i, candidate in enumerate(listed) if candidate.group == group]
        inside = [scores[i] for i in members]
        losses = judge_all(inside, held_out, _consensus(inside, loss, held_out.kind), loss)
        best[group] = members[int(np.argmin(losses.cautious(CAUTION)))]
    return best


def _by_pairs(
    listed: Sequence[Candidate], best: dict[Any, int], losses: PairedLosses, level: float
) -> tuple[int, str]:
    """The preferred group's best, unless another group's best is better beyond doubt."""
    cautious = losses.cautious(CAUTION)
    first = next((group for group in PREFERRED if group in best), None)
    others = [i for group, i in best.items() if group != first]
    if first is None or not others:
        lowest = min(best.values(), key=cautious.__getitem__)
        return lowest, "Its loss plus two standard errors is the lowest."
    preferred = best[first]
    against = {i: losses.difference(i, preferred, level=level) for i in others}
    surely = [i for i in others if against[i].high < 0]
    if not surely:
        reason = f"No other is better beyond doubt ({level:.0%} intervals of paired differences)."
        return preferred, reason
    winner = min(surely, key=cautious.__getitem__)
    better = f"better than {listed[preferred].name} by {-against[winner].value:.4f}"
    return winner, f"It is {better}, beyond doubt."


def _by_tournament(
    scores: Sequence[np.ndarray], held_out: Bags, loss: Loss, beta: float, delta: float
) -> tuple[int, str]:
    result = tournament(list(scores), held_out, beta=beta, delta=delta, loss=loss)
    if result.chosen is None:
        raise ValueError(
            f"A tournament must leave a model. {result} Raise beta, or use rule='paired'."
        )
    left = f"The tournament leaves {len(result.pool)} of {len(scores)}"
    return int(result.chosen), f"{left}; within about {result.regret_estimate:.3g} of the best."
