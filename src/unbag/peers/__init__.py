"""Learners of other papers that are no objective of a network: bags in, a linear model out.

All are for binary reports, and behind the protocol of `unbag.learners`, so
`unbag.fit(bags, learner="mean_map")` cross-fits, repairs and judges them like our own. Penalties
are chosen from bags alone, by the rule that networks are stopped by: the likelihood of the counts
of bags that a model has not learned from (`unbag.peers.choose_by_counts`).
"""

from unbag.peers._linear import LinearModel, LinearPeer, choose_by_counts, level_of
from unbag.peers._papers import (
    AlterSVM,
    BagMeans,
    BeliefPropagation,
    DistributionRegression,
    LaplacianMeanMap,
    MeanMap,
    PseudoLabelEM,
    count_evidence,
)

# every learner here; each has a `name` and a `title`
PEERS = (
    MeanMap,
    LaplacianMeanMap,
    AlterSVM,
    PseudoLabelEM,
    BeliefPropagation,
    DistributionRegression,
    BagMeans,
)

__all__ = [
    "PEERS",
    "AlterSVM",
    "BagMeans",
    "BeliefPropagation",
    "DistributionRegression",
    "LaplacianMeanMap",
    "LinearModel",
    "LinearPeer",
    "MeanMap",
    "PseudoLabelEM",
    "choose_by_counts",
    "count_evidence",
    "level_of",
]
