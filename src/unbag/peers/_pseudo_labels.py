"""Pseudo-labels: EM within bags, and belief propagation over bags and neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from unbag.peers._linear import BagData, LinearPeer, fit_logistic

MOST_ODDS = 30.0
"""Log odds are kept within these bounds: a label that the count decides."""
ENTRIES = 2e7
"""So many numbers are in memory at once."""


def count_evidence(odds: np.ndarray, bag: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The log odds that a bag's count adds to those of each instance.

        log P(S - y_i = c - 1) - log P(S - y_i = c),    S the sum of independent labels

    so that P(y_i = 1 | S = c) has the log odds odds_i + evidence_i. The laws of the sums without
    one instance come from those of the instances before and after it.

    Parameters
    ----------
    odds : numpy.ndarray
        Log odds of each instance, without the count.
    bag : numpy.ndarray
        Bag number of each instance.
    count : numpy.ndarray
        Positives of each bag.

    >>> bag, count = np.array([0, 0, 0]), np.array([1])
    >>> expit(np.zeros(3) + count_evidence(np.zeros(3), bag, count)).round(3)
    array([0.333, 0.333, 0.333])
    """
    order = np.argsort(bag, kind="stable")
    size = np.bincount(bag, minlength=len(count))
    place = np.arange(len(bag)) - (np.cumsum(size) - size)[bag[order]]
    evidence = np.zeros(len(bag))
    for group in _alike(size):
        rows = np.isin(bag[order], group)
        number = np.searchsorted(group, bag[order][rows])
        h = np.zeros((len(group), int(size[group].max())))  # padding is never positive
        h[number, place[rows]] = expit(odds[order][rows])
        evidence[order[rows]] = _evidence(h, count[group])[number, place[rows]]
    return evidence


def _alike(size: np.ndarray) -> list[np.ndarray]:
    """Bags of similar size together, so many that they fit into memory."""
    by_size, groups, start = np.argsort(size, kind="stable"), [], 0
    while start < len(size):
        stop = start + 1
        while stop < len(size) and (stop + 1 - start) * (size[by_size[stop]] + 1) ** 2 <= ENTRIES:
            stop += 1
        groups.append(np.sort(by_size[start:stop]))
        start = stop
    return groups


def _evidence(h: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Of each bag and instance; both laws are kept up to the count only, beyond which none is
    asked for."""
    bags, k = h.shape
    count = count.astype(int)
    # before[i, j, s]: chance that s of the first i labels are positive
    before = np.zeros((k + 1, bags, int(count.max()) + 1))
    # after[i, j, s]: chance that the labels from i on make s the count, so that the two laws meet
    # at the same s; s beyond the count is impossible
    after = np.zeros((k + 1, bags, before.shape[2] + 1))
    before[0, :, 0] = after[k, np.arange(bags), count] = 1
    for i in range(k):
        one, last = h[:, i, None], h[:, k - 1 - i, None]
        before[i + 1] = before[i] * (1 - one)
        before[i + 1, :, 1:] += before[i, :, :-1] * one
        after[k - 1 - i] = after[k - i] * (1 - last)
        after[k - 1 - i, :, :-1] += after[k - i, :, 1:] * last
    without = {
        label: np.einsum("ijs,ijs->ji", before[:k], after[1:, :, label : label + before.shape[2]])
        for label in (0, 1)
    }
    one, zero = (np.maximum(without[label], 1e-300) for label in (1, 0))
    return np.clip(np.log(one) - np.log(zero), -MOST_ODDS, MOST_ODDS)


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
