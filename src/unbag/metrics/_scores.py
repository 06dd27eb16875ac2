"""A model of any kind and features in, scores out."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag._rules import broken
from unbag.bags import Kind
from unbag.losses import Link, Loss, named_loss
from unbag.methods import PROPER
from unbag.metrics._sums import predict_by


def scores_of(
    model: Any, X: Any, kind: Kind, scale: str | None = None, *, loss: Loss | None = None
) -> np.ndarray:
    """Scores (logits, log rates, class scores) of a fitted estimator, a `Run`, a function, or an
    array of scores.

    scale : whether an array, or what a function returns, holds scores or probabilities.
    loss : whose scores are wanted, by default log loss, Poisson or cross entropy; that of totals
        may want counts.
    """
    if scale not in (None, "score", "probability"):
        raise broken(
            "A scale must be score or probability", f"{scale!r} came", "Leave it out for scores."
        )
    usual = named_loss(PROPER[kind])
    loss = loss or usual
    if is_array(model):
        return _given(np.asarray(model, float), kind, scale, loss)
    if X is None:
        raise broken(
            "A model must have features to score",
            "bags without X came",
            "Give X to the bags, or scores.",
        )
    if hasattr(
        model, "history"
    ):  # a `Run` or boosted trees, which say by their link or their loss what scores predict
        score = model.scores(X) if hasattr(model, "scores") else model.model(_as_trained(X))
        link = getattr(model, "link", None) or named_loss(model.loss).form(kind).link
        return _reread(np.asarray(score, float), link, kind, loss)
    if hasattr(model, "decision_function"):
        return _reread(_decided(model, X, kind), usual.form(kind).link, kind, loss)
    if hasattr(model, "scores"):
        return _reread(np.asarray(model.scores(X), float), usual.form(kind).link, kind, loss)
    if hasattr(model, "predict_proba"):
        return _from_prediction(np.asarray(model.predict_proba(X), float), kind, loss)
    if kind == "total" and hasattr(model, "predict"):
        return _from_prediction(np.asarray(model.predict(X), float), kind, loss)
    if callable(model):
        return _given(np.asarray(model(X), float), kind, scale, loss)
    raise broken(
        "A model must have decision_function, predict_proba or predict, or be a function",
        f"{type(model).__name__} came",
        "Or give the scores themselves.",
    )


def _reread(score: np.ndarray, link: Link, kind: Kind, loss: Loss) -> np.ndarray:
    """Scores of one link as scores that a loss reads."""
    if link == loss.form(kind).link:
        return score
    h = predict_by(link, score, kind)
    return _from_prediction(h if kind == "histogram" else h[:, 0], kind, loss)


def _as_trained(X: Any) -> np.ndarray:
    """Features as training takes them: whole numbers (bucket numbers) as they are, others in single
    precision."""
    X = np.asarray(X)
    return X if X.dtype.kind in "iu" else X.astype(np.float32)


def is_array(model: Any) -> bool:
    """Whether scores came in place of a model."""
    return isinstance(model, list | tuple | np.ndarray) or (
        hasattr(model, "__array__") and not callable(model)
    )


def _decided(model: Any, X: Any, kind: Kind) -> np.ndarray:
    """Decisions of an estimator where they are logits; where they are not (margins), logits of its
    probabilities."""
    decision = np.asarray(model.decision_function(X), float)
    ours = hasattr(
        model, "learned_"
    )  # an estimator of unbag decides by logits: no need to ask it twice
    if ours or kind == "total" or not hasattr(model, "predict_proba"):
        return decision
    probability = np.asarray(model.predict_proba(X), float)
    return decision if _are_logits(decision, probability, kind) else _to_scores(probability, kind)


def _are_logits(decision: np.ndarray, probability: np.ndarray, kind: Kind) -> bool:
    """Whether the decisions are the logits of the probabilities, up to rounding."""
    from scipy.special import expit, softmax

    if kind == "binary":
        meant, told = expit(decision), _of_one(probability)
    else:
        meant, told = softmax(decision, axis=-1), probability
    return meant.shape == told.shape and np.allclose(meant, told, rtol=1e-3, atol=1e-6)


def _given(score: np.ndarray, kind: Kind, scale: str | None, loss: Loss) -> np.ndarray:
    if scale == "probability":
        return _from_prediction(score, kind, loss)
    if kind == "histogram" and scale is None and _are_shares(score):
        raise broken(
            "Class scores must not be probabilities",
            f"all of {len(score)} rows lie between 0 and 1 and sum to 1",
            "Say {scale:probability}, or {scale:score} if they are scores all the same.",
        )
    looks_like_probability = (
        kind == "binary" and len(score) and score.min() >= 0 and score.max() <= 1
    )
    if looks_like_probability and scale is None and score.min() < score.max():
        raise broken(
            "Scores must be logits",
            f"all of {len(score)} values lie between 0 and 1, like probabilities",
            "Say {scale:probability}, or {scale:score} if they are logits all the same.",
        )
    return score


def _are_shares(score: np.ndarray) -> bool:
    return score.ndim == 2 and bool(np.all(score >= 0) and np.allclose(score.sum(axis=1), 1))


def _from_prediction(prediction: np.ndarray, kind: Kind, loss: Loss) -> np.ndarray:
    """Predictions as scores that a loss reads; as they are where it takes these for its scores."""
    form, usual = loss.form(kind), named_loss(PROPER[kind])
    if not form.log_space:
        return _of_one(prediction) if kind == "binary" else prediction
    if form.link != usual.form(kind).link:
        raise broken(
            f"The first loss must read scores as {usual.name} does, or as the loss of the run does",
            f"{loss.name} does not",
            f"Put {usual.name} before it.",
        )
    return _to_scores(prediction, kind)


def _to_scores(prediction: np.ndarray, kind: Kind) -> np.ndarray:
    if kind == "binary":
        h = np.clip(_of_one(prediction), 1e-12, 1 - 1e-12)
        return np.log(h) - np.log1p(-h)
    return np.log(np.maximum(prediction, 1e-12))


def _of_one(prediction: np.ndarray) -> np.ndarray:
    """The probability of label 1, from one column or from those of both labels; more columns stay,
    to be refused."""
    return prediction[:, -1] if prediction.ndim == 2 and prediction.shape[1] <= 2 else prediction
