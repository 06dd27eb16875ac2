"""Bad input of metrics, and the whole message that it gets."""

import numpy as np

from cases.metrics import BAGS, NAMED, THREE, X, Y, sigmoid
from unbag import Bags, Evaluator, compare, evaluate, evaluate_labels, from_rows, random_bags
from unbag.training import Run


class Remembering:
    bags_ = NAMED.take([0, 3, 4])

    def decision_function(self, X):
        return X


MESSAGES = [
    (
        lambda: evaluate(np.where(np.arange(60) == 3, -2.0, 0.5), BAGS, scale="probability"),
        "A probability must lie between 0 and 1: -2 given (1 such). Leave scale= out if these are "
        "scores.",
    ),
    (
        lambda: evaluate(sigmoid(X), BAGS),
        "Scores must be logits: all of 60 values lie between 0 and 1, like probabilities. Say "
        "scale='probability', or scale='score' if they are logits all the same.",
    ),
    (
        lambda: evaluate(sigmoid, BAGS),
        "Scores must be logits: all of 60 values lie between 0 and 1, like probabilities. Say "
        "scale='probability', or scale='score' if they are logits all the same.",
    ),
    (
        lambda: evaluate(lambda X: np.full((60, 3), 1 / 3), BAGS, scale="probability"),
        "Scores for binary reports must have 1 dimension(s): an array of shape (60, 3) given. "
        "Give one logit or log rate per instance, or one score per class for histograms.",
    ),
    (
        lambda: evaluate(Run(lambda X: X, "upm", "log", 0.1, 0, 1, {}), BAGS, losses=["poisson"]),
        "The first loss must read scores as log does, or as the loss of the run does: poisson "
        "does not. Put log before it.",
    ),
    (
        lambda: evaluate(X, BAGS, scale="odds"),
        "A scale must be one of score, probability: 'odds' given. Leave it out for scores.",
    ),
    (
        lambda: evaluate(X[:59], BAGS),
        "scores must have one entry for each instance: 59 given for 60 instances. Give them in "
        "the order of the instances.",
    ),
    (
        lambda: evaluate(np.stack([X, X], axis=1), BAGS),
        "Scores for binary reports must have 1 dimension(s): an array of shape (60, 2) given. "
        "Give one logit or log rate per instance, or one score per class for histograms.",
    ),
    (
        lambda: evaluate(np.where(np.arange(60) == 3, np.nan, X), BAGS),
        "A score must be finite: instance 3 has nan (1 such instance). Give logits, of which a "
        "probability of 0 or 1 has none; a model that predicts NaN has diverged: train it with a "
        "lower learning rate.",
    ),
    (
        lambda: evaluate(X, random_bags(None, Y, size=60, seed=0)),
        "An unbiased evaluation must have at least two reports in each stratum: stratum 0 has 1 "
        "(1 such stratum). Ask for reports of random sub-bags, two or more for each stratum; "
        "where that cannot be, use method='matching' or method='likelihood', which stay valid "
        "when the model holds across bags.",
    ),
    (
        lambda: evaluate(lambda X: X, random_bags(None, Y, size=6, seed=0)),
        "A model must have features to score: bags without X given. Give X to the bags, or scores.",
    ),
    (
        lambda: evaluate(object(), BAGS),
        "A model must have decision_function, predict_proba or predict, or be a function: "
        "object given. Or give the scores themselves.",
    ),
    (
        lambda: evaluate(X, BAGS)["f1"],
        "A metric must be one of log_loss, brier, auc, mean_prediction, mean_report, "
        "prediction_minus_report: 'f1' given.",
    ),
    (
        lambda: evaluate(X, BAGS, level=95),
        "A level must lie between 0 and 1: 95 given. Use 0.95 for intervals of 95%.",
    ),
    (
        lambda: compare(X, -X, BAGS, level=95),
        "A level must lie between 0 and 1: 95 given. Use 0.95 for intervals of 95%.",
    ),
    (
        lambda: compare(X, Remembering(), NAMED),
        "Held-out bags must not overlap the bags that the model learned from: bag 0 is in both "
        "(3 such). Split by bag before training, with bags.split(0.8, seed=0).",
    ),
    (
        lambda: evaluate(np.full((60, 3), 1 / 3), THREE),
        "Class scores must not be probabilities: all of 60 rows lie between 0 and 1 and sum to "
        "1. Say scale='probability', or scale='score' if they are scores all the same.",
    ),
    (
        lambda: evaluate(np.zeros((60, 2)), THREE),
        "Class scores must have one column for each class of the reports: 2 given for 3 classes. "
        "Give the same classes to both.",
    ),
    (
        lambda: evaluate(np.zeros((60, 3)), THREE).plot(),
        "A calibration picture must have bands of a score: class histograms have none. Plot one "
        "class against the others, as binary reports.",
    ),
    (
        lambda: evaluate_labels(np.zeros((60, 3)), Y - 1, kind="histogram"),
        f"A class must be a whole number from 0: row {np.argmin(Y)} has -1 ({np.sum(Y == 0):.0f} "
        "such rows). Use class numbers.",
    ),
    (
        lambda: evaluate(np.full(60, 1e4), Bags(BAGS.bag, BAGS.report, "total")),
        "A predicted count must be below 1e+50: instance 0 has inf (60 such instances). Give "
        "the logarithms of rates as scores; for counts say scale='probability'.",
    ),
    (lambda: evaluate(X, BAGS, bands=0), "There must be at least one band: 0 given. Ten is usual."),
    (
        lambda: evaluate(Remembering(), NAMED),
        "Held-out bags must not overlap the bags that the model learned from: bag 0 is in both "
        "(3 such). Split by bag before training, with bags.split(0.8, seed=0).",
    ),
    (
        lambda: evaluate(X, BAGS, trained_on=BAGS.take([1])),
        "Held-out bags must not overlap the bags that the model learned from: row "
        f"{BAGS.take([1]).rows.min()} is in both (6 such). Split by bag before training, with "
        "bags.split(0.8, seed=0).",
    ),
    (
        lambda: Evaluator().compute(),
        "An evaluation must have bags: none given. Call update with scores and bags first.",
    ),
    (
        lambda: Evaluator().update(X, BAGS).update(X, Bags(BAGS.bag, BAGS.report, "total")),
        "Pieces must be of one kind: total given after binary. Evaluate them apart.",
    ),
    (
        lambda: Evaluator().update(X, BAGS).merge(Evaluator(["log"]).update(X, BAGS)),
        "Evaluators to merge must have the same losses and kind of report: ['log'] of binary "
        "given for None of binary. Make them alike.",
    ),
    (
        lambda: (
            Evaluator()
            .update(X, NAMED)
            .update(X, from_rows(np.arange(60) // 6, np.full(60, 2), noise=np.ones(60)))
            .compute()
        ),
        "Parts of a bag must carry the same report: part 10 has 2 for bag 0 (10 such parts). "
        "Give each part the report of its whole bag, or different bags different names.",
    ),
]
