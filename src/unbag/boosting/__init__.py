"""Bags in, boosted trees out: LightGBM and XGBoost learn from reports through a gradient and a
hessian.

Signed weights are pseudo-labels (`unbag.weights.pseudo_labels`): a target t and a sample weight s
for each instance. With the prediction h of the score z, every loss here has

    gradient = s * slope(h) * (h - t),   hessian = s * curvature(h) > 0

| kind of report | loss | h | slope | curvature |
|---|---|---|---|---|
| binary | square | sigmoid(z) | 2 h (1 - h) | 2 (h (1 - h))^2, Gauss-Newton |
| binary | log | sigmoid(z) | 1 | h (1 - h) |
| total | poisson | exp(z) | 1 | h |
| total | square | z | 2 | 2 |

All noise of the reports is in t, and trees fit noise quickly. These defaults tame it
(docs/boosting.md measures them):

- The anchored method takes the ensemble's current prediction as the reference, anew in each round.
  Then t - h is the centred residual of the instance's bag, times its size, and shrinks as the model
  learns. With `method="upm"` t is of the order of the bag size and stays so.
- A leaf knows as much as it has *bags*, not rows. Leaves hold at least five bags' worth of rows,
  the L2 penalty is worth four bags, and trees are stumps unless there are thousands of bags.
- Each round listens to half of the bags, drawn anew; the others lend their instances to the means.
- Boosting starts at the prior; held-out bags choose the number of rounds, then all bags are learned
  from.

`BagObjective` is what both libraries call in each round; they are imported only when used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.boosting._fit import fit_lightgbm as fit_lightgbm
    from unbag.boosting._fit import fit_xgboost as fit_xgboost
    from unbag.boosting._model import Boosted as Boosted
    from unbag.boosting._objective import BagObjective as BagObjective
    from unbag.boosting._objective import level_shift as level_shift
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
