"""Does the mean prediction agree with the mean report? A model that is off by a level is told."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag._arrays import sum_by
from unbag.bags import Bags

DOUBT = 5.0  # standard errors; chance exceeds them once in two million times
FEWEST = 8  # bags that tell a standard error


def level_note(predicted: Any, bags: Bags) -> str | None:
    """A sentence where the mean prediction differs from the mean report beyond doubt, else None.

    The standard error is that of the residuals of bags, count less sum of predictions, around their
    mean, so that it needs no model of the labels.

    Parameters
    ----------
    predicted : array
        Probabilities, counts, or one column of probabilities for each class, of the instances.
    bags : Bags
        With observed reports only.

    >>> from unbag import random_bags
    >>> y = np.random.default_rng(0).random(4000) < 0.2
    >>> bags = random_bags(None, y, size=20, seed=0)
    >>> level_note(np.full(4000, 0.2), bags) is None
    True
    >>> level_note(np.full(4000, 0.25), bags)[:58]
    'The mean prediction, 0.25, is not the mean report, 0.2082:'
    """
    h = np.asarray(predicted, float).reshape(len(bags.bag), -1)
    if len(bags) < FEWEST:
        return None
    k, n = bags.size[:, None].astype(float), len(bags.bag)
    off = sum_by(bags.bag, h, len(bags)) - k * bags.report.reshape(len(bags), -1)
    shift = off.sum(axis=0) / n
    error = np.sqrt(((off - k * shift) ** 2).sum(axis=0)) / n
    worst = int(np.argmax(np.abs(shift) / np.maximum(error, 1e-12)))
    if abs(shift[worst]) <= max(DOUBT * error[worst], 1e-9):
        return None
    mean = h[:, worst].mean()
    return (
        f"The mean prediction, {mean:.4g}, is not the mean report, {mean - shift[worst]:.4g}: they "
        f"differ by {abs(shift[worst]):.2g}, {abs(shift[worst]) / max(error[worst], 1e-12):.0f} "
        "standard errors. Recalibrate the model, or do not use its level."
    )
