"""Options of a training in; nothing out, or an error that says what does not go together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, Kind
from unbag.losses import Loss
from unbag.metrics._leakage import check_apart
from unbag.metrics._sums import predict
from unbag.training._loader import Loader
from unbag.training._objective import Method, Objective, default_loss
from unbag.training._sharding import Place
from unbag.training._step import Reference

TAKE_MEANS = ("anchored", "upm", "easy")


def check_pool(pool: int, method: Method | Objective) -> None:
    """A pool lends its instances to means; other methods have none."""
    if pool and method not in TAKE_MEANS:
        raise broken(
            (
                "A pool must go with a method that takes means over instances, "
                f"{', '.join(TAKE_MEANS)}"
            ),
            f"{getattr(method, '__name__', method)} came",
            "Leave the pool out.",
        )


def check_link(method: Method | Objective, loss: Loss, kind: Kind) -> None:
    """The likelihood reads scores as logits, class scores or log rates, and the loss must predict
    by them so."""
    score = np.array([[-1.0, 0.5], [0.0, 2.0]]) if kind == "histogram" else np.array([-1.0, 0.5])
    usual = default_loss("likelihood", kind)
    if method == "likelihood" and not np.allclose(
        predict(score, loss, kind), predict(score, usual, kind)
    ):
        raise broken(
            f"The likelihood must go with a loss that reads scores as {usual.name} does",
            f"{loss.name} came",
            "Leave the loss out.",
        )


def check_groups(
    loaders: Sequence[Loader],
    groups: int,
    method: Method | Objective,
    pool: int,
    importance: np.ndarray | None,
) -> None:
    """Medians are of upm's losses by bag, and each batch has a bag for each group."""
    bags, sizes = loaders[0].bags, np.concatenate([loader.bags.size for loader in loaders])
    more = {
        "strata": bags.stratum is not None,
        "a pool": pool > 0,
        "importance": importance is not None,
    }
    if method != "upm" or sizes.min() != sizes.max() or any(more.values()):
        name = getattr(method, "__name__", method)
        came = ", ".join(
            [
                f"{name}",
                f"sizes {sizes.min()} to {sizes.max()}",
                *(what for what in more if more[what]),
            ]
        )
        raise broken(
            (
                "Medians of group means must have the method upm and bags of one size, without "
                "strata, pool and importance"
            ),
            f"{came} came",
            "Leave groups out.",
        )
    fewest = min(len(numbers) for loader in loaders for numbers in loader.plan(1))
    if not 1 <= groups <= fewest:
        raise broken(
            f"The number of groups must lie between 1 and {fewest}, the fewest bags in a batch",
            f"{groups} came",
            "Make the batch larger, or take fewer groups.",
        )


def check_held_out(many: Sequence[Bags], judges: Sequence[Bags]) -> None:
    """Held-out bags that are not among the bags to learn from."""
    for learned, held_out in zip(many, judges, strict=False):
        if learned.size.max() > 1:  # bags of one are rows, which many tables number alike
            check_apart(None, held_out, learned)


def check_place(place: Place, reference: Reference, groups: int | None) -> None:
    """What needs all rows on one device."""
    if place.mesh is not None and (reference == "last" or groups is not None):
        what = "reference='last'" if reference == "last" else "groups"
        raise broken(
            f"A training with {what} must be on one device",
            "devices came",
            "Leave one of them out.",
        )
