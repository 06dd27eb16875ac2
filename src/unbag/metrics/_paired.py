"""Scores of several candidates and held-out bags in, their losses and how sure their order is out.

An estimate from bags is a bad judge of many candidates when it stands alone: the lowest of many
estimates belongs to the wildest model, whose estimate has the largest variance. Two things help.
All candidates are centred by one reference, the consensus of their predictions, which a wild model
does not spoil. And each is judged by its paired difference to the consensus: what all have in
common cancels, and how far a candidate strays shows in its standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unbag.bags import Bags
from unbag.losses import Loss
from unbag.metrics._estimate import Estimated, Judge
from unbag.metrics._sums import components_of, empty_sums, loss_sums


class Judged(NamedTuple):
    """Of each candidate: its estimated loss, and the standard error of its difference to the
    consensus."""

    value: np.ndarray
    error: np.ndarray
    found: list[Estimated]
    judge: Judge

    def cautious(self, errors: float = 1.0) -> np.ndarray:
        """The loss plus so many standard errors: what a careful chooser takes the lowest of."""
        return self.value + errors * self.error


def judge_all(scores: Sequence[Any], bags: Bags, consensus: np.ndarray, loss: Loss) -> Judged:
    """Judge candidates by their paired differences to a consensus.

    Parameters
    ----------
    scores : of each candidate, one row per instance.
    consensus : prediction per instance (one column per label component), made without the labels of
        these bags: the mean or median of what candidates predict.
    """
    judge = Judge(empty_sums(bags, consensus))
    spread = np.zeros_like(consensus)
    f = components_of(consensus, loss, bags.kind)
    estimate = lambda f: judge.expectation(*loss_sums(f, consensus, spread, bags)[:2])
    middle = estimate(f)
    found = [
        estimate(loss.components(np.asarray(score, float), kind=bags.kind)) for score in scores
    ]
    error = [np.sqrt(np.sum((one.psi - middle.psi) ** 2)) for one in found]
    return Judged(np.array([one.value for one in found]), np.array(error), found, judge)
