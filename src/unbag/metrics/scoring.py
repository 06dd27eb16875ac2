"""A model of any kind and features in, scores out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from unbag.bags import Bags, Kind
from unbag.bags.designing import stable_hash
from unbag.bags.holding import take_rows
from unbag.losses import Loss


def scores_of(model: Any, X: Any, kind: Kind, scale: str | None = None, *, loss: Loss | None = None) -> np.ndarray:
    """Scores (logits, log rates, class scores) of a fitted estimator, a `Run`, a function, or an array of scores.

    scale : whether an array, or what a function returns, holds scores or probabilities.
    loss : whose scores are wanted; matters for totals, where those of the square loss are counts and no log rates.
    """
    counts = kind == "total" and loss is not None and not loss.form(kind).log_space
    if scale not in (None, "score", "probability"):
        raise ValueError(f"A scale must be score or probability: {scale!r} came. Leave it out for scores.")
    if is_array(model):
        return _given(np.asarray(model, float), kind, scale, counts)
    if X is None:
        raise ValueError("A model must have features to score: bags without X came. Give X to the bags, or scores.")
    if hasattr(model, "history"):  # a `Run` or boosted trees, which say by their loss what their scores are
        score = model.scores(X) if hasattr(model, "scores") else model.model(np.asarray(X, np.float32))
        score = np.asarray(score, float)
        of_counts = kind == "total" and model.loss == "square"
        return _from_prediction(score, kind, counts) if of_counts else _to_counts(score, counts)
    if hasattr(model, "decision_function"):
        return _decided(model, X, kind)
    if hasattr(model, "scores"):
        return np.asarray(model.scores(X), float)
    if hasattr(model, "predict_proba"):
        return _from_prediction(np.asarray(model.predict_proba(X), float), kind, counts)
    if kind == "total" and hasattr(model, "predict"):
        return _from_prediction(np.asarray(model.predict(X), float), kind, counts)
    if callable(model):
        return _given(np.asarray(model(X), float), kind, scale, counts)
    raise ValueError(
        f"A model must have decision_function, predict_proba or predict, or be a function: {type(model).__name__} "
        "came. Or give the scores themselves."
    )


def is_array(model: Any) -> bool:
    """Whether scores came in place of a model."""
    return isinstance(model, list | tuple | np.ndarray) or (hasattr(model, "__array__") and not callable(model))


def _decided(model: Any, X: Any, kind: Kind) -> np.ndarray:
    """Decisions of an estimator where they are logits; where they are not (margins), logits of its probabilities."""
    decision = np.asarray(model.decision_function(X), float)
    ours = hasattr(model, "learned_")  # an estimator of unbag decides by logits: no need to ask it twice
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


def _given(score: np.ndarray, kind: Kind, scale: str | None, counts: bool) -> np.ndarray:
    if scale == "probability":
        return _from_prediction(score, kind, counts)
    if kind == "histogram" and scale is None and _are_shares(score):
        raise ValueError(
            f"Class scores must not be probabilities: all of {len(score)} rows lie between 0 and 1 and sum to 1. Say "
            "scale='probability', or scale='score' if they are scores all the same."
        )
    looks_like_probability = kind == "binary" and len(score) and score.min() >= 0 and score.max() <= 1
    if looks_like_probability and scale is None and score.min() < score.max():
        raise ValueError(
            f"Scores must be logits: all of {len(score)} values lie between 0 and 1, like probabilities. Say "
            "scale='probability', or scale='score' if they are logits all the same."
        )
    return score


def _are_shares(score: np.ndarray) -> bool:
    return score.ndim == 2 and bool(np.all(score >= 0) and np.allclose(score.sum(axis=1), 1))


def _to_counts(score: np.ndarray, counts: bool) -> np.ndarray:
    """Log rates as they are, or as counts."""
    return np.exp(score) if counts else score


def _from_prediction(prediction: np.ndarray, kind: Kind, counts: bool) -> np.ndarray:
    """Predictions as scores; counts stay as they are where these are wanted."""
    return prediction if counts else _to_scores(prediction, kind)


def _to_scores(prediction: np.ndarray, kind: Kind) -> np.ndarray:
    if kind == "binary":
        h = np.clip(_of_one(prediction), 1e-12, 1 - 1e-12)
        return np.log(h) - np.log1p(-h)
    return np.log(np.maximum(prediction, 1e-12))


def _of_one(prediction: np.ndarray) -> np.ndarray:
    """The probability of label 1, from one column or from those of both labels; more columns stay, to be refused."""
    return prediction[:, -1] if prediction.ndim == 2 and prediction.shape[1] <= 2 else prediction


def check_apart(model: Any, held_out: Bags, trained_on: Bags | None) -> None:
    """Refuse held-out bags that the model has learned from.

    The same bags are those of the same names, if sizes and reports agree, or agree so often that some reports were
    restated; without names, those that hold the same rows of the table that the bags were made from, with the same
    features. Rows without features are not known again.
    """
    given = trained_on is not None
    trained_on = trained_on if given else getattr(model, "bags_", None)  # what a run or an estimator remembers
    if trained_on is None:
        _refuse_overlap(_marked(held_out, getattr(model, "learned_", None)), "bag")
        return
    by_name = trained_on.names is not None and held_out.names is not None
    if not (by_name or given):
        return
    shared = _shared_bags(trained_on, held_out) if by_name else _shared_rows(trained_on, held_out)
    _refuse_overlap(shared, "bag" if by_name else "row")


def _refuse_overlap(shared: list[Any], thing: str) -> None:
    if shared:
        raise ValueError(
            f"Held-out bags must not overlap the bags that the model learned from: {thing} {shared[0]} is in both "
            f"({len(shared)} such). Split by bag before training, with bags.split(0.8, seed=0)."
        )


FEW = 20  # so many bags must have a name in common before their agreement is more than chance


def marks(bags: Bags) -> np.ndarray:
    """Numbers by which a model file knows a bag again: hashes of its name; of name, size and report; of name and size.

    >>> marks(Bags(np.array([0, 0, 1]), np.array([0.5, 1.0]), names=np.array(["mon", "tue"]))).shape
    (2, 3)
    """
    names = _names(bags)
    hashes = [stable_hash(names, salt="name"), _mark(names, bags.size, bags.report), _mark(names, bags.size)]
    return np.stack(hashes, axis=1)


def _names(bags: Bags) -> np.ndarray:
    return np.arange(len(bags)) if bags.names is None else np.asarray(bags.names)


def _mark(names: np.ndarray, size: np.ndarray, report: np.ndarray | None = None) -> np.ndarray:
    """A hash of each bag's name and size, and of its report if that is given."""
    if report is None:
        return stable_hash(names, size.tolist(), salt="size")
    content = [f"{k}|{a}" for k, a in zip(size.tolist(), report.tolist(), strict=True)]
    return stable_hash(names, content, salt="bag")


