"""Scores and bags in, a few sums per bag out: all that any metric needs, so that bags can come in
pieces and merge.

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
from unbag._rules import broken, refuse, rows
from unbag.bags import Bags, Kind
from unbag.losses import Link, Loss


class Sums(NamedTuple):
    """Per bag: size, report and sums over its instances. `T`, `S` per metric: sums of g.f and of
    f."""

    name: np.ndarray | None
    size: np.ndarray
    report: np.ndarray  # label components that are not constant: (bags, 1), or (bags, classes)
    noise: np.ndarray
    observed: np.ndarray
    stratum: np.ndarray
    prediction: np.ndarray  # (bags, components)
    reference: np.ndarray
    square: np.ndarray  # sum of y^2, expected under the reference
    T: np.ndarray  # (bags, metrics)
    S: np.ndarray  # (bags, metrics, components)
    Q: np.ndarray  # (bags, metrics): sum of the loss squared, expected under the reference
    drift: np.ndarray  # (bags, metrics and rank): see `unbag.metrics._folds`; 0 for one model
    scores: Scores


class Scores(NamedTuple):
    """How many instances of a bag have this score, and the sums of their predictions; each bag and
    score once."""

    bag: np.ndarray
    score: np.ndarray
    instances: np.ndarray
    prediction: np.ndarray
    reference: np.ndarray


def collect(
    score: Any, bags: Bags, losses: Sequence[Loss], *, reference: Any = None, ordered: bool = True
) -> Sums:
    """Sums per bag of these scores.

    Parameters
    ----------
    score : logits, class scores or log rates, one row per instance.
    losses : the first one says how a score predicts.
    reference : prediction to centre by, instead of the model's own; made without the labels of
        these bags.
    ordered : whether to keep the scores, for what depends on their order.
    """
    kind, count = bags.kind, len(bags)
    score = checked_scores(score, bags)
    h = _checked_counts(predict(score, losses[0], kind), kind)
    g = h if reference is None else np.asarray(reference, float).reshape(len(h), -1)
    sums = [
        loss_sums(_components(score, h, loss, losses[0], kind), g, _spread(g, kind), bags)
        for loss in losses
    ]
    T, S, Q = (np.stack(column, axis=1) for column in zip(*sums, strict=True))
    kept = ordered and kind != "histogram"
    scores = (
        group_scores(bags.bag, score, np.ones(len(score)), h[:, 0], g[:, 0])
        if kept
        else _no_scores()
    )
    return empty_sums(bags, g)._replace(
        prediction=sum_by(bags.bag, h, count),
        T=T,
        S=S,
        Q=Q,
        drift=np.zeros((count, len(losses) + 1)),
        scores=scores,
    )


def _components(
    score: np.ndarray, h: np.ndarray, loss: Loss, first: Loss, kind: Kind
) -> np.ndarray:
    """Loss components of what the first loss says that the scores predict: a logit is a probability
    for all losses."""
    if loss.form(kind).link != first.form(kind).link:
        return components_of(h, loss, kind)
    return loss.components(score, kind=kind)


def components_of(prediction: np.ndarray, loss: Loss, kind: Kind) -> np.ndarray:
    """Loss components of a prediction, rather than of a score."""
    form = loss.form(kind)
    if kind != "histogram":
        both_labels = form.predict(np.zeros(1)).ndim > 1
        prediction = (
            np.concatenate([1 - prediction, prediction], axis=1)
            if both_labels
            else prediction[:, 0]
        )
    return form.components(np.log(np.maximum(prediction, 1e-12)) if form.log_space else prediction)


def _checked_counts(h: np.ndarray, kind: Kind) -> np.ndarray:
    refuse(
        "A predicted count must be below 1e+50",
        ~(h[:, 0] < 1e50) & (kind == "total"),
        thing="instance",
        given=h[:, 0],
        remedy="Give the logarithms of rates as scores; for counts say {scale:probability}.",
    )
    return h


def empty_sums(bags: Bags, g: np.ndarray) -> Sums:
    """What the bags say of a reference, before any loss."""
    count = len(bags)
    nothing = np.zeros((count, 0))
    return Sums(
        name=bags.names,
        size=bags.size.astype(float),
        report=bags.report.reshape(count, -1),
        noise=np.zeros(count) if bags.noise is None else bags.noise,
        observed=bags.observed,
        stratum=_strata(bags),
        prediction=nothing,
        reference=sum_by(bags.bag, g, count),
        square=sum_by(bags.bag, _spread(g, bags.kind) + g**2, count).mean(axis=1),
        T=nothing,
        S=nothing[:, :, None],
        Q=nothing,
        drift=nothing,
        scores=_no_scores(),
    )


def _strata(bags: Bags) -> np.ndarray:
    """The stratum of each bag, by name where it has one: numbers of two tables need not mean the
    same."""
    if bags.stratum is None:
        return np.zeros(len(bags), int)
    return (
        bags.stratum if bags.stratum_names is None else np.asarray(bags.stratum_names)[bags.stratum]
    )


def _spread(g: np.ndarray, kind: Kind) -> np.ndarray:
    """Var(y | x) if the reference were right."""
    return np.maximum(g, 0) if kind == "total" else g * (1 - g)


def loss_sums(f: np.ndarray, g: np.ndarray, spread: np.ndarray, bags: Bags) -> tuple[Any, Any, Any]:
    """Sums over each bag of f1 + g f2, of f2, and of the loss squared as expected under the
    reference."""
    f1, f2 = (0.0, f) if bags.kind == "histogram" else (f[:, 0], f[:, 1:])
    expected = f1 + np.sum(g * f2, axis=1)
    square = (
        np.sum(g * f2**2, axis=1)
        if bags.kind == "histogram"
        else expected**2 + np.sum(spread * f2**2, axis=1)
    )
    add = lambda values: sum_by(bags.bag, values, len(bags))
    return add(expected), add(f2), add(square)


def predict(score: np.ndarray, loss: Loss, kind: Kind) -> np.ndarray:
    """What a score predicts: class probabilities, or one column with the probability or the
    count."""
    return predict_by(loss.form(kind).link, score, kind)


def predict_by(link: Link, score: np.ndarray, kind: Kind) -> np.ndarray:
    """The same, where only the link is known."""
    prediction = link.predict(score)
    with np.errstate(over="ignore"):  # whoever takes counts refuses those that are too large
        prediction = np.exp(prediction) if link.log_space else prediction
    if kind == "histogram":
        return prediction
    return prediction[:, 1:] if prediction.ndim > 1 else prediction[:, None]


def group_scores(bag: np.ndarray, score: np.ndarray, *values: np.ndarray) -> Scores:
    """One entry for each bag and score, with the sums of the values."""
    if len(bag) == 0:
        return _no_scores()
    distinct, number = np.unique(score, return_inverse=True)
    key, where = np.unique(bag * len(distinct) + number, return_inverse=True)
    return Scores(
        key // len(distinct),
        distinct[key % len(distinct)],
        *(np.bincount(where, weights=v) for v in values),
    )


def _no_scores() -> Scores:
    empty = np.zeros(0)
    return Scores(empty.astype(int), empty, empty, empty, empty)


def without_scores(sums: Sums) -> Sums:
    """The same, without what depends on the order of the scores."""
    return sums._replace(scores=_no_scores())


def merge(pieces: Sequence[Sums]) -> Sums:
    """One table of pieces that came one after the other, or from several machines.

    Bags with names are the same bag when they have the same name: their sums add up, and their
    report must agree. Bags without names are all different.
    """
    offsets = np.cumsum([0, *(len(piece.size) for piece in pieces[:-1])])
    scores = Scores(
        *(
            np.concatenate(column)
            for column in zip(*(piece.scores for piece in pieces), strict=True)
        )
    )
    shift = np.repeat(offsets, [len(piece.scores.bag) for piece in pieces])
    columns = {
        f: np.concatenate([getattr(piece, f) for piece in pieces]) for f in Sums._fields[1:-1]
    }
    whole = Sums(name=None, scores=scores._replace(bag=scores.bag + shift), **columns)
    if any(piece.name is None for piece in pieces):
        return whole
    name, first, which = np.unique(
        np.concatenate([np.asarray(piece.name) for piece in pieces]),
        return_index=True,
        return_inverse=True,
    )
    return (
        whole._replace(name=name)
        if len(first) == len(which)
        else _add_up(whole, name, first, which)
    )


def _add_up(whole: Sums, name: np.ndarray, first: np.ndarray, which: np.ndarray) -> Sums:
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
    add = lambda values: sum_by(which, values, len(name))
    b = whole.scores
    kept = {
        field: getattr(whole, field)[first] for field in ("report", "noise", "observed", "stratum")
    }
    added = {
        field: add(getattr(whole, field))
        for field in ("size", "prediction", "reference", "square", "T", "S", "Q", "drift")
    }
    scores = group_scores(which[b.bag], b.score, b.instances, b.prediction, b.reference)
    return Sums(name=name, scores=scores, **kept, **added)


def checked_scores(score: Any, bags: Bags) -> np.ndarray:
    """Scores as floats, one row per instance, all finite."""
    count, kind = len(bags.bag), bags.kind
    score = np.asarray(score, float)
    if kind != "histogram" and score.ndim == 2 and score.shape[1] == 1:
        score = score[:, 0]
    rows(len(score), count, thing="scores", of="instance")
    dimensions = 2 if kind == "histogram" else 1
    if score.ndim == dimensions == 2 and score.shape[1] != bags.report.shape[1]:
        raise broken(
            "Class scores must have one column for each class of the reports",
            f"{score.shape[1]} came for {bags.report.shape[1]} classes",
            "Give the same classes to both.",
        )
    if score.ndim != dimensions:
        raise broken(
            f"Scores for {kind} reports must have {dimensions} dimension(s)",
            f"an array of shape {score.shape} came",
            "Give one logit or log rate per instance, or one score per class for histograms.",
        )
    refuse(
        "A score must be finite",
        ~np.isfinite(score.reshape(count, -1)).all(axis=1),
        thing="instance",
        given=score,
        remedy="A model that predicts NaN has diverged: train it with a lower learning rate.",
    )
    return score
