"""Notes on why estimates or predictions cannot be trusted: bags that are not random, a level that
is off."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from unbag._arrays import sum_by
from unbag.bags import Bags
from unbag.diagnosis import BagsNotRandom, between_bags

BEYOND_DOUBT = 1e-6
OFF_LEVEL = 5.0  # standard errors; chance exceeds them once in two million times
FEWEST = 8  # bags that tell a standard error


class Note(str):
    """A sentence on what could not be estimated or cannot be trusted, and of which kind it is.

    A note is its text, so it prints and goes into JSON as it is.

    Attributes
    ----------
    kind : {"not_random", "no_auc", "two_reports", "counts", "bins"}
        What it is about, for those who act on it.
    """

    kind: str

    def __new__(cls, text: str, kind: str = "") -> Note:
        """A text with its kind."""
        note = super().__new__(cls, text)
        note.kind = kind
        return note


def doubts(prediction: np.ndarray, bags: Bags) -> tuple[Note, ...]:
    """Why nothing that is estimated from these bags can be trusted, if so: mean predictions vary
    more between them than between random ones.

    It is the predictions that matter: what varies between bags without them biases nothing.

    Parameters
    ----------
    prediction : array (instances, components)
        What models predict.
    bags : Bags
        The bags.
    """
    variance = between_bags(prediction.reshape(len(prediction), -1), bags)
    if variance is None or not variance.p.min() < BEYOND_DOUBT:
        return ()
    text = (
        f"The bags are not random: mean predictions vary {variance.F.max():.3g} times as much "
        "between them as between random ones. What is estimated from them is biased, and no "
        "interval tells. unbag.diagnose(bags) tells what to do."
    )
    return (Note(text, "not_random"),)


def warn_of(notes: Sequence[str]) -> None:
    """Warn of bags that are not random, where a note says so; the warning points to the line that
    called our caller."""
    for note in notes:
        if isinstance(note, Note) and note.kind == "not_random":
            warnings.warn(note, BagsNotRandom, stacklevel=3)


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
    if abs(shift[worst]) <= max(OFF_LEVEL * error[worst], 1e-9):
        return None
    mean = h[:, worst].mean()
    return (
        f"The mean prediction, {mean:.4g}, is not the mean report, {mean - shift[worst]:.4g}: they "
        f"differ by {abs(shift[worst]):.2g}, {abs(shift[worst]) / max(error[worst], 1e-12):.0f} "
        "standard errors. Recalibrate the model, or do not use its level."
    )
