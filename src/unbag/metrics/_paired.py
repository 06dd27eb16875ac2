"""Losses of several candidates, estimated from the same held-out bags, and how sure their order is.

An estimate from bags is a bad judge of many candidates when it stands alone: the lowest of many
estimates belongs to the wildest model, whose estimate has the largest variance. Two things help.
All candidates are centred by one reference, the consensus of their predictions, which a wild model
does not spoil. And each is judged by its paired difference to the consensus: what all have in
common cancels, and how far a candidate strays shows in its standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbag.bags import Bags
from unbag.losses import Loss
from unbag.metrics._estimate import Estimate, Estimated, Judge, interval
from unbag.metrics._sums import components_of, empty_sums, loss_sums


class PairedLosses(NamedTuple):
    """The losses of candidates.

    Parameters
    ----------
    value : array (candidates,)
        Estimated losses.
    error : array (candidates,)
        Standard errors of their differences to the consensus.
    estimated : list of Estimated
        What each bag contributes to their errors.
    judge : Judge
        The bags.
    """

    value: np.ndarray
    error: np.ndarray
    estimated: list[Estimated]
    judge: Judge

    def cautious(self, errors: float = 1.0) -> np.ndarray:
        """The loss plus so many standard errors: what a careful chooser takes the lowest of."""
        return self.value + errors * self.error

    def loss(self, number: int, *, level: float) -> Estimate:
        """A candidate's loss with its interval.

        Parameters
        ----------
        number : int
            Of the candidate.
        level : float
            Of the interval.
        """
        return interval(self.estimated[number], self.judge, level=level)

    def difference(self, number: int, other: int, *, level: float) -> Estimate:
        """The paired difference between two candidates with its interval.

        Parameters
        ----------
        number, other : int
            Of the candidates.
        level : float
            Of the interval.
        """
        both = self.estimated[number] - self.estimated[other]
        return interval(both, self.judge, level=level)


def judge_all(
    scores: Sequence[np.ndarray], bags: Bags, consensus: np.ndarray, loss: Loss
) -> PairedLosses:
    """Judge candidates by their paired differences to a consensus.

    Parameters
    ----------
    scores : sequence of array
        Of each candidate, one row per instance.
    bags : Bags
        Held-out bags.
    consensus : array (instances, components)
        Prediction per instance, made without the labels of these bags: the mean or median of what
        candidates predict.
    loss : Loss
        What is estimated.
    """
    judge, kind = Judge(empty_sums(bags, consensus)), bags.kind
    middle, *estimated = (
        judge.expectation(*loss_sums(f, consensus, np.zeros_like(consensus), bags)[:2])
        for f in (
            components_of(consensus, loss, kind),
            *(loss.components(np.asarray(score, float), kind=kind) for score in scores),
        )
    )
    value = [one.value for one in estimated]
    error = [np.sqrt(np.sum((one.psi - middle.psi) ** 2)) for one in estimated]
    return PairedLosses(np.array(value), np.array(error), estimated, judge)
