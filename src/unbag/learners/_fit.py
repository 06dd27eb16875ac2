"""Bags in, the best model we know out: learners cross-fitted, combined, repaired and judged."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, NamedTuple, cast

import numpy as np

from unbag._progress import whom_to_inform
from unbag._rules import Refused, broken
from unbag.additive import Additive, DataWarning
from unbag.bags import Bags
from unbag.boosting import level_shift
from unbag.learners._combine import Combination, combine, offset_of, slope_of, unsteadiness
from unbag.learners._fitted import (
    NOT_RANDOM,
    PESSIMISTIC,
    Fitted,
    as_read,
    is_matrix,
    reason,
    tested,
    within_constants,
)
from unbag.learners._folds import (
    FEWEST,
    FoldFit,
    fit_folds,
    folds_of,
    look_random,
    mean_report,
    scores_by_own_fold,
)
from unbag.learners._protocol import Learner, Model, Progress
from unbag.learners._table import learners_of
from unbag.learners._verdict import labelled_rows
from unbag.metrics import Estimate, Evaluation, evaluate_counts, evaluate_folds, level_note, marks
from unbag.tables import Marginals, answers, in_range

ANSWER_NOTE = (
    "Column {name} adds up to what was reported in every bag, as the label does: if it is the "
    "label, or was made from the reports, leave it out, because new events do not have it."
)
PESSIMISTIC_CELLS = (
    "The evaluation is of the models of {folds} folds of cells. The final model learned from all "
    "cells, and knows levels that only a held-out cell counted, so this is pessimistic for it."
)


def fit(
    bags: Bags | Marginals,
    *,
    learner: str | Learner | Sequence[str | Learner] = "auto",
    folds: int = 5,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Progress | None = None,
    test: float | Bags | None = None,
) -> Fitted:
    """The best model we know for these bags, chosen and judged from the bags themselves.

    Every learner makes a model for each fold of bags, from the bags of the other folds. The scores
    that each bag gets from models that never saw it combine the learners, repair level and slope,
    and judge the result. When bags teach nothing the answer is the prior.

    Parameters
    ----------
    bags : Bags or Marginals
        With features: a table of raw columns, or a matrix. Cells of marginal tables, from
        `join_marginals`, are learned by the additive model and judged by held-out cells.
    learner : str, Learner or a sequence of these
        "auto" for the additive model and trees, with fewer than 100 bags a network beside them, and
        for images, or more than 200 columns of a matrix, a network alone; a name of
        `unbag.learners.LEARNERS`, or your own.
    folds : int
        How many; fewer where bags are few.
    seed : int
        Of the folds and of everything that is drawn.
    time_limit : float, optional
        Seconds after which no further learner, and no further round of trees, begins.
    progress : Progress, optional
        Progress while learners work.
    test : float or Bags, optional
        A share of the bags to keep untouched, or bags that are; `Fitted.test` is what they say.

    Returns
    -------
    Fitted
        The model, with its evaluation.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> from unbag import random_bags
    >>> bags = random_bags(X, rng.uniform(size=4000) < 1 / (1 + np.exp(-X[:, 0])), size=10, seed=0)
    >>> fitted = fit(bags, learner="trees")
    >>> bool(fitted.evaluation["log_loss"].value < 0.68)
    True
    """
    begin = monotonic()
    if isinstance(bags, Marginals):
        return _fit_cells(bags, learner, folds, seed, test, progress or whom_to_inform())
    if not isinstance(bags, Bags):
        raise broken(
            "A model must learn from bags",
            f"{type(bags).__name__} given",
            "Make them with unbag.join, unbag.from_rows or unbag.random_bags.",
        )
    bags = as_read(bags)
    if bags.X is None:
        raise broken("Bags to learn from must have features", "X is None", "Make them with X.")
    learners, notes = learners_of(learner, bags)
    untouched = test if isinstance(test, Bags) else None
    if isinstance(test, float | int):
        bags, untouched = bags.split(1 - test, seed=seed)
    bags, within = within_constants(bags.reported())
    X, beyond = in_range(bags.X)
    if X is not bags.X:
        bags = replace(bags, X=X)
    held = [ANSWER_NOTE.format(name=name) for name in answers(X, bags)]
    for note in held:
        warnings.warn(note, DataWarning, stacklevel=2)
    notes += dict.fromkeys([*within, *getattr(bags, "notes", ()), *beyond, *held])
    fold = folds_of(bags, folds, seed=seed)
    known = marks(bags) if bags.names is not None and bags.size.max() > 1 else None
    if len(bags) < FEWEST:
        fitted = _without_folds(learners[0], bags, seed)
    else:
        end = begin + time_limit if time_limit is not None else math.inf
        crossed = _cross_fit(learners, bags, fold, seed, end, progress or whom_to_inform())
        fitted = _combined(crossed, bags, fold)
    table = not is_matrix(bags.X)
    level = level_note(fitted.predict(bags.X, offset=bags.offset), bags)
    notes += [level] if level is not None else []
    fitted = replace(fitted, notes=(*notes, *fitted.notes), learned_=known, takes_tables=table)
    fitted = replace(fitted, needs_offset=bags.offset is not None)
    if untouched is None:
        return fitted
    return replace(fitted, test=tested(fitted, untouched))


class _Crossed(NamedTuple):
    """What the learners made: their fits by name, scores (learners, folds, rows, ...), the share in
    the combination that is expected of each, and whether the bags look random."""

    fits: dict[str, FoldFit]
    scores: np.ndarray
    share: np.ndarray
    random: bool
    notes: tuple[str, ...]


def _cross_fit(
    learners: Sequence[Learner],
    bags: Bags,
    fold: np.ndarray,
    seed: int,
    end: float,
    progress: Progress | None,
) -> _Crossed:
    fits: dict[str, FoldFit] = {}
    scores: list[np.ndarray] = []
    needs: list[bool] = []
    notes: list[str] = []
    random = True
    for learner in learners:
        if fits and learner.needs_random_bags and not random:
            notes.append(f"{learner.name.capitalize()} left out: {NOT_RANDOM}, which they need.")
            continue
        if fits and monotonic() > end:
            notes.append(f"{learner.name.capitalize()} left out: the time limit was reached.")
            continue
        try:
            fold_fit = fit_folds(_limited(learner, end), bags, fold, seed=seed, progress=progress)
        except Refused as error:
            if len(learners) == 1:
                raise
            notes.append(f"{learner.name.capitalize()} left out: {error}")
            continue
        fits[learner.name] = fold_fit
        needs.append(learner.needs_random_bags)
        notes += fold_fit.notes
        scores.append(_at_one_level(fold_fit.scores(bags.X), bags))
        if len(fits) == 1:
            random = look_random(scores[0], bags, fold)
    if not fits:
        raise broken("At least one learner must succeed", "; ".join(notes), "Look at the bags.")
    return _Crossed(fits, np.stack(scores), _shares(needs), random, tuple(notes))


def _shares(needs_random_bags: Sequence[bool]) -> np.ndarray:
    """What is expected of each learner in a combination: half of it of those that need random bags,
    half of the others.

    Trees and networks learn alike, from signed weights and until held-out bags stop them, and are
    unsteady alike when bags are few: together they count as much as the additive model.

    >>> _shares([False, True, True])
    array([0.5 , 0.25, 0.25])
    """
    needs = np.asarray(needs_random_bags, bool)
    share = 1.0 / np.where(needs, needs.sum(), (~needs).sum())
    return share / share.sum()


def _limited(learner: Learner, end: float) -> Learner:
    """The learner with what is left of the time, if it can be limited."""
    if end < math.inf and getattr(learner, "seconds", 0.0) is None:
        return replace(cast(Any, learner), seconds=max(end - monotonic(), 0.0))
    return learner


def _at_one_level(scores: np.ndarray, bags: Bags) -> np.ndarray:
    """Scores of each fold's model, (folds, rows, ...), moved so that all have one mean prediction.

    The level of a fold's model is the mean report of the *other* folds, which is high where its own
    is low; at large bags this alone hides what the model knows. The combination sets the level.
    """
    mean, offset = mean_report(bags), offset_of(bags)
    shifts = [level_shift(score + offset, mean, bags.kind) for score in scores]
    return scores + np.stack(shifts)[:, None]


def _combined(crossed: _Crossed, bags: Bags, fold: np.ndarray) -> Fitted:
    """The combination of all folds for the final models, and for each fold's models the combination
    of the other folds, which is what is judged."""
    names, row_fold = tuple(crossed.fits), fold[bags.bag]
    own = np.stack([scores_by_own_fold(scores, row_fold) for scores in crossed.scores])
    unsteady = unsteadiness(crossed.scores)
    known_before: dict[str, Any] = {"unsteady": unsteady, "share": crossed.share}
    whole = combine(names, own, bags, **known_before)
    judged, trivial = [], np.empty(own.shape[1:])
    bare = bags.bare()  # a combination reads no features, and a copy of them takes time
    for number in range(int(fold.max()) + 1):
        others = np.flatnonzero(fold != number)
        rows = bags.rows_of(others)
        part = combine(names, own[:, rows], bare.take(others), **known_before)
        judged.append(part.apply(crossed.scores[:, number]))
        trivial[row_fold == number] = part.prior
    offset = offset_of(bags)
    scores = np.stack(judged) + offset
    evaluation, gain = _judged(scores, trivial + offset, crossed, bags, fold)
    models = {name: fold_fit.final for name, fold_fit in crossed.fits.items()}
    note = PESSIMISTIC.format(folds=int(fold.max()) + 1)
    taught = () if whole.weights.any() else (TAUGHT_NOTHING,)
    notes = (*crossed.notes, *taught, note)
    # of one combination: that of a fold's models is steep where its own bags say that it is not
    slope = slope_of(whole.apply(own), bags, unsteady=unsteady)
    worth = labelled_rows(scores_by_own_fold(scores, row_fold), bags)
    known: dict[str, Any] = {"notes": notes, "gain": gain, "slope": slope, "worth": worth}
    return Fitted(bags.kind, models, whole, evaluation, **known)


TAUGHT_NOTHING = "These bags teach nothing beyond their mean: the prediction is the prior."


def _judged(
    scores: np.ndarray, trivial: np.ndarray, crossed: _Crossed, bags: Bags, fold: np.ndarray
) -> tuple[Evaluation, Estimate]:
    """What all bags say of the fold models: losses where bags are random, else their likelihood;
    and how much likelier the reports are than by the prior, which needs no random bags."""
    why = NOT_RANDOM
    own = scores_by_own_fold(scores, fold[bags.bag])
    if crossed.random:
        try:
            evaluation = evaluate_folds(scores, bags, fold)
            gain = evaluate_counts(own, bags, trivial=trivial)["gain_over_prior"]
            return evaluation, gain
        except Refused as error:  # a stratum with one report only
            why = reason(error)
    by_counts = evaluate_counts(own, bags, trivial=trivial, why=why)
    return by_counts, by_counts["gain_over_prior"]


def _without_folds(learner: Learner, bags: Bags, seed: int) -> Fitted:
    """A model of bags that are too few to judge it."""
    note = f"{len(bags)} bags are too few to judge a model by: {FEWEST} are needed."
    return replace(_alone(learner.name, learner.fit(bags, seed=seed), bags), notes=(note,))


def _alone(name: str, model: Model, bags: Bags | Marginals) -> Fitted:
    """One model as it is, with nothing combined or repaired."""
    centre = np.asarray(model.scores(bags.X), float).mean(axis=0)
    one = Combination((name,), np.ones(1), centre, centre[None], centre, bags.kind)
    return Fitted(bags.kind, {name: model}, one)


def _fit_cells(
    cells: Any, learner: Any, folds: int, seed: int, test: Any, progress: Progress | None
) -> Fitted:
    """The additive model of marginal tables, judged by cells that had no part in it."""
    from unbag.learners._held_cells import held_cells  # late, as bags do not need it

    if isinstance(learner, str) and learner in ("auto", "additive"):
        learner = Additive()
    if not isinstance(learner, Additive):
        raise broken(
            "Marginal tables must be learned by the additive model",
            f"{learner!r} given",
            "Leave {learner} out.",
        )
    if test is not None:
        raise broken(
            "Marginal tables must be judged by folds of their own cells",
            f"test={test!r} given",
            "Leave {test} out; `Fitted.evaluate` takes cells of further tables.",
        )
    few = min(folds, int(cells.observed.sum()) // 2)
    model = learner.fit(cells.reported(), seed=seed)
    if progress is not None:
        progress(1, few + 1, "additive: all cells")
    evaluation = gain = slope = None
    notes = [*cells.notes, f"{len(cells)} cells are too few to judge a model by."]
    if few >= 2:
        held = held_cells(cells, learner, few, seed, progress)
        evaluation, slope = held.evaluation, held.slope
        gain, notes[-1] = evaluation["gain_over_prior"], PESSIMISTIC_CELLS.format(folds=few)
    fitted = _alone(learner.name, model, cells)
    judged = {"evaluation": evaluation, "gain": gain, "slope": slope}
    return replace(fitted, **judged, notes=tuple(notes), learned_=marks(cells), takes_tables=True)
