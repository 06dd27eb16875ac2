"""How good a model is, from held-out bags and without a single label: metrics with intervals.

`evaluate` and `compare` are the doors, `Evaluator` takes bags in pieces, `evaluate_labels` gives
the same metrics from labels. The other names are for code that builds on the same estimates:
`score_bags` asks any model for its scores once, `judge_all` compares many candidates, `Judge` and
`interval` estimate any expectation, and `marks` and `check_apart` keep bags that were learned from
out of an evaluation.
"""

from unbag.metrics._counts import evaluate_counts, mean_estimate
from unbag.metrics._estimate import Estimate, Estimated, Judge, interval
from unbag.metrics._evaluate import Evaluator, compare, evaluate, evaluate_labels, evaluate_scored
from unbag.metrics._evaluation import Band, Evaluation, Note
from unbag.metrics._folds import evaluate_folds
from unbag.metrics._leakage import check_apart, join_marks, known_bags, learner, marks
from unbag.metrics._level import level_note
from unbag.metrics._paired import PairedLosses, judge_all
from unbag.metrics._randomness import doubts, warn_of
from unbag.metrics._scores import (
    Evaluable,
    Scale,
    chosen_losses,
    is_array,
    score_bags,
    scores_of,
    scores_on,
)
from unbag.metrics._sums import (
    EXACT,
    ScoredBags,
    checked_scores,
    empty_sums,
    loss_sums,
    one_column,
    predict,
)

__all__ = [
    "EXACT",
    "Band",
    "Estimate",
    "Estimated",
    "Evaluable",
    "Evaluation",
    "Evaluator",
    "Judge",
    "Note",
    "PairedLosses",
    "Scale",
    "ScoredBags",
    "check_apart",
    "checked_scores",
    "chosen_losses",
    "compare",
    "doubts",
    "empty_sums",
    "evaluate",
    "evaluate_counts",
    "evaluate_folds",
    "evaluate_labels",
    "evaluate_scored",
    "interval",
    "is_array",
    "join_marks",
    "judge_all",
    "known_bags",
    "learner",
    "level_note",
    "loss_sums",
    "marks",
    "mean_estimate",
    "one_column",
    "predict",
    "score_bags",
    "scores_of",
    "scores_on",
    "warn_of",
]
