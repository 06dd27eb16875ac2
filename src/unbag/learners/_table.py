"""The table of learners by name, and which of them learn from these bags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import one_of
from unbag.bags import Bags
from unbag.learners._protocol import Learner, Model
from unbag.learners._trees import load_lightgbm


class Entry(NamedTuple):
    """A learner as the table knows it.

    Parameters
    ----------
    make : callable
        The learner as it usually is.
    restore : callable
        Its model from what a file holds: `Model.restore`.
    """

    make: Callable[[], Learner]
    restore: Callable[[dict[str, np.ndarray], dict[str, Any]], Model]


def _late(module: str, learner: str, model: str) -> Entry:
    """The entry of two classes that are imported when they are used: networks import JAX."""

    def make() -> Learner:
        return getattr(import_module(module), learner)()

    def restore(arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> Model:
        return getattr(import_module(module), model).restore(arrays, settings)

    return Entry(make, restore)


LEARNERS: dict[str, Entry] = {
    "additive": _late("unbag.additive", "Additive", "AdditiveModel"),
    "trees": _late("unbag.learners._trees", "Trees", "TreesModel"),
    "network": _late("unbag.learners._network", "NetworkLearner", "NetworkModel"),
    "mean_map": _late("unbag.peers", "MeanMap", "LinearModel"),
    "laplacian_mean_map": _late("unbag.peers", "LaplacianMeanMap", "LinearModel"),
    "alter_svm": _late("unbag.peers", "AlterSVM", "LinearModel"),
    "em": _late("unbag.peers", "PseudoLabelEM", "LinearModel"),
    "belief_propagation": _late("unbag.peers", "BeliefPropagation", "LinearModel"),
    "distribution_regression": _late("unbag.peers", "DistributionRegression", "LinearModel"),
    "bag_means": _late("unbag.peers", "BagMeans", "LinearModel"),
}
"""The learners by name; a further one is a line here."""
AUTO = ("additive", "trees")  # what `learner="auto"` combines for tables and matrices
# matrices of more columns are images, embeddings or the like: `learner="auto"` takes a network
WIDE = 200
# with fewer bags `learner="auto"` takes a network beside the others: measured on Adult (31 and 63
# bags, test log loss lower by .005 on average) and bike sharing (42 and 85 bags: lower in 4 of 4);
# with 127 and 508 bags of Adult it was higher by .002 and .001
FEW_BAGS = 100


def usual_learners(bags: Bags) -> tuple[str, ...]:
    """The learners for these bags when nobody names them."""
    X = bags.X
    if isinstance(X, np.ndarray) and (X.ndim > 2 or X.shape[1] > WIDE):
        return ("network",)
    if bags.observed.sum() < FEW_BAGS:
        return (*AUTO, "network")
    return AUTO


def learners_of(chosen: Any, bags: Bags) -> tuple[list[Learner], list[str]]:
    """The learners asked for, those that need no random bags first; without trees where LightGBM
    cannot be loaded and nobody asked for them by name."""
    notes: list[str] = []
    names: Sequence[Any] = [chosen] if isinstance(chosen, str) or _is_learner(chosen) else chosen
    if chosen == "auto":
        names = usual_learners(bags)
        try:
            load_lightgbm()
        except ImportError as error:
            names = [name for name in names if name != "trees"]
            notes.append(f"Learned without trees: {error}")
    made: list[Any] = [one if _is_learner(one) else make_learner(one) for one in names]
    return sorted(made, key=attrgetter("needs_random_bags")), notes


def _is_learner(value: Any) -> bool:
    return hasattr(value, "fit") and hasattr(value, "needs_random_bags")


def make_learner(name: str) -> Learner:
    """The learner of this name, with its usual options."""
    one_of("A learner", name, LEARNERS, "Choose one of these or auto, or give one of your own.")
    return LEARNERS[name].make()
