"""Whether predictions show that bags are not random, so that no estimate from them can be
trusted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from unbag.bags import Bags
from unbag.diagnosis import BagsNotRandom, between_bags
from unbag.metrics._evaluation import Note

BEYOND_DOUBT = 1e-6


def variance_ratio(prediction: np.ndarray, bags: Bags) -> float | None:
    """How much more mean predictions vary between bags than between random ones; None where chance
    may do that.

    It is the predictions that matter: what varies between bags without them biases nothing.
    """
    variance = between_bags(prediction.reshape(len(prediction), -1), bags)
    if variance is None or not variance.p.min() < BEYOND_DOUBT:
        return None
    return float(variance.F.max())


def doubts(prediction: np.ndarray, bags: Bags) -> tuple[Note, ...]:
    """Why nothing that is estimated from these bags can be trusted, if so.

    Parameters
    ----------
    prediction : array (instances, components)
        What models predict.
    bags : Bags
        The bags.
    """
    ratio = variance_ratio(prediction, bags)
    if ratio is None:
        return ()
    text = (
        f"The bags are not random: mean predictions vary {ratio:.3g} times as much between them as "
        "between random ones. What is estimated from them is biased, and no interval tells. "
        "unbag.diagnose(bags) tells what to do."
    )
    return (Note(text, "not_random"),)


def warn_of(notes: Sequence[str]) -> None:
    """Warn of bags that are not random, where a note says so; the warning points to the line that
    called our caller."""
    for note in notes:
        if isinstance(note, Note) and note.kind == "not_random":
            warnings.warn(note, BagsNotRandom, stacklevel=3)
