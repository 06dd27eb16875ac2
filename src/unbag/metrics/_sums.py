"""Sums over the instances of each bag: all that any metric needs, so that bags can come in pieces.

With a reference prediction g (the model's own), a loss f1 + y f2 is estimated as

    mean of (f1 + g f2)  +  GeneralUPM of the residual y - g on f2

and of a bag's instances this needs only the sums of g, of f1 + g f2 and of f2. What depends on the
order of the scores (AUC, bands of calibration) needs, in addition, the scores themselves: coarser
bins would have to know beforehand how far the scores spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unbag._arrays import sum_by
from unbag._rules import refuse
from unbag.bags import Bags, Kind, checked_scores, label_variance
from unbag.losses import Link, Loss


class ScoreCounts(NamedTuple):
    """How many instances of a bag have this score, and the sums of their predictions; each bag and
    score once, unless there are many."""

    bag: np.ndarray
    score: np.ndarray
    instances: np.ndarray
    prediction: np.ndarray
    reference: np.ndarray


EXACT = 2**20
"""More scores than this are neither merged nor sorted; see `unbag.metrics._ranks`."""
NO_SCORES = ScoreCounts(np.zeros(0, int), *np.zeros((4, 0)))


class BagSums(NamedTuple):
    """Per bag: size, report and sums over its instances."""

    name: np.ndarray | None
    size: np.ndarray
    report: np.ndarray  # label components that are not constant: (bags, 1), or (bags, classes)
    noise: np.ndarray
    observed: np.ndarray
    stratum: np.ndarray
    prediction: np.ndarray  # (bags, components)
    reference: np.ndarray
    square: np.ndarray  # sum of y^2, expected under the reference
    T: np.ndarray  # (bags, metrics): sums of f1 + g f2
    S: np.ndarray  # (bags, metrics, components): sums of f2
    Q: np.ndarray  # (bags, metrics): sum of the loss squared, expected under the reference
    drift: np.ndarray  # (bags, metrics and rank): see `unbag.metrics._folds`; 0 for one model
    rank: np.ndarray  # (bags,): what folds add to the T of the rank; 0 for one model
    scores: ScoreCounts


KEPT = ("report", "noise", "observed", "stratum")  # the same in all parts of a bag
ADDED = ("size", "prediction", "reference", "square", "T", "S", "Q", "drift", "rank")


class ScoredBags(NamedTuple):
    """Bags with the scores of a model, asked once, and what these predict.

    Parameters
    ----------
    bags : Bags
        The bags.
    score : array (instances,) or (instances, classes)
        Finite scores, one row per instance.
    prediction : array (instances, components)
        Class probabilities, or one column with the probability or the count.
    loss : Loss
        The loss that says how a score predicts.
    """

    bags: Bags
    score: np.ndarray
    prediction: np.ndarray
    loss: Loss

    @staticmethod
    def of(score: Any, bags: Bags, loss: Loss) -> ScoredBags:
        """Check the scores, and see what they predict.

        Parameters
        ----------
        score : array
            Logits, class scores or log rates, one row per instance.
        bags : Bags
            The bags.
        loss : Loss
            Says how a score predicts.
        """
        score = checked_scores(score, bags)
        return ScoredBags(bags, score, predict(score, loss, bags.kind), loss)


def collect(
    scored: ScoredBags, losses: Sequence[Loss], *, reference: Any = None, ordered: bool = True
) -> BagSums:
    """Sums per bag of these scores.

    Parameters
    ----------
    scored : ScoredBags
        The bags with their scores.
    losses : sequence of Loss
        The metrics.
    reference : array, optional
        Prediction to centre by, instead of the model's own; made without the labels of these bags.
    ordered : bool
        Whether to keep the scores, for what depends on their order.
    """
    bags, score, h, _ = scored
    remedy = "Give the logarithms of rates as scores; for counts say {scale:probability}."
    bad = ~(h[:, 0] < 1e50) & (bags.kind == "total")
    refuse(
        "A predicted count must be below 1e+50", bad, thing="instance", given=h[:, 0], remedy=remedy
    )
    g = h
    if reference is not None:
        g = np.asarray(reference, float).reshape(len(h), -1)
    spread = _spread(g, bags.kind)
    sums = [loss_sums(_components(scored, loss), g, spread, bags) for loss in losses]
    T, S, Q = (np.stack(column, axis=1) for column in zip(*sums, strict=True))
    drift = np.zeros((len(bags), len(losses) + 1))
    prediction = sum_by(bags.bag, h, len(bags))
    whole = empty_sums(bags, g)._replace(prediction=prediction, T=T, S=S, Q=Q, drift=drift)
    if not ordered or bags.kind == "histogram":
        return whole
    one = np.ones(len(score))
    return whole._replace(scores=count_scores(bags.bag, score, one, h[:, 0], g[:, 0]))


def _components(scored: ScoredBags, loss: Loss) -> np.ndarray:
    """Loss components of what the scores predict: a logit is a probability for all losses."""
    kind = scored.bags.kind
    if loss.form(kind).link == scored.loss.form(kind).link:
        return loss.components(scored.score, kind=kind)
    return components_of(scored.prediction, loss, kind)


def components_of(prediction: np.ndarray, loss: Loss, kind: Kind) -> np.ndarray:
    """Loss components of a prediction, rather than of a score."""
    form = loss.form(kind)
    if kind != "histogram":
        both_labels = form.predict(np.zeros(1)).ndim > 1
        if both_labels:
            prediction = np.concatenate([1 - prediction, prediction], axis=1)
        else:
            prediction = prediction[:, 0]
    if form.log_space:
        prediction = np.log(np.maximum(prediction, 1e-12))
    return form.components(prediction)


def empty_sums(bags: Bags, g: np.ndarray) -> BagSums:
    """What the bags say of a reference, before any loss.

    Parameters
    ----------
    bags : Bags
        The bags.
    g : array (instances, components)
        The reference.
    """
    count = len(bags)
    nothing = np.zeros((count, 0))
    stratum = bags.stratum_or_zero
    if bags.stratum_names is not None:  # numbers of two tables need not mean the same
        stratum = np.asarray(bags.stratum_names)[stratum]
    return BagSums(
        name=bags.names,
        size=bags.size.astype(float),
        report=bags.report.reshape(count, -1),
        noise=bags.noise_or_zero,
        observed=bags.observed,
        stratum=stratum,
        prediction=nothing,
        reference=sum_by(bags.bag, g, count),
        square=sum_by(bags.bag, _spread(g, bags.kind) + g**2, count).mean(axis=1),
        T=nothing,
        S=nothing[:, :, None],
        Q=nothing,
        drift=nothing,
        rank=np.zeros(count),
        scores=NO_SCORES,
    )


def _spread(g: np.ndarray, kind: Kind) -> np.ndarray:
    """Var(y | x) if the reference were right."""
    return np.maximum(label_variance(g, kind), 0)


def loss_sums(
    f: np.ndarray, g: np.ndarray, spread: np.ndarray, bags: Bags
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over each bag of f1 + g f2, of f2, and of the loss squared as expected under g.

    Parameters
    ----------
    f : array (instances, components)
        Loss components.
    g : array (instances, components)
        The reference.
    spread : array (instances, components)
        Var(y | x) under the reference.
    bags : Bags
        Who is in which bag.
    """
    if bags.kind == "histogram":
        expected, f2 = np.sum(g * f, axis=1), f
        square = np.sum(g * f**2, axis=1)
    else:
        f2 = f[:, 1:]
        expected = f[:, 0] + np.sum(g * f2, axis=1)
        square = expected**2 + np.sum(spread * f2**2, axis=1)
    T, S, Q = (sum_by(bags.bag, values, len(bags)) for values in (expected, f2, square))
    return T, S, Q


