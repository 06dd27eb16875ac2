"""Bad input of training, and the whole message that it gets."""

import numpy as np

from cases.training import model_for, named, world
from unbag import Bags
from unbag.methods import METHODS
from unbag.training import train


def with_gap(bags, *, row):
    X = bags.X.copy()
    X[row] = np.nan, 2, 3
    return Bags(bags.bag, bags.report, X=X)


MESSAGES = [
    (
        lambda: train(model_for("binary"), world()[0], patiance=3),
        "An option of a training must be one of epochs, batch, apply, smoothing, weight_decay, "
        "clip, patience, importance, devices, microbatch, progress: "
        "patiance is none. Did you mean patience=?",
    ),
    (
        lambda: train(model_for("binary"), world()[0], "magic"),
        f"A method must be one of {', '.join(METHODS)}: 'magic' given. Choose one of these.",
    ),
    (
        lambda: train(model_for("binary"), world()[0], "upm", "hinge"),
        (
            "A loss must be one of log, square, poisson, cross_entropy, brier: 'hinge' given. "
            "Choose one of these."
        ),
    ),
    (
        lambda: train(
            model_for("binary"),
            Bags([0, 1, 1], [0.5, -0.25], X=np.ones((3, 3)), noise=[1, 1]),
            "matching",
        ),
        "Matching with the log loss must have reports in [0, 1], because outside it has no "
        "lower bound: bag 1 has -0.25 (1 such bag). Use upm, easy or anchored, which stay "
        "unbiased under noise, or match with the square or brier loss.",
    ),
    (
        lambda: train(model_for("binary"), world()[0], "labels"),
        "The method labels must have bags of one, which are labels: bags of up to 8 given. Make "
        "them with random_bags(X, y, size=1, seed=0).",
    ),
    (
        lambda: train(model_for("binary"), Bags(np.arange(4), np.ones(4))),
        "Bags to train on must have features: X is None. Give X to the bags, or to the trainer.",
    ),
    (
        lambda: train(model_for("binary"), world()[0], held_out=with_gap(world(n=16)[0], row=3)),
        "Features of held-out bags must be finite: row 3 has nan (1 such row). Fill the gaps as "
        "in the features to train on.",
    ),
    (
        lambda: train(model_for("binary"), named(slice(0, 9)), held_out=named(slice(7, 12))),
        "Held-out bags must not overlap the bags that the model learned from: bag day 7 is in "
        "both (2 such). Split by bag before training, with bags.split(0.8, seed=0).",
    ),
    (
        lambda: train(model_for("total"), world("total")[0], "likelihood", "square"),
        (
            "The likelihood must go with a loss that reads scores as poisson does: square given. "
            "Leave the loss out."
        ),
    ),
    (
        lambda: train(model_for("total"), world("total")[0], "upm", "cross_entropy"),
        "A loss for total counts must be affine in the label (loss = f1 + y f2), because only "
        "the sum of the counts in a bag is known: cross_entropy is not. Use square or poisson, "
        "or report full histograms.",
    ),
]
