"""A method in, the loss of a padded batch out: signed weights times components, matching, or the
count's likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from unbag import weights
from unbag._arrays import mean_by, sum_by
from unbag.bags import Bags, Kind
from unbag.likelihood import count_likelihood
from unbag.losses import LOSSES, Loss
from unbag.matching import proportion_matching
from unbag.medians import median_objective
from unbag.methods import BOUNDED, PROPER, Method
from unbag.training._loader import Batches

Objective = Callable[[Any, Batches, Loss], Any]
"""A method of your own: from (score, batch, loss) to the value that training lowers, in JAX.

Rows where `batch.real` is false and bags whose `batch.weight` is 0 are padding: they must not count."""


class Setting(NamedTuple):
    """What stays the same over a training."""

    method: Method | Objective
    loss: Loss
    kind: Kind
    strata: bool = False
    largest: int = 0  # bag, for the likelihood
    pool: int = 0
    groups: int | None = None


def judging_loss(setting: Setting, *, calm: bool = False) -> Loss:
    """What models are judged by, however trained: log loss, square (Brier) to be calm; for counts
    their own loss."""
    if setting.kind == "total":
        return setting.loss
    losses = BOUNDED if calm else PROPER
    return LOSSES[losses[setting.kind]]


def trivial_value(setting: Setting, bags: Bags) -> float:
    """How far from 0 the loss of the trivial predictor is. Only losses of counts grow with the
    labels: 0 for others."""
    if setting.kind != "total" or setting.loss.form("total").constant is None:
        return 0.0
    f = setting.loss.components(
        np.atleast_1d(setting.loss.trivial_score(bags.prior, kind="total")), kind="total"
    )
    return float(np.nanmax(np.abs(np.sum(bags.components().prior * f, axis=-1))))


def predict_components(setting: Setting, score: Any) -> Any:
    """The prediction in the form of a report: (1, probability), (1, count) or class
    probabilities."""
    form = setting.loss.form(setting.kind)
    prediction = form.predict(score)
    prediction = jnp.exp(prediction) if form.log_space else prediction
    if setting.kind == "histogram":
        return prediction
    if prediction.ndim > 1:
        prediction = prediction[..., 1]
    return jnp.stack([jnp.ones_like(prediction), prediction], axis=-1)


def batch_loss(
    setting: Setting, score: Any, batch: Batches, reference: Any, reference_mean: Any, further: Any
) -> Any:
    """The objective of a batch: what its bags say of the loss of these scores.

    `reference` are predictions in component form, fixed; `further` are the scores of the pool.
    """
    if callable(setting.method):
        return setting.method(score, batch, setting.loss)
    if setting.method == "likelihood":
        instances_per_bag = jnp.sum(batch.size) / jnp.sum(batch.size > 0)
        by_bag = _likelihood(setting, score, batch)
        return _bag_mean(setting, by_bag, batch, share=batch.size > 0) / instances_per_bag
    if setting.method == "matching":
        size = jnp.maximum(batch.size, 1)
        by_bag = proportion_matching(
            score, batch.bag, size, batch.report, loss=setting.loss, kind=setting.kind
        )
        return _bag_mean(setting, by_bag, batch, share=batch.size)
    f = setting.loss.components(score, kind=setting.kind) * batch.real[:, None]
    if setting.groups is not None:
        by_bag = weights.upm_by_bag(f, batch.bag, batch.size, batch.report, batch.prior)
        group = jnp.arange(len(by_bag)) % setting.groups
        return median_objective(by_bag, group, setting.groups, weight=batch.weight)
    if setting.pool and setting.method == "anchored" and reference_mean is None:
        reference_mean = _common_mean(
            setting, reference, batch, predict_components(setting, further)
        )
    W, from_pool = _weights(setting, batch, reference, reference_mean)
    total = jnp.sum(W * f)
    if from_pool is not None:
        of_pool = setting.loss.components(further, kind=setting.kind)
        total += jnp.sum(
            from_pool
            * mean_by(batch.further_stratum, of_pool, jnp.maximum(_pool(setting, batch), 1))
        )
    return total


def _bag_mean(setting: Setting, by_bag: Any, batch: Batches, *, share: Any) -> Any:
    """The mean over bags by their weights, which add up to 1 in each stratum; strata count by the
    sum of their shares.

    For matching, whose loss is that of one instance, a stratum counts by its instances; for the
    likelihood by its bags, because that of all bags is the product over them.
    """
    weight = batch.weight
    if setting.strata:
        weight = (
            weight
            * sum_by(batch.stratum, share.astype(weight.dtype), len(batch.prior))[batch.stratum]
        )
    return jnp.sum(jnp.where(weight > 0, by_bag, 0.0) * weight) / jnp.sum(weight)


def _likelihood(setting: Setting, score: Any, batch: Batches) -> Any:
    options: dict[str, Any] = {"kind": setting.kind, "largest": setting.largest}
    options |= {"noise": batch.noise} if batch.noise.size else {}
    return count_likelihood(score, batch.bag, batch.size, batch.report, **options)


def _pool(setting: Setting, batch: Batches) -> Any:
    """The number of instances of the pool in each stratum."""
    strata = len(batch.prior) if setting.strata else 1
    return sum_by(batch.further_stratum, jnp.ones(setting.pool), strata)


def _common_mean(setting: Setting, reference: Any, batch: Batches, further: Any) -> Any:
    """E g over batch and pool alike: a bag's own share in it must be the share that other instances
    have."""
    stratum = jnp.concatenate([batch.stratum[batch.bag], batch.further_stratum])
    real = jnp.concatenate([batch.real, jnp.ones(setting.pool)])
    values = jnp.concatenate([reference, further]) * real[:, None]
    count = sum_by(stratum, real, len(_pool(setting, batch)))
    mean = mean_by(stratum, values, jnp.maximum(count, 1))
    return mean if setting.strata else mean[0]


def _weights(
    setting: Setting, batch: Batches, reference: Any, reference_mean: Any
) -> tuple[Any, Any]:
    """Weights per row (and for the pool's mean), outside the gradient."""
    options = {
        "weight": batch.weight,
        "stratum": batch.stratum if setting.strata else None,
        "pool": _pool(setting, batch) if setting.pool else None,
    }
    given = (batch.size, batch.report, batch.prior)
    if setting.method == "anchored":
        reference = reference * batch.real[:, None]
        W = weights.anchored(batch.bag, *given, reference, reference_mean=reference_mean, **options)
        rows = len(batch.bag)
        return jax.lax.stop_gradient(W[:rows]), jax.lax.stop_gradient(
            W[rows:]
        ) if setting.pool else None
    linear: Callable[..., Any] = weights.upm if setting.method == "upm" else weights.easy
    W, count = linear(*given, **options), len(batch.size)
    return W[:count][batch.bag], W[count:] if setting.pool else None
