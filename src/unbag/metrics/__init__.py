"""How good a model is, from held-out bags and without a single label: metrics with intervals.

`evaluate` and `compare` are the doors, `Evaluator` takes bags in pieces, `evaluate_labels` gives
the same metrics from labels. The other names are for code that builds on the same estimates:
`score_bags` asks any model for its scores once, `judge_all` compares many candidates, `Judge` and
`interval` estimate any expectation, and `marks` and `check_apart` keep bags that were learned from
out of an evaluation.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.metrics._counts import evaluate_counts as evaluate_counts
    from unbag.metrics._counts import mean_estimate as mean_estimate
    from unbag.metrics._estimate import Estimate as Estimate
    from unbag.metrics._estimate import Estimated as Estimated
    from unbag.metrics._estimate import Judge as Judge
    from unbag.metrics._estimate import PairedLosses as PairedLosses
    from unbag.metrics._estimate import interval as interval
    from unbag.metrics._estimate import judge_all as judge_all
    from unbag.metrics._evaluate import Evaluator as Evaluator
    from unbag.metrics._evaluate import compare as compare
    from unbag.metrics._evaluate import evaluate as evaluate
    from unbag.metrics._evaluate import evaluate_labels as evaluate_labels
    from unbag.metrics._evaluate import evaluate_scored as evaluate_scored
    from unbag.metrics._evaluation import Band as Band
    from unbag.metrics._evaluation import Evaluation as Evaluation
    from unbag.metrics._folds import evaluate_folds as evaluate_folds
    from unbag.metrics._leakage import check_apart as check_apart
    from unbag.metrics._leakage import join_marks as join_marks
    from unbag.metrics._leakage import known_bags as known_bags
    from unbag.metrics._leakage import learner as learner
    from unbag.metrics._leakage import marks as marks
    from unbag.metrics._notes import Note as Note
    from unbag.metrics._notes import doubts as doubts
    from unbag.metrics._notes import level_note as level_note
    from unbag.metrics._notes import warn_of as warn_of
    from unbag.metrics._scores import Evaluable as Evaluable
    from unbag.metrics._scores import Scale as Scale
    from unbag.metrics._scores import chosen_losses as chosen_losses
    from unbag.metrics._scores import is_array as is_array
    from unbag.metrics._scores import score_bags as score_bags
    from unbag.metrics._scores import scores_of as scores_of
    from unbag.metrics._scores import scores_on as scores_on
    from unbag.metrics._sums import EXACT as EXACT
    from unbag.metrics._sums import ScoredBags as ScoredBags
    from unbag.metrics._sums import empty_sums as empty_sums
    from unbag.metrics._sums import loss_sums as loss_sums
    from unbag.metrics._sums import predict as predict
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
