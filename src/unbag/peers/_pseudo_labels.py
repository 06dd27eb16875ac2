"""Pseudo-labels: EM within bags, and belief propagation over bags and neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from unbag.peers._choice import LinearPeer
from unbag.peers._counts import count_evidence
from unbag.peers._linear import BagData, fit_logistic

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class PseudoLabelEM(LinearPeer):
    """Expectation maximisation: labels are missing, and their counts are known.

    E: q_i = P(y_i = 1 | scores and count of the bag), exactly. M: logistic regression with the
    labels q, by a few steps of L-BFGS from where the last round stopped. For bags of one it is
    logistic regression; a fixed point is one of the likelihood of the counts.

    Parameters
    ----------
    penalties : tuple of float
        Of the coefficients; one is chosen from bags.
    rounds : int
        Of E and M.
    """

    penalties: tuple[float, ...] = PENALTIES
    rounds: int = 30

    name: ClassVar[str] = "em"
    title: ClassVar[str] = "EM"
    guesses_labels: ClassVar[bool] = True

    def settings(self) -> tuple[float, ...]:
        """Penalties."""
        return self.penalties

    def coefficients(self, data: BagData, setting: float) -> np.ndarray:
        """Coefficients, then the intercept; see `LinearPeer.coefficients`."""
        q, w = data.report[data.bag], None
        for _ in range(self.rounds):
            w = fit_soft_labels(data.X, q, setting, start=w, steps=5)
            score = data.X @ w[:-1] + w[-1]
            q = expit(score + count_evidence(score, data.bag, data.positives))
        return fit_soft_labels(data.X, q, setting, start=w, steps=100)


@dataclass(frozen=True)
class BeliefPropagation(PseudoLabelEM):
    """Pseudo-labels by belief propagation, after Havaldar and others (2024).

    The labels have the law

        P(y)  proportional to  prod_bags [sum_i y_i = count]
                               prod_edges exp(-w (y_i - y_j)^2 - c (y_i + y_j)),

    whose edges join each row to its nearest others, with w = coupling exp(-d^2 / s), s the mean
    squared distance of edges. The paper has no c; ours makes a neighbour of whom only the prior is
    known say nothing, or rows with many neighbours would be pulled to the commoner label. Messages
    between rows, and between a bag and its rows, give the marginals q; a bag's messages are exact.
    Logistic regression learns q. The paper penalises a wrong count where we forbid it, takes q as
    hard labels, and repeats with the embedding of a network in place of the rows; a linear model
    has none, so there is one round. Marginals are pulled towards the proportion of their bag, so
    the slope and level of the model are set from the counts of bags that were not learned from.
    Trees of bags and edges have exact marginals.

    Parameters
    ----------
    rounds : int
        Of messages.
    neighbours : int
        Of each row.
    coupling : float
        How alike near rows are.
    """

    rounds: int = 10
    neighbours: int = 5
    coupling: float = 0.2

    name: ClassVar[str] = "belief_propagation"
    title: ClassVar[str] = "belief propagation"
    stretched: ClassVar[bool] = True

    def coefficients(self, data: BagData, setting: float) -> np.ndarray:
        """Coefficients, then the intercept; see `LinearPeer.coefficients`."""
        return fit_soft_labels(data.X, self._labels(data), setting)

    def _labels(self, data: BagData) -> np.ndarray:
        from sklearn.neighbors import NearestNeighbors

        count = min(self.neighbours + 1, len(data.X))
        distance, near = NearestNeighbors(n_neighbors=count).fit(data.X).kneighbors(data.X)
        pairs = np.stack([np.repeat(np.arange(len(near)), count), near.ravel()], axis=1)
        kept, index = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
        squared = distance.ravel()[index] ** 2
        proper = kept[:, 0] < kept[:, 1]
        scale = max(float(squared[proper].mean()), 1e-12) if proper.any() else 1.0
        strength = self.coupling * np.exp(-squared[proper] / scale)
        edges, unknown = kept[proper], _passed(logit(data.prior), strength)
        field = -np.bincount(edges.ravel(), np.repeat(unknown, 2), minlength=len(near))
        return marginals(data.bag, data.positives, edges, strength, rounds=self.rounds, odds=field)


def marginals(
    bag: np.ndarray,
    count: np.ndarray,
    edges: np.ndarray,
    strength: np.ndarray,
    *,
    rounds: int,
    odds: Any = 0.0,
) -> np.ndarray:
    """Marginals of labels by sum-product messages, all at once in each round.

    Parameters
    ----------
    bag, count : numpy.ndarray
        Bag number of each row; positives of each bag.
    edges : numpy.ndarray of int, of shape (edges, 2)
        Rows that should be alike.
    strength : numpy.ndarray
        Of each edge.
    rounds : int
        Of messages.
    odds : float or numpy.ndarray
        Log odds of each row by itself.
    """
    source = np.concatenate([edges[:, 0], edges[:, 1]])
    target = np.concatenate([edges[:, 1], edges[:, 0]])
    back = np.roll(np.arange(len(source)), len(edges))  # the same edge the other way
    w, message = np.concatenate([strength, strength]), np.zeros(len(source))
    # A bag's first message is that of rows that are alike.
    size = np.bincount(bag, minlength=len(count))
    from_bag = logit(np.clip(count / np.maximum(size, 1), 1e-6, 1 - 1e-6))[bag]
    for _ in range(rounds):
        total = odds + np.bincount(target, message, minlength=len(bag))
        cavity = (total + from_bag)[source] - message[back]
        message = _passed(cavity, w)
        without = odds + np.bincount(target, message, minlength=len(bag))
        from_bag = count_evidence(np.broadcast_to(without, bag.shape), bag, count)
    return expit(odds + np.bincount(target, message, minlength=len(bag)) + from_bag)


def _passed(odds: Any, w: np.ndarray) -> np.ndarray:
    """What an edge of strength w makes of the log odds of one end, for the other."""
    return np.logaddexp(odds, -w) - np.logaddexp(odds - w, 0)


def fit_soft_labels(
    X: np.ndarray, q: np.ndarray, penalty: float, *, start: Any = None, steps: int = 100
) -> np.ndarray:
    """Logistic regression with labels in [0, 1].

    Parameters
    ----------
    X, q : numpy.ndarray
        Rows and their labels.
    penalty, start, steps
        As in `fit_logistic`.
    """
    prior = float(np.clip(q.mean(), 1e-6, 1 - 1e-6))
    return fit_logistic(X, X.T @ (q - 0.5) / len(q), prior, penalty, start=start, steps=steps)
