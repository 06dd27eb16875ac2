"""What `fit` asks of bags: can some be held out, are they random, which methods suit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unbag import models
from unbag._rules import broken
from unbag.bags import Bags
from unbag.diagnosis import BagsNotRandom, diagnose
from unbag.losses import Form
from unbag.matching import unbounded
from unbag.methods import FROM_BAGS, METHODS
from unbag.tables import FeaturePlan

RATES = (1e-3, 3e-3, 1e-2, 3e-2)
AUTO = tuple(name for name in FROM_BAGS if name != "easy")  # whose variance is never the lowest
ACROSS_BAGS = tuple(name for name in FROM_BAGS if not METHODS[name].needs_random_bags)
LOOK_AT = 2e6  # numbers in bags, so that the diagnosis stays a small part of a fit


def enough(bags: Bags, method: str) -> bool:
    """Whether some bags can be held out: there must be 10, and in each stratum some for learning
    and some to hold."""
    count, fewest = np.array([len(bags)]), 4
    if bags.stratum is not None:
        count = np.bincount(bags.stratum)
    if method in ACROSS_BAGS:
        fewest = 2
    return len(bags) >= 10 and bool((count[count > 0] >= fewest).all())


def without_strata(bags: Bags) -> Bags:
    """The same for a method that compares each bag with its own prediction, to which strata are of
    no use."""
    if bags.stratum is None:
        return bags
    return replace(bags, stratum=None, known_prior=None, stratum_names=None)


def bounded_methods(bags: Bags, form: Form) -> tuple[str, ...]:
    """The methods that "auto" tries: matching only where its loss has a lower bound at every
    report."""
    bad = unbounded(bags.components().report, form, bags.kind).any()
    return tuple(method for method in AUTO if not (bad and method == "matching"))


def overall_prior(bags: Bags, importance: np.ndarray | None = None) -> np.ndarray:
    """One prior for all strata, by their shares of the rows; of rows with weights, their weighted
    mean."""
    if importance is not None:
        return np.average(bags.report, axis=0, weights=importance)
    if bags.stratum is None:
        return bags.prior
    instances = np.bincount(bags.stratum, weights=bags.size, minlength=bags.strata)
    held = instances > 0
    return np.average(bags.prior[held], axis=0, weights=instances[held])


def network(width: int, plan: FeaturePlan | None, hidden: Sequence[int], **further: Any) -> Any:
    """A perceptron, with embeddings of the last columns when the plan says that they are bucket
    numbers."""
    if plan is None or not plan.buckets:
        return models.mlp(width, hidden, **further)
    return models.mixed_network(
        plan.numbers, plan.buckets, plan.dimensions, widths=hidden, **further
    )


def warn_unless_random(bags: Bags) -> None:
    """Warn of bags that are not random; bags of one, which are labels, never are."""
    diagnosis = diagnose(bags, most=LOOK_AT)
    if not diagnosis.random:
        more = "unbag.diagnose(bags) tells more; diagnose=False says that you know."
        text = f"{diagnosis.verdict} {diagnosis.remedy} {more}"
        warnings.warn(text, BagsNotRandom, stacklevel=4)


def row_importance(sample_weight: Any, count: int, *, labelled: bool) -> np.ndarray | None:
    """Sample weights of rows that are bags of one, or nothing."""
    if sample_weight is None:
        return None
    if not labelled:
        raise broken(
            "Rows in bags must not have weights",
            "sample_weight came with bag",
            "A report speaks of its whole bag; declare noise with Bags(noise=...) instead.",
        )
    weight = np.asarray(sample_weight, float)
    if weight.ndim == 0:
        weight = np.full(count, float(weight))
    right = np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0
    if weight.shape != (count,) or not right:
        raise broken(
            "Sample weights must be finite, not negative, not all zero, and one for each of "
            f"{count} rows",
            f"an array of shape {weight.shape} and sum {weight.sum():g} came",
            "Leave the weights out for equal ones.",
        )
    return weight


def flat(y: Any) -> np.ndarray:
    """A table of one column as one entry per row: a histogram has two classes at least."""
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        return y[:, 0]
    return y
