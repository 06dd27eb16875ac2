"""Scores of all that may be evaluated: a model of any kind, a function, or scores themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np

from unbag._rules import broken, check_probabilities, one_of, refuse_probabilities
from unbag.bags import Bags, Kind
from unbag.losses import PROPER, Link, Loss, named_loss, proper_loss
from unbag.metrics._leakage import check_apart
from unbag.metrics._sums import ScoredBags, predict_by

Scale = Literal["score", "probability"]
# the loss of an evaluation beside the proper one, which says what scores mean
SECOND: dict[Kind, str] = {"binary": "square", "histogram": "brier", "total": "square"}


@runtime_checkable
class TrainedRun(Protocol):
    """A `Run` of `unbag.train` or boosted trees: the loss, or the link, says what scores are."""

    @property
    def loss(self) -> str: ...
    @property
    def history(self) -> Any: ...
    def scores(self, X: Any) -> Any: ...


@runtime_checkable
class Decider(Protocol):
    """An estimator with decisions, such as those of scikit-learn and of unbag."""

    def decision_function(self, X: Any) -> Any: ...


@runtime_checkable
class Scorer(Protocol):
    """A model with scores: logits, log rates or class scores."""

    def scores(self, X: Any) -> Any: ...


@runtime_checkable
class ProbabilityModel(Protocol):
    """A model with probabilities."""

    def predict_proba(self, X: Any) -> Any: ...


@runtime_checkable
class CountModel(Protocol):
    """A model that predicts counts."""

    def predict(self, X: Any) -> Any: ...


Evaluable = (
    TrainedRun
    | Decider
    | Scorer
    | ProbabilityModel
    | CountModel
    | Callable[[Any], Any]
    | np.ndarray
    | Sequence[Any]
)
"""What may be evaluated: one of these models, a function from features to scores, or scores."""


def chosen_losses(losses: Sequence[Loss | str] | None, kind: Kind) -> list[Loss]:
    """The losses asked for, or the usual ones of this kind of report.

    Parameters
    ----------
    losses : sequence of Loss or str, or None
        Losses, or their names.
    kind : {"binary", "total", "histogram"}
        The kind of report.
    """
    chosen = losses or (PROPER[kind], SECOND[kind])
    return [loss if isinstance(loss, Loss) else named_loss(loss) for loss in chosen]


def score_bags(
    model: Evaluable,
    bags: Bags,
    *,
    losses: Sequence[Loss | str] | None = None,
    scale: Scale | None = None,
    trained_on: Bags | None = None,
) -> ScoredBags:
    """Ask a model once for the scores of held-out bags.

    Parameters
    ----------
    model : Evaluable
        A model, a function, or scores: see `evaluate`.
    bags : Bags
        Held-out bags.
    losses : sequence of Loss or str, optional
        The first one says what a score predicts.
    scale : {"score", "probability"}, optional
        What an array holds, or what a function returns.
    trained_on : Bags, optional
        The bags the model learned from, to make sure that none of them is held out as well.
    """
    check_apart(model, bags, trained_on)
    loss = chosen_losses(losses, bags.kind)[0]
    return ScoredBags.of(scores_on(model, bags, scale, loss=loss), bags, loss)


def scores_on(
    model: Evaluable, bags: Bags, scale: Scale | None = None, *, loss: Loss | None = None
) -> np.ndarray:
    """Scores of the instances of bags, in the form of rows that the model takes, with their offset.

    Parameters
    ----------
    model : Evaluable
        A model, a function, or scores: see `evaluate`. One that has `offset_apart` takes the
        offset of the rows beside them, in `scores_at`.
    bags : Bags
        With features.
    scale, loss : optional
        See `scores_of`.
    """
    X, kind, usual = bags.rows_for(model), bags.kind, proper_loss(bags.kind)
    if bags.offset is None or not getattr(model, "offset_apart", False):
        return scores_of(model, X, kind, scale, loss=loss)
    score = cast(Any, model).scores_at(X, bags.offset)
    return _reread(score, usual.form(kind).link, kind, loss or usual)


def scores_of(
    model: Evaluable, X: Any, kind: Kind, scale: Scale | None = None, *, loss: Loss | None = None
) -> np.ndarray:
    """Scores (logits, log rates, class scores) of a model of any kind.

    Parameters
    ----------
    model : Evaluable
        A model, a function, or scores: see `evaluate`.
    X : array, sparse matrix or table
        Features, one row per instance.
    kind : {"binary", "total", "histogram"}
        The kind of report.
    scale : {"score", "probability"}, optional
        What an array holds, or what a function returns.
    loss : Loss, optional
        Whose scores are wanted, by default log loss, Poisson or cross entropy; that of totals may
        want counts.
    """
    one_of("A scale", scale or "score", get_args(Scale), "Leave it out for scores.")
    loss = loss or proper_loss(kind)
    if is_array(model):
        return _given(np.asarray(model, float), kind, scale, loss)
    if X is None:
        raise broken(
            "A model must have features to score",
            "bags without X given",
            "Give X to the bags, or scores.",
        )
    link = proper_loss(kind).form(kind).link
    if isinstance(model, TrainedRun):
        # its link says how its scores predict; the name of a loss of your own does not
        link = getattr(model, "link", None) or named_loss(model.loss).form(kind).link
        score = model.scores(X)
    elif isinstance(model, Decider):
        score = _decisions(model, X, kind)
    elif isinstance(model, Scorer):
        score = model.scores(X)
    elif isinstance(model, ProbabilityModel):
        return _from_prediction(np.asarray(model.predict_proba(X), float), kind, loss)
    elif kind == "total" and isinstance(model, CountModel):  # of labels, predict gives classes
        return _from_prediction(np.asarray(model.predict(X), float), kind, loss)
    elif callable(model):
        return _given(np.asarray(model(X), float), kind, scale, loss)
    else:
        raise broken(
            "A model must have decision_function, predict_proba or predict, or be a function",
            f"{type(model).__name__} given",
            "Or give the scores themselves.",
        )
    return _reread(np.asarray(score, float), link, kind, loss)


def is_array(model: Any) -> bool:
    """Whether scores were given in place of a model."""
    if isinstance(model, list | tuple | np.ndarray):
        return True
    return hasattr(model, "__array__") and not callable(model)


def _decisions(model: Decider, X: Any, kind: Kind) -> np.ndarray:
    """Decisions of an estimator where they are logits; where they are not (margins), logits of its
    probabilities."""
    score = np.asarray(model.decision_function(X), float)
    ours = hasattr(model, "learned_")  # an estimator of unbag decides by logits: no need to ask
    if kind != "total" and not ours and isinstance(model, ProbabilityModel):
        probability = np.asarray(model.predict_proba(X), float)
        if not _are_logits(score, probability, kind):
            return _to_scores(probability, kind)
    return score


def _reread(score: np.ndarray, link: Link, kind: Kind, loss: Loss) -> np.ndarray:
    """Scores of one link as scores that a loss reads."""
    if link == loss.form(kind).link:
        return score
    h = predict_by(link, score, kind)
    if kind != "histogram":
        h = h[:, 0]
    return _from_prediction(h, kind, loss)


def _are_logits(decision: np.ndarray, probability: np.ndarray, kind: Kind) -> bool:
    """Whether the decisions are the logits of the probabilities, up to rounding."""
    from scipy.special import expit, softmax

    if kind == "binary":
        implied, probability = expit(decision), _of_one(probability)
    else:
        implied = softmax(decision, axis=-1)
    if implied.shape != probability.shape:
        return False
    return np.allclose(implied, probability, rtol=1e-3, atol=1e-6)


def _given(score: np.ndarray, kind: Kind, scale: Scale | None, loss: Loss) -> np.ndarray:
    """Scores as they are; what looks like probabilities must be called so."""
    if scale == "probability":
        if kind != "total":
            check_probabilities(score)
        return _from_prediction(score, kind, loss)
    shares = score.ndim == 2 and np.all(score >= 0) and np.allclose(score.sum(axis=1), 1)
    if scale is None and kind == "histogram" and shares:
        raise broken(
            "Class scores must not be probabilities",
            f"all of {len(score)} rows lie between 0 and 1 and sum to 1",
            "Say {scale:probability}, or {scale:score} if they are scores all the same.",
        )
    if scale is None and kind == "binary" and len(score):
        refuse_probabilities(score)
    return score


def _from_prediction(prediction: np.ndarray, kind: Kind, loss: Loss) -> np.ndarray:
    """Predictions as scores that a loss reads; as they are where it takes these for its scores."""
    form, usual = loss.form(kind), proper_loss(kind)
    if form.log_space and form.link != usual.form(kind).link:
        raise broken(
            f"The first loss must read scores as {usual.name} does, or as the loss of the run does",
            f"{loss.name} does not",
            f"Put {usual.name} before it.",
        )
    if form.log_space:
        return _to_scores(prediction, kind)
    if kind == "binary":
        return _of_one(prediction)
    return prediction


def _to_scores(prediction: np.ndarray, kind: Kind) -> np.ndarray:
    if kind == "binary":
        h = np.clip(_of_one(prediction), 1e-12, 1 - 1e-12)
        return np.log(h) - np.log1p(-h)
    return np.log(np.maximum(prediction, 1e-12))


def _of_one(prediction: np.ndarray) -> np.ndarray:
    """The probability of label 1, from one column or from those of both labels; more columns stay,
    to be refused."""
    if prediction.ndim == 2 and prediction.shape[1] <= 2:
        return prediction[:, -1]
    return prediction