class Known(NamedTuple):
    """Which bags a model learned from, and which of these now come with another size or report."""

    bag: np.ndarray
    restated: np.ndarray


def known_bags(bags: Bags, learned: np.ndarray | None) -> Known:
    """The bags that a model learned from, by the marks of its file.

    Where the table is the one that it learned from, all bags of a name that it knows, because a report may be restated
    or not there yet; else those of the same name, size and report. The oldest files hold no names.
    """
    nothing = np.zeros(len(bags), bool)
    if learned is None:
        return Known(nothing, nothing)
    own, columns = marks(bags), learned.reshape(len(learned), -1).T
    if len(columns) == 1:
        return Known(np.isin(own[:, 1], columns[0]), nothing)
    named, same = (np.isin(own[:, i], columns[i]) for i in (0, 1))
    if not _same_table(bags, named & bags.observed, columns):
        return Known(named & same, nothing)
    return Known(named, named & ~same & bags.observed)


def _same_table(bags: Bags, shared: np.ndarray, learned: np.ndarray) -> bool:
    """Whether bags whose names are known are of the table learned from; two tables may merely be numbered alike."""
    names, size, report = _names(bags)[shared], bags.size[shared], bags.report[shared]
    moved = lambda values, shift: np.roll(values, -shift, axis=0)
    whole = lambda shift: np.isin(_mark(names, moved(size, shift), moved(report, shift)), learned[1])
    sizes = lambda shift: np.isin(_mark(names, moved(size, shift)), learned[2])
    return bool(shared.any()) and _agree([whole, sizes] if len(learned) > 2 else [whole])


def _agree(ways: Sequence[Callable[[int], np.ndarray]]) -> bool:
    """Whether all shared names agree in size and report; or half of them, or nine of ten in size, far beyond chance.

    Parameters
    ----------
    ways : which bags agree in size and report, and which in size, after contents were moved on by some places. Moved
        contents agree by chance only, as do those of bags of one size in two tables that are numbered alike.
    """
    if ways[0](0).all():
        return True
    for agree, least in zip(ways, (0.5, 0.9), strict=False):  # files of before do not hold the sizes
        share, chance = agree(0).mean(), np.mean([agree(shift) for shift in (1, 2, 3)])
        if len(agree(0)) >= FEW and share >= least and share - chance > 0.25:
            return True
    return False


def _marked(bags: Bags, learned: np.ndarray | None) -> list[Any]:
    """What `_shared_bags` finds, from the marks that a model file holds; old files hold none of the names."""
    if learned is None or learned.ndim == 1 or bags.names is None:
        return []
    named = np.isin(stable_hash(bags.names, salt="name"), learned[:, 0]) & bags.observed
    return np.asarray(bags.names)[named].tolist() if _same_table(bags, named, learned.T) else []


def _shared_bags(one: Bags, other: Bags) -> list[Any]:
    """Names of the bags with a report in both, if both are the same table; else they were merely numbered alike."""
    here, there = np.flatnonzero(one.observed), np.flatnonzero(other.observed)
    name, i, j = np.intersect1d(_names(one)[here], _names(other)[there], return_indices=True)
    i, j = here[i], there[j]
    size = lambda shift: one.size[i] == other.size[np.roll(j, -shift)]
    report = lambda shift: _by_row(np.isclose(one.report[i], other.report[np.roll(j, -shift)], equal_nan=True))
    return name.tolist() if _agree([lambda shift: size(shift) & report(shift), size]) else []


def _shared_rows(one: Bags, other: Bags) -> list[Any]:
    if one.rows is None or other.rows is None or one.X is None or other.X is None:
        return []
    row, i, j = np.intersect1d(one.rows, other.rows, return_indices=True)
    return row[_same_rows(take_rows(one.X, i), take_rows(other.X, j))].tolist()


def _same_rows(one: Any, other: Any) -> np.ndarray:
    """Which rows have the same features, a gap being like a gap; none do where features cannot be compared."""
    none, sparse = np.zeros(one.shape[0], bool), [hasattr(X, "tocsr") for X in (one, other)]
    if tuple(one.shape) != tuple(other.shape) or any(sparse) != all(sparse):
        return none
    if all(sparse):
        return np.diff((one.tocsr() != other.tocsr()).tocsr().indptr) == 0
    a, b = np.asarray(one), np.asarray(other)
    same = (a == b) | ((a != a) & (b != b))
    return _by_row(same) if np.shape(same) == a.shape else none


def _by_row(same: np.ndarray) -> np.ndarray:
    return np.asarray(same.all(axis=tuple(range(1, same.ndim))))
