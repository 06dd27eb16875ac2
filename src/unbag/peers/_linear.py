"""Learners of a linear logit from binary bags, one setting of which is chosen from bags alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy import sparse
from scipy.optimize import minimize, root_scalar
from scipy.special import expit, logit

from unbag._rules import broken, refuse
from unbag.bags import Bags, Kind
from unbag.likelihood import count_likelihood
from unbag.tables import FeaturePlan, is_matrix, plan_features

if TYPE_CHECKING:
    from unbag.learners import Progress


EDGE = 0.01  # a linear probability is kept so far from 0 and 1, or closer where labels are rare


@dataclass(frozen=True, eq=False)
class PeerColumns:
    """How rows become a matrix whose columns have mean 0 and variance 1.

    Of a table the numbers and the categories that a plan makes numbers of are read; columns with
    too many values for that are left out. A missing number is the mean.

    Parameters
    ----------
    plan : FeaturePlan or None
        Of the columns of a table; None for a matrix or images.
    mean, scale : numpy.ndarray
        Of each column.
    """

    plan: FeaturePlan | None
    mean: np.ndarray
    scale: np.ndarray

    @staticmethod
    def of(X: Any) -> tuple[PeerColumns, np.ndarray]:
        """The columns of these rows, and their matrix."""
        plan = None
        if not is_matrix(X):
            plan = plan_features(X)
        raw = _raw(X, plan)
        mean, scale = np.nanmean(raw, axis=0), np.nanstd(raw, axis=0)
        columns = PeerColumns(plan, mean, np.where(scale > 0, scale, 1.0))
        return columns, columns.matrix(X)

    def matrix(self, X: Any) -> np.ndarray:
        """The matrix of rows."""
        return np.nan_to_num((_raw(X, self.plan) - self.mean) / self.scale)


def _raw(X: Any, plan: FeaturePlan | None) -> np.ndarray:
    if plan is not None:
        return plan.apply(X)[:, : plan.numbers].astype(float)
    if sparse.issparse(X):
        X = X.toarray()
    return np.asarray(X, float).reshape(len(X), -1)


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel:
    """Scores that are linear in the columns, or in random cosines of them.

    Parameters
    ----------
    columns : PeerColumns
        How rows are read.
    coefficients : numpy.ndarray
        Of each column, or of each cosine.
    intercept : float
        Added to all.
    probability : bool
        Whether the linear part is a probability; else it is a logit.
    waves : numpy.ndarray or None
        Frequencies of the cosines, with a last row of phases.
    edge : float
        How far from 0 and 1 a linear probability is kept.
    kind : {"binary"}
        What the scores mean.
    """

    columns: PeerColumns
    coefficients: np.ndarray
    intercept: float
    probability: bool = False
    waves: np.ndarray | None = None
    edge: float = EDGE
    kind: Kind = "binary"

    def __repr__(self) -> str:
        return f"LinearModel({len(self.coefficients)} coefficients; {self.kind})"

    def scores(self, X: Any) -> np.ndarray:
        """Logits of rows."""
        value = cosines(self.columns.matrix(X), self.waves) @ self.coefficients + self.intercept
        if self.probability:
            return logit(np.clip(value, self.edge, 1 - self.edge))
        return value

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The model as arrays and settings that JSON can hold."""
        arrays = {"mean": self.columns.mean, "scale": self.columns.scale}
        arrays["coefficients"] = self.coefficients
        if self.waves is not None:
            arrays["waves"] = self.waves
        plan = self.columns.plan
        settings = {"intercept": float(self.intercept), "probability": self.probability}
        return arrays, settings | {"edge": self.edge, "plan": plan and plan.to_json()}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> LinearModel:
        """The model that `arrays` described.

        Parameters
        ----------
        arrays, settings : dict
            What it gave.
        """
        text = settings["plan"]
        plan = text and FeaturePlan.from_json(text)
        columns = PeerColumns(plan, np.asarray(arrays["mean"]), np.asarray(arrays["scale"]))
        linear = (settings["intercept"], settings["probability"], arrays.get("waves"))
        edge = settings.get("edge", EDGE)  # files of before have none
        return cls(columns, np.asarray(arrays["coefficients"]), *linear, edge=edge)


def cosines(matrix: np.ndarray, waves: np.ndarray | None) -> np.ndarray:
    """Random Fourier features of rows, or the rows themselves where there are no waves.

    Parameters
    ----------
    matrix : numpy.ndarray
        Rows.
    waves : numpy.ndarray or None
        A column of frequencies and a phase for each feature.
    """
    if waves is None:
        return matrix
    return np.sqrt(2 / waves.shape[1]) * np.cos(matrix @ waves[:-1] + waves[-1])