def predict(score: np.ndarray, loss: Loss, kind: Kind) -> np.ndarray:
    """What scores predict: class probabilities, or one column with the probability or the count.

    Parameters
    ----------
    score : array
        One row per instance.
    loss : Loss
        Says how a score predicts.
    kind : {"binary", "total", "histogram"}
        The kind of report.
    """
    return predict_by(loss.form(kind).link, score, kind)


def predict_by(link: Link, score: np.ndarray, kind: Kind) -> np.ndarray:
    """The same, where only the link is known."""
    with np.errstate(over="ignore"):  # whoever takes counts refuses those that are too large
        prediction = link.prediction(score, kind)
    return prediction.reshape(len(prediction), -1)


def count_scores(bag: np.ndarray, score: np.ndarray, *values: np.ndarray) -> ScoreCounts:
    """One entry for each bag and score, with the sums of the values; of many, one for each row."""
    if len(bag) == 0:
        return NO_SCORES
    if len(bag) > EXACT:
        return ScoreCounts(bag, score, *values)
    distinct, number = np.unique(score, return_inverse=True)
    key, where = np.unique(bag * len(distinct) + number, return_inverse=True)
    sums = (np.bincount(where, weights=v) for v in values)
    return ScoreCounts(key // len(distinct), distinct[key % len(distinct)], *sums)


def merge(pieces: Sequence[BagSums]) -> BagSums:
    """One table of pieces that arrive one after the other, or from several machines.

    Bags with names are the same bag when they have the same name: their sums add up, and their
    report must agree. Bags without names are all different.
    """
    offsets = np.cumsum([0, *(len(piece.size) for piece in pieces[:-1])])
    shift = np.repeat(offsets, [len(piece.scores.bag) for piece in pieces])
    columns = zip(*(piece.scores for piece in pieces), strict=True)
    scores = ScoreCounts(*(np.concatenate(column) for column in columns))
    scores = scores._replace(bag=scores.bag + shift)
    joined = {f: np.concatenate([getattr(piece, f) for piece in pieces]) for f in KEPT + ADDED}
    whole = BagSums(name=None, scores=scores, **joined)
    if any(piece.name is None for piece in pieces):
        return whole
    names = np.concatenate([np.asarray(piece.name) for piece in pieces])
    name, first, which = np.unique(names, return_index=True, return_inverse=True)
    if len(first) == len(which):
        return whole._replace(name=names)
    return _add_up(whole, name, first, which)


def _add_up(whole: BagSums, name: np.ndarray, first: np.ndarray, which: np.ndarray) -> BagSums:
    same = np.isclose(whole.report, whole.report[first][which], equal_nan=True).all(axis=1)
    refuse(
        "Parts of a bag must carry the same report",
        ~same,
        thing="part",
        given=[
            f"{float(np.ravel(r)[0]):g} for bag {n}"
            for r, n in zip(whole.report, name[which], strict=True)
        ],
        remedy="Give each part the report of its whole bag, or different bags different names.",
    )
    kept = {field: getattr(whole, field)[first] for field in KEPT}
    added = {field: sum_by(which, getattr(whole, field), len(name)) for field in ADDED}
    bag, score, *values = whole.scores
    return BagSums(name=name, scores=count_scores(which[bag], score, *values), **kept, **added)
