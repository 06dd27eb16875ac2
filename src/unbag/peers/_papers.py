"""The learners, paper by paper: regression on bag means and on mean embeddings, alter-SVM, mean map
and Laplacian mean map, EM within bags, and belief propagation over bags and neighbours."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist, pdist
from scipy.special import expit, logit

from unbag._rules import broken
from unbag.peers._linear import (
    EDGE,
    BagData,
    LinearModel,
    LinearPeer,
    PeerColumns,
    cosines,
    fit_logistic,
)

PENALTIES = np.logspace(-6, 2, 17)
SAMPLE = 1000  # so many rows tell the typical distance


@dataclass(frozen=True)
class BagMeans(LinearPeer):
    """Ridge regression of the proportions on the mean rows of bags: what one writes in an hour.

        min  sum_j k_j (a_j - b - w . mean_j x)^2 + penalty |w|^2

    The penalty has the least error of bags left out, which ridge regression knows without fitting
    again. A row is then a bag of one; its value is kept in [0.01, 0.99], and for rarer labels a
    third of their share from 0.
    """

    name: ClassVar[str] = "bag_means"
    title: ClassVar[str] = "ridge on bag means"

    def fit_data(self, columns: PeerColumns, data: BagData, seed: int) -> LinearModel:
        """A linear probability; see `LinearPeer.fit_data`."""
        waves = self._waves(data.X, seed)
        means = data._replace(X=cosines(data.X, waves)).means
        w = ridge(means, data.report, data.size)
        edge = min(EDGE, data.prior / 3, (1 - data.prior) / 3)
        return LinearModel(columns, w[:-1], w[-1], probability=True, waves=waves, edge=edge)

    def _waves(self, X: np.ndarray, seed: int) -> Any:
        return None


@dataclass(frozen=True)
class DistributionRegression(BagMeans):
    """Kernel regression on bags as distributions: ridge regression on their mean embeddings, after
    Szabo, Sriperumbudur, Poczos and Gretton (2016).

    The embedding of a bag is the mean of random cosines, whose products are those of a Gaussian
    kernel (Rahimi and Recht 2007); its width is the median distance of rows.

    Parameters
    ----------
    features : int
        Number of cosines.
    """

    features: int = 300

    name: ClassVar[str] = "distribution_regression"
    title: ClassVar[str] = "distribution regression"

    def _waves(self, X: np.ndarray, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        sample = X[rng.permutation(len(X))[:SAMPLE]]
        width = float(np.median(pdist(sample))) if len(sample) > 1 else 1.0
        frequencies = rng.normal(size=(X.shape[1], self.features)) / max(width, 1e-12)
        return np.vstack([frequencies, rng.uniform(0, 2 * np.pi, size=self.features)])


def ridge(X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Coefficients and intercept of ridge regression at the penalty of least leave-one-out error.

    Parameters
    ----------
    X, y, weight : numpy.ndarray
        Rows, what to predict, and how much each row counts.
    """
    share = weight / weight.sum()
    centre, level = share @ X, float(share @ y)
    root = np.sqrt(share)[:, None]
    U, s, V = np.linalg.svd(root * (X - centre), full_matrices=False)
    target = root[:, 0] * (y - level)
    projected, best = U.T @ target, (np.inf, np.zeros(X.shape[1]))
    for penalty in PENALTIES * max(s[0] ** 2, 1e-12):
        shrunk = s**2 / (s**2 + penalty)
        leverage = (U**2) @ shrunk + share  # the intercept has its own
        error = (target - U @ (shrunk * projected)) / np.maximum(1 - leverage, 1e-6)
        coefficients = V.T @ (shrunk / np.maximum(s, 1e-12) * projected)
        best = min(best, (float(error @ error), coefficients), key=lambda pair: pair[0])
    return np.append(best[1], level - centre @ best[1])


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


MAP_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SMOOTHNESS = (0.01, 1.0)
MOST_BAGS = 4000


