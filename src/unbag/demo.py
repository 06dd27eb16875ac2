"""The shipped Adult data in, a table of test log losses out: one linear model, learned from bags in three ways.

Nothing here looks at a label of the training rows, except the line `labels`, which is the ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console
from rich.progress import track
from rich.table import Table

from unbag import losses, weights
from unbag.bags import Bags, random_bags
from unbag.datasets import Dataset, load_adult
from unbag.matching import proportion_matching

METHODS = ("upm", "easy", "matching", "labels")
OPTIMIZER = optax.adam(0.01)


class Model(NamedTuple):
    """A linear model of the logit."""

    slope: Any
    intercept: Any

    def scores(self, X: Any) -> Any:
        """One logit per row."""
        return X @ self.slope + self.intercept


def batch_loss(model: Model, X: Any, bag: Any, size: Any, report: Any, W: Any) -> Any:
    """What a batch of whole bags says about the log loss: signed weights times components, or else matching."""
    score = model.scores(X)
    if W is None:
        return jnp.mean(proportion_matching(score, bag, size, report, loss=losses.log, kind="binary"))
    return jnp.sum(W[bag] * losses.log.components(score))


@jax.jit
def step(model: Model, state: Any, *batch: Any) -> tuple[Model, Any]:
    """One step of Adam."""
    updates, state = OPTIMIZER.update(jax.grad(batch_loss)(model, *batch), state)
    return optax.apply_updates(model, updates), state  # type: ignore[return-value]


def train(bags: Bags, method: str, *, seed: int, epochs: int) -> Iterator[Model]:
    """The model after each epoch; it starts as the trivial predictor, the logit of the prior."""
    p = float(bags.prior)
    model = Model(jnp.zeros(bags.X.shape[1]), jnp.asarray(np.log(p / (1 - p))))
    state = OPTIMIZER.init(model)  # type: ignore[arg-type]
    for epoch in range(epochs):
        for batch in bags.batches(4096, seed=seed, epoch=epoch):
            report, prior = batch.components()
            W = None if method == "matching" else getattr(weights, method)(batch.size, report, prior)
            model, state = step(model, state, batch.X, batch.bag, batch.size, report, W)
        yield model


def estimated_loss(model: Model, held_out: Bags) -> float:
    """Log loss estimated from held-out bags alone, without bias."""
    W = weights.upm(held_out.size, *held_out.components())
    return float(np.sum(W[held_out.bag] * losses.log.components(np.asarray(model.scores(held_out.X)))))


def loss_on_test_data(adult: Dataset, method: str, size: int, *, seed: int, epochs: int) -> float:
    """Test log loss after the epoch that held-out bags choose."""
    if method == "labels":
        method, size = "easy", 1
    learn, held_out = random_bags(adult.X, adult.y, size=size, seed=seed).split(0.8, seed=seed)
    models = train(learn, method, seed=seed, epochs=epochs)
    chosen = min(models, key=lambda model: estimated_loss(model, held_out))
    return float(losses.log.value(np.asarray(chosen.scores(adult.X_test)), adult.y_test).mean())


def run(*, sizes: Sequence[int] = (16, 64, 256), seeds: Sequence[int] = (0, 1, 2), epochs: int = 40) -> Table:
    """The table: test log loss of each method and bag size, mean and standard error over the seeds."""
    adult = load_adult()
    jobs = [(method, size) for method in METHODS for size in sizes if method != "labels" or size == sizes[0]]
    found: dict[tuple[str, int], list[float]] = {job: [] for job in jobs}
    for (method, size), seed in track(
        list(product(jobs, seeds)), "learning from bags", console=Console(stderr=True), transient=True
    ):
        found[method, size].append(loss_on_test_data(adult, method, size, seed=seed, epochs=epochs))
    table = Table("method", *(f"bags of {k}" for k in sizes), title="Adult, linear model: test log loss")
    for method in METHODS:
        table.add_row(method, *(_cell(found.get((method, size), found[method, sizes[0]])) for size in sizes))
    table.add_row("(trivial)", *[f"{_trivial_loss(adult):.4f}"] * len(sizes))
    table.caption = (
        f"mean ± standard error of {len(seeds)} seeds; {epochs} epochs of Adam, the epoch chosen from held-out bags; "
        "labels = bags of one, the ceiling"
    )
    return table


def _cell(values: Sequence[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.4f} ± {error:.4f}"


def _trivial_loss(adult: Dataset) -> float:
    p = adult.y.mean()
    return float(losses.log.value(np.full(len(adult.y_test), np.log(p / (1 - p))), adult.y_test).mean())
