"""alter-SVM: labels that keep each bag's count, and a support vector machine, in turn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unbag.peers._bag_regression import ridge
from unbag.peers._linear import BagData, LinearPeer


@dataclass(frozen=True)
class AlterSVM(LinearPeer):
    """The alternating proportion-SVM of Yu, Liu, Kumar, Jebara and Chang (2013), linear.

        min over w, labels  |w|^2 / 2 + C sum_i hinge(label_i z_i)^2,  each bag with its count

    Given z the best labels make the count_j rows of highest score positive; given labels it is an
    ordinary SVM; the two alternate until no label changes. The paper's hinge is not squared, and
    it starts at random labels several times and raises C; we start once at the labels that ridge
    regression on bag means suggests. A margin is no probability: its slope and level are set from
    the counts of bags that were not learned from.

    Parameters
    ----------
    costs : tuple of float
        C, divided by the number of rows; one is chosen from bags.
    rounds : int
        At most.
    """

    costs: tuple[float, ...] = (1.0, 10.0, 100.0)
    rounds: int = 10

    name: ClassVar[str] = "alter_svm"
    title: ClassVar[str] = "alter-SVM"
    guesses_labels: ClassVar[bool] = True
    stretched: ClassVar[bool] = True

    def settings(self) -> tuple[float, ...]:
        """Costs."""
        return self.costs

    def coefficients(self, data: BagData, setting: float) -> np.ndarray:
        """Coefficients and intercept after the last round.

        Parameters
        ----------
        data : BagData
            To learn from.
        setting : float
            C, divided by the number of rows.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        w = ridge(data.means, data.report, data.size)
        label = best_labels(data.X @ w[:-1], data)
        svm = LinearSVC(C=setting / len(label), max_iter=300, random_state=0)
        for _ in range(self.rounds):
            if np.ptp(label) == 0:  # all bags are of one class: any constant is right
                return np.append(np.zeros(data.X.shape[1]), 2.0 * label[0] - 1)
            with warnings.catch_warnings():  # the rounds go on from where it stops
                warnings.simplefilter("ignore", ConvergenceWarning)
                svm.fit(data.X, label)
            before, w = label, np.append(svm.coef_[0], svm.intercept_)
            label = best_labels(data.X @ w[:-1], data)
            if np.array_equal(label, before):
                break
        return w


def best_labels(score: np.ndarray, data: BagData) -> np.ndarray:
    """Labels of least hinge loss that keep the counts: the highest scores of each bag.

    Parameters
    ----------
    score : numpy.ndarray
        Of each row.
    data : BagData
        The bags.
    """
    order = np.lexsort((-score, data.bag))
    start = np.cumsum(data.size) - data.size
    rank = np.arange(len(order)) - start[data.bag[order]]
    label = np.zeros(len(order), int)
    label[order] = rank < data.positives[data.bag[order]]
    return label