class BagData(NamedTuple):
    """Binary bags as these learners take them.

    Parameters
    ----------
    X : numpy.ndarray
        Matrix of the rows.
    bag : numpy.ndarray
        Bag number of each row.
    size, report : numpy.ndarray
        Of each bag.
    noise : numpy.ndarray, optional
        The variance of the noise on each bag's count.
    """

    X: np.ndarray
    bag: np.ndarray
    size: np.ndarray
    report: np.ndarray
    noise: np.ndarray | None = None

    @property
    def positives(self) -> np.ndarray:
        """Positives of each bag."""
        return np.round(self.size * self.report)

    @property
    def means(self) -> np.ndarray:
        """Mean row of each bag."""
        by_bag = sparse.csr_matrix(
            (1 / self.size[self.bag], (self.bag, np.arange(len(self.bag)))),
            shape=(len(self.size), len(self.bag)),
        )
        return by_bag @ self.X

    @property
    def prior(self) -> float:
        """Mean label, inside (0, 1) by one label of each sort."""
        rows = self.size.sum()
        return float((np.clip(self.size @ self.report, 0, rows) + 1) / (rows + 2))

    def take(self, bags: np.ndarray) -> BagData:
        """Some of the bags."""
        number = np.full(len(self.size), -1)
        number[bags] = np.arange(len(bags))
        kept = number[self.bag] >= 0
        noise = None if self.noise is None else self.noise[bags]
        of_rows = self.X[kept], number[self.bag[kept]]
        return BagData(*of_rows, self.size[bags], self.report[bags], noise)


