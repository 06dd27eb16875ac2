"""Scores after an epoch in, what held-out bags and test labels say of them out."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unbag import weights
from unbag.arrays import mean_by
from unbag.bags import Bags
from unbag.losses import Loss
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


def estimate_held_out(setting: Setting, score: Any, held_out: HeldOut) -> dict[str, Any]:
    """What held-out bags say, with the model itself as reference: unbiased, since their reports never touched it.

    held_out : the loss (log loss, cross entropy, Poisson). choice : what epochs and rates are chosen by, the same plus
    two standard errors. The estimate alone is a bad judge: for a model with wild scores it has an enormous variance,
    and the lowest of many estimates then belongs to the wildest model (`docs/training.md` has the numbers).
    """
    value, error = estimate_with_error(setting, default_loss("any", setting.kind), score, held_out)
    return {"held_out": value, "choice": value + 2 * error}


def estimate_with_error(setting: Setting, loss: Loss, score: Any, held_out: HeldOut) -> tuple[Any, Any]:
    """The estimated loss, and its standard error from the spread between bags."""
    reference, f = predict_components(setting, score), loss.components(score, kind=setting.kind)
    _, bag, size, report, prior, stratum = held_out
    W = weights.anchored(bag, size, report, prior, reference, stratum=stratum)
    residual = report - mean_by(bag, reference, size)
    by_bag = weights.upm_by_bag(f, bag, size, residual, size @ residual / jnp.sum(size))
    return jnp.sum(W * f), jnp.std(by_bag, ddof=1) / jnp.sqrt(len(by_bag))


def labelled_loss(setting: Setting, score: Any, y: Any) -> Any:
    """The mean loss with labels."""
    return jnp.mean(default_loss("any", setting.kind).value(score, y, kind=setting.kind))


def labelled_auc(score: Any, y: Any) -> np.ndarray:
    """The area under the ROC curve of each row of scores, ties counted half. On the host: XLA is slow at sorting.

    >>> labelled_auc(np.array([[0.1, 0.1, 0.7]]), np.array([0, 1, 1])).round(2)
    array([0.75])
    """
    score, positive = np.asarray(score), np.asarray(y) > 0.5
    high, low = np.sort(score[:, positive], axis=1), np.sort(score[:, ~positive], axis=1)
    below = lambda side: np.array([np.searchsorted(b, a, side=side).sum() for a, b in zip(high, low, strict=True)])
    return (below("left") + below("right")) / 2 / max(high.shape[1] * low.shape[1], 1)


class EpochBar:
    """A progress bar on stderr: epochs, the lowest losses seen so far, and the time left. It vanishes at the end."""

    def __init__(self, epochs: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("training", total=epochs)
        self.lowest: dict[str, float] = {}
        self.bar.start()

    def __call__(self, epoch: int, seen: dict[str, np.ndarray]) -> None:
        """Note an epoch."""
        for name, value in seen.items():
            if name in ("train", "held_out", "test_loss") and np.isfinite(value).any():
                self.lowest[name] = min(self.lowest.get(name, np.inf), float(np.nanmin(value)))
        text = ", ".join(f"{name} {value:.4f}" for name, value in self.lowest.items())
        self.bar.update(self.task, completed=epoch, description=f"lowest {text}")

    def close(self) -> None:
        """Take the bar away."""
        self.bar.stop()


def as_features(X: Any) -> jax.Array:
    """Features as a device array: floats in single precision, whole numbers (bucket numbers) as they are."""
    X = np.asarray(X)
    return jnp.asarray(X, jnp.int32 if X.dtype.kind in "iu" else jnp.float32)
