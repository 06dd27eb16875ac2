"""The options of a training in one place, and what of them does not go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np

from unbag._rules import broken, one_of
from unbag.bags import Bags, Kind
from unbag.likelihood import check_link
from unbag.losses import Loss, named_loss, smoothed
from unbag.matching import check_reports
from unbag.methods import METHODS, Method, check_kind, usual_loss
from unbag.training._objective import Objective, Setting
from unbag.training._sharding import Devices

MATCHED = ("matching", "moments", "llp_fc", "llp_vat", "mixbag")
"""Methods that have no lower bound at reports outside the range of their loss."""

Progress = Callable[[int, dict[str, Any]], bool | None]
"""Called after each epoch with its number and what was observed, by seed and rate; True ends the
training."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingConfig:
    """How models are trained, whatever the model, the bags, the method and the rate.

    Parameters
    ----------
    epochs : int
        Passes over the bags.
    batch : int
        About how many instances a step sees; whole bags, two at least.
    apply : callable, optional
        From (model, X, key) to scores, when the model is not callable.
    smoothing : float
        Of labels; off by default, because its optimum is not calibrated.
    weight_decay : float
        Of AdamW.
    clip : float, optional
        Largest norm of a gradient.
    patience : int, optional
        Stop when held-out bags saw no run improve for so many epochs.
    importance : array, optional
        Of each bag, a factor on its weight; for bags of one, which are labels, this is what others
        call the sample weight.
    devices : int, "all" or sequence, optional
        Divide the rows of each batch among so many devices; X then stays on the host. See
        `docs/engines.md`, also for several processes.
    microbatch : int, optional
        Rows of a batch whose activations are in memory at once; the result is that of the whole
        batch.
    progress : bool or callable
        True for a bar with losses and the time left, or a function called after each epoch as
        progress(epoch, observed), which ends the training where it returns True.
    """

    epochs: int = 50
    batch: int = 4096
    apply: Callable[..., Any] | None = None
    smoothing: float = 0.0
    weight_decay: float = 0.0
    clip: float | None = None
    patience: int | None = None
    importance: np.ndarray | None = None
    devices: Devices | None = None
    microbatch: int | None = None
    progress: Progress | bool = False

    def with_options(self, options: dict[str, Any]) -> TrainingConfig:
        """The same with some options changed; a name that is no option is refused.

        >>> TrainingConfig().with_options({"epoch": 3})
        Traceback (most recent call last):
        unbag.Refused: An option of a training must be one of epochs, batch, apply, smoothing, \
weight_decay, clip, patience, importance, devices, microbatch, progress: epoch is none. Did you \
mean epochs=?
        """
        known = [field.name for field in fields(self)]
        unknown = [name for name in options if name not in known]
        if unknown:
            near = get_close_matches(unknown[0], known, n=1)
            rule = f"An option of a training must be one of {', '.join(known)}"
            remedy = f"Did you mean {{{near[0]}}}?" if near else "Leave it out."
            raise broken(rule, f"{unknown[0]} is none", remedy)
        return replace(self, **options)


def make_setting(
    many: Sequence[Bags],
    method: Method | Objective,
    loss: Loss | str | None,
    config: TrainingConfig,
) -> Setting:
    """What stays the same over a training, checked against the bags of all seeds."""
    if not isinstance(config.epochs, Integral) or config.epochs < 1:
        rule = "Epochs must be a whole number of at least 1"
        raise broken(rule, f"{config.epochs!r} given", "Leave {epochs} out for the usual number.")
    if not callable(method):
        one_of("A method", method, METHODS)
        check_kind(method, many[0].kind)
    kind, largest = many[0].kind, int(max(bags.size.max() for bags in many))
    chosen = resolve_loss(loss, method, kind)
    form = chosen.form(kind)
    if method in MATCHED:
        for bags in many:
            report = bags.components().report
            check_reports(report, form, name=chosen.name, kind=kind, names=bags.names)
    if method == "labels" and largest > 1:
        rule = "The method labels must have bags of one, which are labels"
        remedy = "Make them with random_bags(X, y, {size:1}, seed=0)."
        raise broken(rule, f"bags of up to {largest} given", remedy)
    if method == "likelihood":
        check_link(chosen, kind)
    if config.smoothing:
        chosen = _smoothed(chosen, config.smoothing)
    return Setting(
        # labels are bags of one, for which EasyLLP is the ordinary loss
        method={"labels": "easy"}.get(method, method),  # pyright: ignore
        loss=chosen,
        kind=kind,
        strata=many[0].stratum is not None,
        largest=largest * (method == "likelihood"),  # other methods need not compile it in
    )


_smoothed = lru_cache(smoothed)  # one object for each loss, so that a compiled step is found again


def resolve_loss(loss: Loss | str | None, method: Method | Objective, kind: Kind) -> Loss:
    """A loss by its name, the method's usual one where none is named."""
    if not loss:
        return usual_loss(method, kind)
    if isinstance(loss, str):
        return named_loss(loss)
    return loss