def fit_logistic(
    X: np.ndarray,
    operator: np.ndarray,
    prior: float,
    penalty: float,
    *,
    start: np.ndarray | None = None,
    steps: int = 100,
) -> np.ndarray:
    """Logistic regression from sums: coefficients, then the intercept.

        min  mean_i log(2 cosh(z_i / 2)) - w . operator - b (prior - 1/2) + penalty |w|^2 / 2

    The labels enter through operator = mean_i (y_i - 1/2) x_i and the prior only, which is why an
    estimate of this mean operator is enough (Quadrianto and others 2009, Patrini and others 2014).

    Parameters
    ----------
    X : numpy.ndarray
        Rows.
    operator : numpy.ndarray
        Of each column.
    prior : float
        Mean label.
    penalty : float
        Of the coefficients.
    start : numpy.ndarray, optional
        Where to start.
    steps : int
        Of L-BFGS, at most.
    """

    def value(given: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = given[:-1], given[-1]
        z = X @ w + b
        loss = np.mean(np.logaddexp(z / 2, -z / 2)) - w @ operator - b * (prior - 0.5)
        pull = expit(z) - 0.5
        slope = X.T @ pull / len(z) - operator + penalty * w
        return loss + penalty * w @ w / 2, np.append(slope, pull.mean() - prior + 0.5)

    if start is None:
        start = np.append(np.zeros(X.shape[1]), logit(prior))
    return minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x


FOLDS = 3
Setting = TypeVar("Setting")
# fits by a setting, and gives what scores rows
Score = Callable[[BagData, Setting], Callable[[np.ndarray], np.ndarray]]


def choose_by_counts(
    fit: Score[Setting], data: BagData, settings: Sequence[Setting], *, seed: int
) -> tuple[Setting, np.ndarray]:
    """The setting under which the counts of bags not learned from are likeliest, at the right
    level, and the scores of these bags' rows.

    Parameters
    ----------
    fit : callable
        `fit(data, setting)` gives a function from rows to scores.
    data : BagData
        All bags.
    settings : sequence
        To choose from.
    seed : int
        Of the folds.
    """
    folds = min(FOLDS, len(data.size) // 2)
    fold = np.random.default_rng(seed).permutation(len(data.size)) % max(folds, 1)
    scores = np.zeros((len(settings), len(data.bag)))
    if folds < 2:
        return settings[len(settings) // 2], scores[0]
    for number in range(folds):
        learn = data.take(np.flatnonzero(fold != number))
        held = fold[data.bag] == number
        for place, setting in enumerate(settings):
            score = fit(learn, setting)
            level = level_of(score(learn.X), learn.prior)
            scores[place, held] = score(data.X[held]) + level
    best = int(np.argmin([unlikelihood(score, data) for score in scores]))
    return settings[best], scores[best]


def unlikelihood(score: np.ndarray, data: BagData) -> float:
    """Minus the log likelihood of all counts.

    Parameters
    ----------
    score : numpy.ndarray
        Logit of each row.
    data : BagData
        The bags.
    """
    report = np.stack([np.ones(len(data.size)), data.report], axis=1)
    known = {"exact": 1, "noise": data.noise}
    return float(count_likelihood(score, data.bag, data.size, report, **known).sum())


def level_of(score: np.ndarray, prior: float) -> float:
    """What to add to logits so that the mean probability is the prior.

    Parameters
    ----------
    score : numpy.ndarray
        Logits.
    prior : float
        Inside (0, 1).

    >>> round(level_of(np.array([1.0, 3.0]), 0.5), 6)
    -2.0
    """
    edge = float(np.abs(score).max()) + 50

    def excess(level: float) -> float:
        return float(expit(score + level).mean()) - prior

    return float(root_scalar(excess, bracket=(-edge, edge)).root)


def slope_and_level(score: np.ndarray, data: BagData) -> tuple[float, float]:
    """By how much to stretch and shift scores so that the counts are likeliest: Platt's scaling,
    from bags.

    Parameters
    ----------
    score : numpy.ndarray
        Of each row, by a model that has not learned from its bag.
    data : BagData
        The bags.
    """

    def value(log_slope: np.ndarray) -> float:
        stretched = float(np.exp(log_slope[0])) * score
        return unlikelihood(stretched + level_of(stretched, data.prior), data)

    slope = float(np.exp(minimize(value, [0.0], method="Nelder-Mead", bounds=[(-5, 5)]).x[0]))
    return slope, level_of(slope * score, data.prior)


class LinearPeer:
    """A learner of a linear logit, one setting of which is chosen from bags.

    A subclass has a `name`, a `title`, `settings` and `coefficients`. Where `guesses_labels` is
    set, reports must be possible counts. Where `stretched` is set, its scores are no logits, or too
    small ones, and get slope and level from the counts of bags that were not learned from.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    guesses_labels: ClassVar[bool] = False
    stretched: ClassVar[bool] = False
    needs_random_bags: ClassVar[bool] = False
    model: ClassVar[type] = LinearModel

    def fit(self, bags: Bags, *, seed: int = 0, progress: Progress | None = None) -> LinearModel:
        """A linear model of these bags.

        Parameters
        ----------
        bags : Bags
            Binary, with features; where labels are guessed, with reports in [0, 1].
        seed : int
            Of the folds that choose, and of whatever is drawn.
        progress : Progress, optional
            Not used.
        """
        bags = bags.reported()
        if bags.kind != "binary" or bags.offset is not None:
            given = bags.kind if bags.kind != "binary" else "an offset"
            rule = f"The learner {self.name} must have binary reports and no offset"
            raise broken(rule, f"{given} given", "Use additive, trees or network.")
        if self.guesses_labels:
            refuse(
                f"The learner {self.name} must have reports in [0, 1], because it guesses labels",
                (bags.report < 0) | (bags.report > 1),
                thing="bag",
                given=bags.report,
                remedy="Use additive, trees or network, which take noise.",
            )
        columns, X = PeerColumns.of(bags.X)
        of_bags = (bags.size.astype(float), bags.report, bags.noise)
        return self.fit_data(columns, BagData(X, bags.bag, *of_bags), seed)

    def fit_data(self, columns: PeerColumns, data: BagData, seed: int) -> LinearModel:
        """The model of bags that were read.

        Parameters
        ----------
        columns, data : PeerColumns, BagData
            How rows are read, and the bags.
        seed : int
            Of the folds that choose.
        """

        def scores(data: BagData, setting: Any) -> Callable[[np.ndarray], np.ndarray]:
            w = self.coefficients(data, setting)
            return lambda X: X @ w[:-1] + w[-1]

        chosen, held = choose_by_counts(scores, data, self.settings(), seed=seed)
        w = self.coefficients(data, chosen)
        if self.stretched:
            slope, _ = slope_and_level(held, data)
            w = slope * w
            w[-1] += level_of(data.X @ w[:-1] + w[-1], data.prior)
        return LinearModel(columns, w[:-1], w[-1])

    def settings(self) -> Sequence[Any]:
        """What to choose from."""
        raise NotImplementedError

    def coefficients(self, data: BagData, setting: Any) -> np.ndarray:
        """Coefficients, then the intercept.

        Parameters
        ----------
        data : BagData
            To learn from.
        setting : object
            One of the settings.
        """
        raise NotImplementedError
