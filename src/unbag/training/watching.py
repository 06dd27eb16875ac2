"""Scores after an epoch in, what held-out bags and test labels say of them out."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from unbag import weights
from unbag.bags import Bags
from unbag.training.objectives import Setting, default_loss, predict_components


class HeldOut(NamedTuple):
    """Held-out bags as arrays."""

    X: Any
    bag: Any
    size: Any
    report: Any
    prior: Any
    stratum: Any

    @staticmethod
    def of(bags: Bags, X: Any = None) -> HeldOut:
        """From bags that hold their features, or whose rows are those of X."""
        report, prior = (jnp.asarray(a, jnp.float32) for a in bags.components())
        features = as_features(bags.X) if X is None else as_features(np.asarray(X)[bags.rows])
        stratum = None if bags.stratum is None else jnp.asarray(bags.stratum)
        return HeldOut(features, jnp.asarray(bags.bag), jnp.asarray(bags.size, jnp.float32), report, prior, stratum)


def estimate_held_out(setting: Setting, score: Any, held_out: HeldOut) -> Any:
    """The loss that held-out bags estimate (log loss, cross entropy, Poisson), with the model itself as reference.

    Unbiased, since the held-out reports never touched the model, and narrower than GeneralUPM.
    """
    loss = default_loss("any", setting.kind)
    reference = predict_components(setting, score)
    _, bag, size, report, prior, stratum = held_out
    W = weights.anchored(bag, size, report, prior, reference, stratum=stratum)
    return jnp.sum(W * loss.components(score, kind=setting.kind))


def labelled_loss(setting: Setting, score: Any, y: Any) -> Any:
    """The mean loss with labels."""
    return jnp.mean(default_loss("any", setting.kind).value(score, y, kind=setting.kind))


def labelled_auc(score: Any, y: Any) -> Any:
    """The area under the ROC curve, ties counted half.

    >>> round(float(labelled_auc(jnp.array([0.1, 0.1, 0.7]), jnp.array([0, 1, 1]))), 2)
    0.75
    """
    positive = y > 0.5
    count, ordered = jnp.sum(positive), jnp.sort(score)
    rank = (jnp.searchsorted(ordered, score, side="left") + jnp.searchsorted(ordered, score, side="right") + 1) / 2
    pairs = count * (len(score) - count).astype(jnp.float32)
    return (jnp.sum(jnp.where(positive, rank, 0.0)) - count * (count + 1) / 2) / pairs


def as_features(X: Any) -> jax.Array:
    """Features as a device array: floats in single precision, whole numbers (bucket numbers) as they are."""
    X = np.asarray(X)
    return jnp.asarray(X, jnp.int32 if X.dtype.kind in "iu" else jnp.float32)
