"""Bad input of the learners of other papers, and the whole message that it gets."""

import numpy as np

from unbag.bags import Bags
from unbag.peers import LaplacianMeanMap, MeanMap, PseudoLabelEM
from unbag.peers._linear import BagData

BAG, X = np.array([0, 0, 1, 1]), np.zeros((4, 1))

MESSAGES = [
    (
        lambda: MeanMap().fit(Bags(BAG, [1.0, 2.0], "total", X=X)),
        "The learner mean_map must have binary reports and no offset: total given. Use additive, "
        "trees or network.",
    ),
    (
        lambda: PseudoLabelEM().fit(Bags(BAG, [0.5, 1.2], X=X, noise=[1, 1])),
        "The learner em must have reports in [0, 1], because it guesses labels: bag 1 has 1.2 (1 "
        "such bag). Use additive, trees or network, which take noise.",
    ),
    (
        lambda: LaplacianMeanMap().operator(
            BagData(np.zeros((4001, 1)), np.arange(4001), np.ones(4001), np.zeros(4001)), 1.0
        ),
        "The Laplacian mean map must have at most 4,000 bags: 4,001 given. Use mean_map.",
    ),
]
