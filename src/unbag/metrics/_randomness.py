"""Predictions and bags in, a warning out where no estimate from these bags can be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from unbag.bags import Bags
from unbag.diagnosis import BagsNotRandom
from unbag.diagnosis._variance import Columns, Layout, analyse, chance

BEYOND_DOUBT = 1e-6
NOT_RANDOM = "The bags are not random"


def variance_ratio(prediction: np.ndarray, bags: Bags) -> float | None:
    """How much more mean predictions vary between bags than between random ones; None where chance
    may do that.

    It is the predictions that matter: what varies between bags without them biases nothing.
    """
    layout = Layout.of(bags.bag, bags.size, bags.stratum)
    if layout.between < 1 or layout.within < 1:
        return None
    columns = Columns.of(prediction.reshape(len(prediction), -1), layout)
    if not columns.varies.any():
        return None
    found = analyse(columns, layout, chance(columns, layout))
    return float(found.F.max()) if found.p.min() < BEYOND_DOUBT else None


def doubts(prediction: np.ndarray, bags: Bags) -> tuple[str, ...]:
    """Why nothing that is estimated from these bags can be trusted, if so."""
    ratio = variance_ratio(prediction, bags)
    if ratio is None:
        return ()
    return (
        f"{NOT_RANDOM}: mean predictions vary {ratio:.3g} times as much between them as between "
        "random ones. What is estimated from them is biased, and no interval tells. "
        "unbag.diagnose(bags) tells what to do.",
    )


def warn_of(notes: Sequence[str]) -> None:
    """Warn of bags that are not random, where the notes say so; speaks of the line that called our
    caller."""
    for note in notes:
        if note.startswith(NOT_RANDOM):
            warnings.warn(note, BagsNotRandom, stacklevel=3)
