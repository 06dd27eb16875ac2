"""A model and bags in, a `Run` out. Learning rates x seeds train together: a sweep is vmap over one
compiled step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unbag._rules import broken
from unbag.bags import Bags
from unbag.losses import Loss, named_loss, smoothed
from unbag.matching import check_reports
from unbag.training._features import shared_features
from unbag.training._loader import Loader, declared_by_all, epoch_batches
from unbag.training._objective import (
    Method,
    Objective,
    Setting,
    check_method,
    default_loss,
    judging_loss,
    trivial_value,
)
from unbag.training._rules import check_groups, check_held_out, check_link, check_place, check_pool
from unbag.training._run import DIVERGED, Record, Run
from unbag.training._sharding import Devices, fitting, place_on
from unbag.training._step import (
    Machine,
    Reference,
    call_model,
    make_optimizer,
    stack_models,
    start_state,
)
from unbag.training._validation import EpochBar, Watcher, as_features


def train(
    model: Any,
    bags: Bags,
    method: Method | Objective = "anchored",
    loss: Loss | str | None = None,
    *,
    learning_rate: float = 3e-3,
    seed: int = 0,
    epochs: int = 50,
    **options: Any,
) -> Run:
    """Train a model from bags.

    Parameters
    ----------
    model : any JAX pytree with `model(X)` or `model(X, key=...)`, e.g. of `unbag.models`; or give
        `apply=`.
    bags : with features X. For `labels`, ordinary supervision, bags of one.
    method : "anchored" (default), "upm", "easy", "matching", "likelihood" or "labels". Declared
        noise is part of the likelihood; for the other methods, noisier bags weigh less.
    loss : of `unbag.losses`, or its name. Default: square (Brier) for anchored, log loss (cross
        entropy) for the other methods, Poisson for counts.
    learning_rate, epochs : of Adam. seed : of the order of the bags (and of dropout).
    options : see `sweep`.

    Returns
    -------
    A `Run`: the model, its history per epoch, and whether it diverged.

    >>> import unbag
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4096, 2))
    >>> bags = unbag.random_bags(x, rng.uniform(size=4096) < 1 / (1 + np.exp(-2 * x[:, 0])), size=16, seed=0)
    >>> run = train(unbag.models.linear(2, key=0), bags, learning_rate=0.1, epochs=40)
    >>> slope = run.model.layers[-1].weight[:, 0]
    >>> bool(abs(slope[0] - 2) < 0.5 and abs(slope[1]) < 0.5)
    True
    """
    runs = sweep(
        lambda _: model,
        bags,
        method,
        loss,
        learning_rates=(learning_rate,),
        seeds=(seed,),
        epochs=epochs,
        **options,
    )
    run = runs[0][0]
    if run.diverged is not None:
        warnings.warn(
            f"The training diverged in epoch {run.diverged}: the model is the last good one. "
            f"Lower the learning rate ({learning_rate:g}), or clip gradients with clip=1.",
            stacklevel=2,
        )
    return run


def sweep(
    make: Callable[[int], Any],
    bags: Bags | Sequence[Bags],
    method: Method | Objective = "anchored",
    loss: Loss | str | None = None,
    *,
    learning_rates: Sequence[float],
    seeds: Sequence[int] = (0,),
    epochs: int = 50,
    batch: int = 4096,
    held_out: Bags | Sequence[Bags] | None = None,
    test: tuple[Any, Any] | None = None,
    X: Any = None,
    apply: Callable[..., Any] | None = None,
    smoothing: float = 0.0,
    weight_decay: float = 0.0,
    clip: float | None = None,
    patience: int | None = None,
    reference: Reference = "current",
    pool: int = 0,
    groups: int | None = None,
    importance: np.ndarray | None = None,
    devices: Devices | None = None,
    microbatch: int | None = None,
    progress: Callable[[int, dict[str, Any]], None] | bool = False,
) -> list[list[Run]]:
    """Train learning rates x seeds together.

    Parameters
    ----------
    make : from a seed to the model that this seed starts with.
    bags, held_out : one for all seeds, or one for each. Held-out bags choose the epoch of each run.
    batch : about how many instances; whole bags, two at least.
    test : labelled features and labels, only ever to report `test_loss` and `test_auc`.
    X : features that bags without X refer to by their `rows`, so that many sets of bags can share
        them.
    apply : from (model, X, key) to scores, when the model is not callable.
    smoothing : of labels; off by default, because its optimum is not calibrated.
    weight_decay : of AdamW. clip : largest norm of a gradient.
    patience : stop when held-out bags have seen no run improve for so many epochs.
    reference : of the anchored method: the "current" prediction, or that of the instance's "last"
        visit.
    pool : so many further instances estimate the means (each those of its stratum), for when a
        batch holds few bags.
    groups : replace the mean over bags by the median of so many group means, in which noisier bags
        weigh less (with `upm` and bags of one size).
    importance : of each bag, a factor on its weight; for labels (bags of one) this is what others
        call sample weight.
    devices : divide the rows of each batch among so many devices, or "all"; X then stays on the
        host. See `docs/engines.md`, also for several processes.
    microbatch : rows of a batch whose activations are in memory at once; the result is that of the
        whole batch.
    progress : True for a bar with losses and the time left, or a function called as progress(epoch,
        what was seen).

    Returns
    -------
    Runs by seed and learning rate: `runs[seed][rate]`.
    """
    given = [bags] * len(seeds) if isinstance(bags, Bags) else list(bags)
    reported = many = declared_by_all([b.reported() for b in given])
    setting = _setting(many, method, loss, smoothing, pool, groups)
    place = place_on(devices, microbatch)
    check_place(place, reference, groups)
    features, many = shared_features(many, X, as_features if place.mesh is None else fitting)
    models = [make(seed) for seed in seeds]
    params, static = eqx.partition(stack_models(models, len(learning_rates)), eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(static)
    machine = Machine(
        setting,
        apply or call_model,
        (tree, tuple(leaves)),
        make_optimizer(weight_decay, clip),
        reference,
        place,
    )
    state = place.copied(
        start_state(machine, params, features, many, len(seeds), len(learning_rates))
    )
    factors = [None if importance is None else importance[b.observed] for b in given]
    loaders = [
        Loader(
            b, batch=batch, seed=seed, pool=pool, importance=factor, by_noise=method != "likelihood"
        )
        for b, seed, factor in zip(many, seeds, factors, strict=True)
    ]
    if groups is not None:
        check_groups(loaders, groups, method, pool, importance)
    judges = [held_out] * len(seeds) if isinstance(held_out, Bags) else held_out
    check_held_out(reported, judges or ())
    calm, hold = judging_loss(setting, calm=True), as_features if place.mesh is None else place.held
    watcher = Watcher(judges, test, X, loss=judging_loss(setting), calm_loss=calm, hold=hold)
    limit = max(DIVERGED, 1000 * max(trivial_value(setting, b) for b in reported))
    record = Record(len(seeds), len(learning_rates), state.params, limit=limit)
    rates, shape = jnp.asarray(learning_rates, jnp.float32), None
    bar = (
        EpochBar(epochs)
        if progress is True
        else nullcontext(progress or (lambda epoch, seen: None))
    )
    with bar as told:
        for epoch in range(1, epochs + 1):
            values = []
            batches, shape = epoch_batches(loaders, epoch, shape, multiple=place.count)
            for number, (arrays, active) in enumerate(batches):
                keys = (
                    np.asarray(seeds, np.int32),
                    np.full(len(seeds), epoch * 100_003 + number, np.int32),
                )
                given = features
                if place.mesh is not None:
                    given = (
                        place.divided(features, arrays.row),
                        place.divided(features, arrays.further),
                    )
                state, value = machine.step(state, rates, given, arrays, active, keys)
                values.append((value, active[:, None]))
            seen = {"train": _mean_of_active(values)}
            by_seed = [
                jax.tree.map(lambda leaf, s=s: leaf[s], state.params) for s in range(len(seeds))
            ]
            seen |= watcher.look(machine.look, by_seed, epoch, setting.kind)
            state = record.add(epoch, seen, state)
            told(epoch, seen)
            if record.finished(patience):
                break
    link = setting.loss.form(setting.kind).link
    return record.runs(
        machine.model, method, setting.loss.name, seeds, learning_rates, reported, link
    )


def _setting(
    many: Sequence[Bags],
    method: Method | Objective,
    loss: Loss | str | None,
    smoothing: float,
    pool: int,
    groups: int | None,
) -> Setting:
    check_method(method)
    bags = many[0]
    chosen = (
        default_loss(method, bags.kind)
        if loss is None
        else named_loss(loss)
        if isinstance(loss, str)
        else loss
    )
    chosen.form(bags.kind)
    if method == "matching":
        for each in many:
            check_reports(
                each.components().report, chosen.form(each.kind), name=chosen.name, kind=each.kind
            )
    sizes = np.concatenate([b.size for b in many])
    if method == "labels" and sizes.max() > 1:
        raise broken(
            "The method labels must have bags of one, which are labels",
            f"bags of up to {sizes.max()} came",
            "Make them with random_bags(X, y, {size:1}, seed=0).",
        )
    check_pool(pool, method)
    check_link(method, chosen, bags.kind)
    return Setting(
        method="easy" if method == "labels" else method,
        loss=_smoothed(chosen, smoothing) if smoothing else chosen,
        kind=bags.kind,
        strata=bags.stratum is not None,
        largest=int(sizes.max()) if method == "likelihood" else 0,
        pool=pool,
        groups=groups,
    )


_smoothed = lru_cache(smoothed)


def _mean_of_active(values: list[tuple[Any, np.ndarray]]) -> np.ndarray:
    """Mean objective of each run over the batches that it had."""
    total = sum(np.where(active, np.asarray(value), 0.0) for value, active in values)
    return np.asarray(total / sum(active for _, active in values))
