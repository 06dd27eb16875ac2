"""The loss of a padded batch by any method: signed weights times components, matching, or the
likelihood of counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from unbag import weights
from unbag._arrays import sum_by
from unbag.bags import Bags, Kind
from unbag.likelihood import count_likelihood
from unbag.losses import LOSSES, Loss
from unbag.matching import proportion_matching
from unbag.methods import BOUNDED, PROPER, Method
from unbag.objectives import OBJECTIVES, Ask
from unbag.training._loader import Batches

Objective = Callable[[Any, Batches, Loss], Any]
"""A method of your own: from (score, batch, loss) to the value that training lowers, in JAX.

Rows where `batch.real` is false and bags whose `batch.weight` is 0 are padding, which must not
count."""


class Setting(NamedTuple):
    """What stays the same over a training; a step is compiled for it.

    Parameters
    ----------
    method : str or callable
        Of `unbag.methods`, or an objective of your own.
    loss : Loss
        Of instances.
    kind : str
        Of the reports.
    strata : bool
        Whether the bags have strata.
    largest : int
        The largest bag, which only the likelihood must know.
    """

    method: Method | Objective
    loss: Loss
    kind: Kind
    strata: bool = False
    largest: int = 0

    @property
    def by_noise(self) -> bool:
        """Whether noisier bags weigh less; the likelihood has the noise in its variance."""
        return self.method != "likelihood"


def judging_loss(setting: Setting, *, calm: bool = False) -> Loss:
    """What models are judged by, however trained: log loss, square (Brier) to be calm; for counts
    their own loss."""
    if setting.kind == "total":
        return setting.loss
    losses = {True: BOUNDED, False: PROPER}[calm]
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
    prediction = setting.loss.form(setting.kind).link.prediction(score, setting.kind)
    if setting.kind == "histogram":
        return prediction
    return jnp.stack([jnp.ones_like(prediction), prediction], axis=-1)


def batch_loss(
    setting: Setting,
    score: Any,
    batch: Batches,
    reference: Any,
    reference_mean: Any,
    ask: Ask | None = None,
) -> Any:
    """The objective of a batch: what its bags say of the loss of these scores.

    Parameters
    ----------
    setting : Setting
        Method, loss and kind of report.
    score : array
        Of each row.
    batch : Batches
        Of one run.
    reference : array
        Of the anchored method: predictions in component form, fixed.
    reference_mean : array, optional
        Their mean; by default that of the batch.
    ask : Ask, optional
        What a method of `unbag.objectives` may ask of the model.
    """
    if callable(setting.method):
        return setting.method(score, batch, setting.loss)
    if setting.method in OBJECTIVES:
        return OBJECTIVES[setting.method](score, batch, ask)  # pyright: ignore[reportArgumentType]
    if setting.method == "likelihood":
        instances_per_bag = jnp.sum(batch.size) / jnp.sum(batch.size > 0)
        noise = batch.noise if batch.noise.size else None
        about: dict[str, Any] = {"kind": setting.kind, "largest": setting.largest, "noise": noise}
        by_bag = count_likelihood(score, batch.bag, batch.size, batch.report, **about)
        return _bag_mean(setting, by_bag, batch, share=batch.size > 0) / instances_per_bag
    if setting.method == "matching":
        size = jnp.maximum(batch.size, 1)
        by_bag = proportion_matching(
            score, batch.bag, size, batch.report, loss=setting.loss, kind=setting.kind
        )
        return _bag_mean(setting, by_bag, batch, share=batch.size)
    f = setting.loss.components(score, kind=setting.kind) * batch.real[:, None]
    return jnp.sum(_weights(setting, batch, reference, reference_mean) * f)


def _bag_mean(setting: Setting, by_bag: Any, batch: Batches, *, share: Any) -> Any:
    """The mean over bags by their weights, which add up to 1 in each stratum; strata count by the
    sum of their shares.

    For matching, whose loss is that of one instance, a stratum counts by its instances; for the
    likelihood by its bags, because that of all bags is the product over them.
    """
    weight = batch.weight
    if setting.strata:
        shares = sum_by(batch.stratum, share.astype(weight.dtype), len(batch.prior))
        weight = weight * shares[batch.stratum]
    total = jnp.maximum(jnp.sum(weight), 1e-30)  # a batch in which no bag counts says nothing
    return jnp.sum(jnp.where(weight > 0, by_bag, 0.0) * weight) / total


def _weights(setting: Setting, batch: Batches, reference: Any, reference_mean: Any) -> Any:
    """Weights per row, outside the gradient."""
    options = {"weight": batch.weight}
    if setting.strata:
        options["stratum"] = batch.stratum
    given = (batch.size, batch.report, batch.prior)
    if setting.method == "anchored":
        reference = reference * batch.real[:, None]
        W = weights.anchored(batch.bag, *given, reference, reference_mean=reference_mean, **options)
        return jax.lax.stop_gradient(W)
    linear: dict[Any, Callable[..., Any]] = {"upm": weights.upm, "easy": weights.easy}
    return linear[setting.method](*given, **options)[batch.bag]