@dataclass(frozen=True)
class MeanMap(LinearPeer):
    """Mean map, Quadrianto, Smola, Caetano and Le (2009).

    The mean row of a bag is b_j = a_j m1 + (1 - a_j) m0 when bags differ in their proportions
    only. Least squares over bags, weighted by their sizes, give the class means m1 and m0, and
    p m1 - (1 - p) m0 the mean operator of logistic regression.

    Parameters
    ----------
    penalties : tuple of float
        Of the coefficients; one is chosen from bags.
    """

    penalties: tuple[float, ...] = MAP_PENALTIES

    name: ClassVar[str] = "mean_map"
    title: ClassVar[str] = "mean map"

    def settings(self) -> list[tuple[float, float]]:
        """Smoothness and penalty."""
        return [(0.0, penalty) for penalty in self.penalties]

    def coefficients(self, data: BagData, setting: tuple[float, float]) -> np.ndarray:
        """Coefficients, then the intercept; see `LinearPeer.coefficients`."""
        smoothness, penalty = setting
        return fit_logistic(data.X, self.operator(data, smoothness), data.prior, penalty)

    def operator(self, data: BagData, smoothness: float) -> np.ndarray:
        """Half the mean operator, the estimate of mean (y - 1/2) x.

        Parameters
        ----------
        data : BagData
            To learn from.
        smoothness : float
            Of the Laplacian mean map.
        """
        a, share = data.report, data.size / data.size.sum()
        A = np.sqrt(share)[:, None] * np.stack([a, 1 - a], axis=1)
        classes = np.linalg.lstsq(A, np.sqrt(share)[:, None] * data.means, rcond=None)[0]
        p = float(share @ a)
        return (p * classes[0] - (1 - p) * classes[1]) / 2


@dataclass(frozen=True)
class LaplacianMeanMap(MeanMap):
    """Laplacian mean map, Patrini, Nock, Rivera and Caetano (2014).

    Each bag has class means of its own, alike in bags whose mean rows are alike:

        min  sum_j share_j |b_j - a_j m1_j - (1 - a_j) m0_j|^2
             + smoothness / bags sum_{j < l} v_jl ( |m1_j - m1_l|^2 + |m0_j - m0_l|^2 )

    with v_jl = exp(-|b_j - b_l|^2 / s), s the median squared distance. Infinite smoothness is the
    mean map.

    Parameters
    ----------
    smoothnesses : tuple of float
        One is chosen from bags together with the penalty.
    """

    smoothnesses: tuple[float, ...] = SMOOTHNESS

    name: ClassVar[str] = "laplacian_mean_map"
    title: ClassVar[str] = "Laplacian mean map"

    def settings(self) -> list[tuple[float, float]]:
        """Smoothness and penalty."""
        return list(product(self.smoothnesses, self.penalties))

    def operator(self, data: BagData, smoothness: float) -> np.ndarray:
        """Half the mean operator, from class means of each bag.

        Parameters
        ----------
        data : BagData
            To learn from.
        smoothness : float
            How alike the class means of similar bags are.
        """
        a, B, m = data.report, data.means, len(data.size)
        if m > MOST_BAGS:
            rule = f"The Laplacian mean map must have at most {MOST_BAGS:,} bags"
            raise broken(rule, f"{m:,} given", "Use mean_map.")
        share = data.size / data.size.sum()
        distance = cdist(B, B, "sqeuclidean")
        similar = np.exp(-distance / max(float(np.median(distance)), 1e-12))
        laplacian = np.diag(similar.sum(axis=1)) - similar
        A = np.concatenate([np.diag(a), np.diag(1 - a)], axis=1)
        H = A.T @ (share[:, None] * A)
        H += smoothness / m**2 * np.kron(np.eye(2), laplacian) + 1e-12 * np.eye(2 * m)
        classes = np.linalg.solve(H, A.T @ (share[:, None] * B))
        return (share @ (a[:, None] * classes[:m] - (1 - a)[:, None] * classes[m:])) / 2


MOST_ODDS = 30.0  # log odds are kept within these bounds: a label that the count decides
ENTRIES = 2e7  # so many numbers are in memory at once


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


LABEL_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)


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

    penalties: tuple[float, ...] = LABEL_PENALTIES
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
