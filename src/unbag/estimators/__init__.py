"""Estimators for users of scikit-learn.

`fit(X, y, bag=None)`: with `bag`, every row carries what its bag reported, the same throughout the
bag. Without it, y are ordinary labels and each row is a bag of its own. `fit_bags(bags)` takes bags
as they are. `bag_targets` puts report and bag into one y, which grid searches and pipelines hand
on, and `BagKFold` splits by bag; `cross_validate` judges any of these by all bags. `BagScorer`
judges from bags in a grid search; `load` reads what `save` wrote.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.estimators._estimators import BagClassifier as BagClassifier
    from unbag.estimators._estimators import BagRegressor as BagRegressor
    from unbag.estimators._estimators import load as load
    from unbag.estimators._judgement import BagKFold as BagKFold
    from unbag.estimators._judgement import BagScorer as BagScorer
    from unbag.estimators._judgement import CrossValidation as CrossValidation
    from unbag.estimators._judgement import cross_validate as cross_validate
    from unbag.estimators._judgement import estimate_loss as estimate_loss
    from unbag.estimators._onnx import to_onnx as to_onnx
    from unbag.estimators._targets import bag_targets as bag_targets
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
