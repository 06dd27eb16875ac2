"""Bad input of boosting, and the whole message that it gets."""

import numpy as np
import pandas as pd

from unbag import Bags
from unbag.boosting import BagObjective, fit_lightgbm, fit_xgboost
from unbag.boosting._model import BoostedByLightGBM
from unbag.boosting._objective import checked_loss

BAGS = Bags(np.array([0, 0, 1, 1]), [0.5, 0.25], X=np.ones((4, 1)))

SHARES = Bags(np.array([0, 0, 1, 1]), [[0.5, 0.5], [0.5, 0.5]], "histogram")

COUNTS = Bags(np.array([0, 0, 1, 1]), [1.5, 0.25], "total", X=np.ones((4, 1)))

NO_X = Bags(np.array([0, 0, 1, 1]), [0.5, 0.25])


def probabilities_of_counts():
    return BoostedByLightGBM(None, 0.0, "total", "poisson", np.zeros(1)).predict_proba(
        np.ones((2, 1))
    )


MESSAGES = [
    (
        lambda: checked_loss("histogram", "upm", None),
        "Histograms must be boosted by the anchored method: upm given. Leave it out.",
    ),
    (
        lambda: fit_lightgbm(SHARES),
        "Reports to boost from must be binary or total, because each instance has one score: "
        "histogram given. Use unbag.learners.Trees, or boost each class against the rest.",
    ),
    (
        lambda: fit_lightgbm(BAGS, method="easy"),
        "A method of boosting must be one of anchored, upm: 'easy' given. Choose one of these.",
    ),
    (
        lambda: fit_xgboost(COUNTS, loss="log"),
        (
            "A loss to boost with must be poisson or square for total reports: 'log' given. Leave "
            "it out to take the first."
        ),
    ),
    (
        lambda: BagObjective(BAGS, share=0),
        "A share of the bags must lie in (0, 1]: 0 given. Use 1 to listen to all of them.",
    ),
    (
        lambda: BagObjective(Bags(np.array([0, 1]), [0.0, 0.0])),
        (
            "A prior to boost from must lie inside (0, 1): 0 given. Give more bags, or the prior if "
            "it is known."
        ),
    ),
    (
        lambda: BagObjective(Bags(np.array([0, 1]), [0.0, 0.0], "total")),
        (
            "A prior to boost from must lie inside (0, inf): 0 given. Give more bags, or the prior "
            "if it is known."
        ),
    ),
    (
        lambda: BagObjective(BAGS)(np.zeros(3)),
        (
            "score must have one entry for each instance: 3 given for 4 instances. Give them in the "
            "order of the instances."
        ),
    ),
    (
        lambda: fit_lightgbm(BAGS, objective="binary"),
        (
            "Objective and rounds must be chosen with method=, loss= and rounds=: objective given. "
            "Leave it out."
        ),
    ),
    (
        lambda: fit_xgboost(BAGS, rounds=0),
        "Rounds must be at least 1: 0 given. 600 suit the learning rate of 0.05.",
    ),
    (
        lambda: BoostedByLightGBM(None, 0.0, "binary", "log", np.zeros(1), ["a", "b"]).scores(
            pd.DataFrame({"a": [0]})
        ),
        (
            "Columns must be those learned from, in the same order: column 1 is None and was b. "
            "Choose them by name."
        ),
    ),
    (
        lambda: fit_lightgbm(NO_X),
        "Bags to boost from must have features: X is None. Make the bags with X.",
    ),
    (
        lambda: fit_lightgbm(BAGS, held_out=COUNTS),
        (
            "Held-out bags must report what the others report: total given beside binary. Take them "
            "from bags.split."
        ),
    ),
    (
        probabilities_of_counts,
        "Probabilities must come from binary reports: total given. Use predict for counts.",
    ),
]
