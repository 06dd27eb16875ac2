"""Scores and held-out bags in, metrics with intervals out: how good a model is, without a single
label.

`collecting` sums per bag, `estimating` turns the sums into expectations, `intervals` into
intervals; `ranking` has the AUC and the bands of calibration; `summarising` puts them into the
`Evaluation` of `holding`. `evaluating` and `comparing` are the doors, `doubting` warns of bags that
are not random, `scoring` asks any model for scores, `drawing` draws.
"""

from unbag.metrics._compare import compare
from unbag.metrics._counts import evaluate_counts
from unbag.metrics._evaluate import Evaluator, evaluate, evaluate_and_note, evaluate_labels
from unbag.metrics._evaluation import Band, Evaluation
from unbag.metrics._folds import evaluate_folds
from unbag.metrics._intervals import Estimate
from unbag.metrics._leakage import join_marks, known_bags, marks
from unbag.metrics._scores import scores_of

__all__ = [
    "Band",
    "Estimate",
    "Evaluation",
    "Evaluator",
    "compare",
    "evaluate",
    "evaluate_and_note",
    "evaluate_counts",
    "evaluate_folds",
    "evaluate_labels",
    "join_marks",
    "known_bags",
    "marks",
    "scores_of",
]
