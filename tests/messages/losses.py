"""Bad input of losses, and the whole message that it gets."""

import numpy as np

from unbag import losses
from unbag.losses import from_callable, smoothed


def total_only():
    return losses.Loss("counts", {"total": losses.poisson.forms["total"]})


MESSAGES = [
    (
        lambda: losses.cross_entropy.components(np.ones((1, 3)), kind="total"),
        "A loss for total counts must be affine in the label (loss = f1 + y f2), because only "
        "the sum of the counts in a bag is known: cross_entropy is not. Use square or poisson, "
        "or report full histograms.",
    ),
    (
        lambda: losses.brier.form("total"),
        "A loss for total counts must be affine in the label (loss = f1 + y f2), because only "
        "the sum of the counts in a bag is known: brier is not. Use square or poisson, or "
        "report full histograms.",
    ),
    (
        lambda: losses.log.form("histogram"),
        (
            "A loss for histogram reports must give one component per class: log does not. Use "
            "cross_entropy or brier."
        ),
    ),
    (
        lambda: losses.log.form("ternary"),
        (
            "A kind of report must be one of binary, total, histogram: 'ternary' given. Choose one "
            "of these."
        ),
    ),
    (
        lambda: from_callable(lambda h, y: h * y).trivial_score(0.5),
        "A loss must know the score that predicts a prior, to start from it: your loss does "
        "not. Start from the usual initialisation.",
    ),
    (
        lambda: losses.brier.form("binary"),
        "A loss for binary reports must take one score per instance and labels 0 and 1: brier "
        "does not. Use log or square or poisson.",
    ),
    (
        lambda: smoothed(losses.log, 1.5),
        "Smoothing must lie in [0, 1): 1.5 given. The paper uses 0.1.",
    ),
    (
        lambda: smoothed(total_only()),
        "Smoothing must have classes to smooth over: counts has only counts. Leave it out.",
    ),
    (
        lambda: from_callable(lambda h, y: h, labels=(1, 2)),
        (
            "Labels must be 0, 1, ..., c - 1 with c at least 2: (1.0, 2.0) given. Number your "
            "classes so."
        ),
    ),
]
