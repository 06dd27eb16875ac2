"""Training: a model and bags in, a `Run` out. Learning rates x seeds train together, because a
sweep maps one compiled step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from unbag._progress import Progress, terminal_bar, whom_to_inform
from unbag.bags import Bags
from unbag.losses import Loss
from unbag.methods import Method
from unbag.metrics import check_apart
from unbag.training._config import TrainingConfig, make_setting
from unbag.training._loader import Loader, epoch_batches, shared_features
from unbag.training._objective import Objective, judging_loss, trivial_value
from unbag.training._run import DIVERGED, Record, Run
from unbag.training._sharding import place_on
from unbag.training._step import (
    Adam,
    Trainer,
    TrainState,
    call_model,
    split_model,
    stack_models,
    step_key,
)
from unbag.training._validation import StopRule, Validation


@contextmanager
def progress_of(progress: Any, epochs: int) -> Iterator[Callable[[int, dict[str, Any]], Any]]:
    """A bar on stderr for True, the function itself, or what is informed in this context for
    False."""
    if progress is True:
        with terminal_bar("training") as bar:
            yield partial(_inform, bar, epochs)
    else:
        yield progress or partial(_inform, whom_to_inform(), epochs)


def _inform(progress: Progress | None, epochs: int, epoch: int, observed: dict[str, Any]) -> None:
    if progress is not None:
        losses = np.asarray(observed.get("held_out", observed.get("train", np.nan)), float)
        words = f"network: epoch {epoch}"
        if np.isfinite(losses).any():
            words += f", loss {np.nanmin(losses):.4f}"
        progress(epoch, epochs, words)


def train(
    model: Any,
    bags: Bags,
    method: Method | Objective = "anchored",
    loss: Loss | str | None = None,
    *,
    learning_rate: float = 3e-3,
    seed: int = 0,
    epochs: int | None = None,
    **options: Any,
) -> Run:
    """Train a model from bags.

    Parameters
    ----------
    model : pytree
        Any JAX pytree with `model(X)` or `model(X, key=...)`, such as those of `unbag.models`; or
        give `apply=`.
    bags : Bags
        With features X. For `labels`, ordinary supervision, bags of one.
    method : str or callable
        "anchored" (default), "upm", "easy", "matching", "likelihood" or "labels", or an objective
        of your own. Declared noise is part of the likelihood; for the other methods, noisier bags
        weigh less.
    loss : Loss or str, optional
        Of `unbag.losses`, or its name. Default: square (Brier) for anchored, log loss (cross
        entropy) for the other methods, Poisson for counts.
    learning_rate : float
        Of Adam.
    seed : int
        Of the order of the bags (and of dropout).
    epochs : int, optional
        Passes over the bags, 50 by default.
    **options : Any
        Of `sweep`: `held_out`, `test`, `X`, and the fields of `TrainingConfig`.

    Returns
    -------
    Run
        The model, its history per epoch, and whether it diverged.

    >>> import unbag
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4096, 2))
    >>> y = rng.uniform(size=4096) < 1 / (1 + np.exp(-2 * x[:, 0]))
    >>> bags = unbag.random_bags(x, y, size=16, seed=0)
    >>> run = train(unbag.models.linear(2, key=0), bags, learning_rate=0.1, epochs=40)
    >>> slope = run.model.layers[-1].weight[:, 0]
    >>> bool(abs(slope[0] - 2) < 0.5 and abs(slope[1]) < 0.5)
    True
    """
    if epochs is not None:
        options["epochs"] = epochs
    options |= {"learning_rates": (learning_rate,), "seeds": (seed,)}
    ((run,),) = sweep(lambda _: model, bags, method, loss, **options)
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
    held_out: Bags | Sequence[Bags] | None = None,
    test: tuple[Any, Any] | None = None,
    X: Any = None,
    config: TrainingConfig | None = None,
    **options: Any,
) -> list[list[Run]]:
    """Train learning rates x seeds together.

    Parameters
    ----------
    make : callable
        From a seed to the model that this seed starts with.
    bags : Bags or sequence of Bags
        One for all seeds, or one for each.
    method : str or callable
        As in `train`.
    loss : Loss or str, optional
        As in `train`.
    learning_rates : sequence of float
        Of Adam.
    seeds : sequence of int
        Of the order of the bags (and of dropout).
    held_out : Bags or sequence of Bags, optional
        One for all seeds, or one for each. They choose the epoch of each run.
    test : tuple of array, optional
        Labelled features and labels, only ever to report `test_loss` and `test_auc`.
    X : array, optional
        Features that bags without X refer to by their `rows`, so that many sets of bags can share
        them.
    config : TrainingConfig, optional
        All other options.
    **options : Any
        Fields of `TrainingConfig`, such as `epochs`, `batch` and `patience`, in place of those of
        `config`.

    Returns
    -------
    list of list of Run
        By seed and learning rate: `runs[seed][rate]`.
    """
    config = (config or TrainingConfig()).with_options(options)
    place = place_on(config.devices, config.microbatch)
    given, judges = (
        [b] * len(seeds) if isinstance(b, Bags) else list(b or ()) for b in (bags, held_out)
    )
    reported = [each.reported() for each in given]
    for i, each in enumerate(reported):  # batches of all seeds have one shape
        if each.noise is None and any(other.noise is not None for other in reported):
            reported[i] = replace(each, noise=np.zeros(len(each)))
    setting = make_setting(reported, method, loss, config)
    host, pointing = shared_features(reported, X)
    features = place.features(host)
    loaders = []
    for own, seed, every in zip(pointing, seeds, given, strict=True):
        loader = Loader(own, batch=config.batch, seed=seed, by_noise=setting.by_noise)
        if config.importance is not None:
            loader.importance = config.importance[every.observed]
        loaders.append(loader)
    for learned, held in zip(reported, judges, strict=False):
        if learned.size.max() > 1:  # bags of one are rows, which many tables number alike
            check_apart(None, held, learned)
    # what looks at all runs after each epoch goes by proper losses, whatever the method's own is
    proper, calm = judging_loss(setting), judging_loss(setting, calm=True)
    validation = Validation(judges, test, X, setting.kind, proper, calm, hold=place.whole)
    params, static = split_model(stack_models([make(seed) for seed in seeds], len(learning_rates)))
    optimizer = Adam(config.weight_decay, config.clip)
    apply = config.apply or call_model
    trainer = Trainer(setting, static, optimizer, place, apply, len(learning_rates) > 1)
    moments = optimizer.init(params, (len(seeds), len(learning_rates)))
    state = place.copied(TrainState(jax.device_put(params), moments))
    rule = StopRule(len(seeds), len(learning_rates), config.patience)
    # losses of counts grow with the counts, so that what is wild is so beside the trivial one
    usual = max(trivial_value(setting, each) for each in reported)
    record = Record(state.params, rule, limit=max(DIVERGED, 1000 * usual))
    rates, shape = np.asarray(learning_rates, np.float32), None
    with progress_of(config.progress, config.epochs) as progress:
        for epoch in range(1, config.epochs + 1):
            values = []  # looked at after the epoch: who asks for a number waits for its step
            batches, shape = epoch_batches(loaders, epoch, shape, multiple=place.count)
            for number, (arrays, active) in enumerate(batches):
                rows, keys = place.batch(features, arrays), step_key(seeds, epoch, number)
                state, value = trainer.step_all(state, rates, rows, arrays, active, keys)
                values.append((value, active[:, None]))
            total = sum(np.where(active, np.asarray(value), 0.0) for value, active in values)
            observed = {"train": np.asarray(total / sum(active for _, active in values))}
            observed |= validation.look(trainer.look, state.params)
            state = record.add(epoch, observed, state)
            if progress(epoch, observed) or record.finished():
                break
    link = setting.loss.form(setting.kind).link
    about = {"method": getattr(method, "__name__", method), "loss": setting.loss.name, "link": link}
    return record.runs(trainer.model, seeds, learning_rates, reported, **about)
