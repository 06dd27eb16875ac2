"""What these learners share: rows as a matrix, the linear model, and logistic regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, logit

from unbag._rules import broken, refuse
from unbag.bags import Bags, Kind
from unbag.tables import FeaturePlan, plan_features

EDGE = 0.01
"""A linear probability is kept so far from 0 and 1."""


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
        if not isinstance(X, np.ndarray) and not sparse.issparse(X):
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
    kind : {"binary"}
        What the scores mean.
    """

    columns: PeerColumns
    coefficients: np.ndarray
    intercept: float
    probability: bool = False
    waves: np.ndarray | None = None
    kind: Kind = "binary"

    def __repr__(self) -> str:
        return f"LinearModel({len(self.coefficients)} coefficients; {self.kind})"

    def scores(self, X: Any) -> np.ndarray:
        """Logits of rows."""
        value = cosines(self.columns.matrix(X), self.waves) @ self.coefficients + self.intercept
        if self.probability:
            return logit(np.clip(value, EDGE, 1 - EDGE))
        return value

    def rescaled(self, slope: float, level: float) -> LinearModel:
        """The model whose logits are slope times these, plus a level.

        Parameters
        ----------
        slope, level : float
            Of the logits.
        """
        return replace(
            self, coefficients=slope * self.coefficients, intercept=slope * self.intercept + level
        )

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The model as arrays and settings that JSON can hold."""
        arrays = {"mean": self.columns.mean, "scale": self.columns.scale}
        arrays["coefficients"] = self.coefficients
        if self.waves is not None:
            arrays["waves"] = self.waves
        plan = self.columns.plan
        settings = {"intercept": float(self.intercept), "probability": self.probability}
        return arrays, settings | {"plan": plan and plan.to_json()}

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
        return cls(columns, np.asarray(arrays["coefficients"]), *linear)


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
    """

    X: np.ndarray
    bag: np.ndarray
    size: np.ndarray
    report: np.ndarray

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
        return float((self.size @ self.report + 1) / (self.size.sum() + 2))

    def take(self, bags: np.ndarray) -> BagData:
        """Some of the bags."""
        number = np.full(len(self.size), -1)
        number[bags] = np.arange(len(bags))
        kept = number[self.bag] >= 0
        of_rows = self.X[kept], number[self.bag[kept]]
        return BagData(*of_rows, self.size[bags], self.report[bags])


def read_bags(bags: Bags, name: str, *, counts: bool = False) -> tuple[PeerColumns, BagData]:
    """Bags as a matrix; what a learner cannot take is refused.

    Parameters
    ----------
    bags : Bags
        Binary, with features.
    name : str
        Of the learner.
    counts : bool
        Whether reports must be possible counts.
    """
    bags = bags.reported()
    if bags.kind != "binary" or bags.offset is not None:
        given = bags.kind if bags.kind != "binary" else "an offset"
        raise broken(
            f"The learner {name} must have binary reports and no offset",
            f"{given} given",
            "Use additive, trees or network.",
        )
    if counts:
        refuse(
            f"The learner {name} must have reports in [0, 1], because it guesses labels",
            (bags.report < 0) | (bags.report > 1),
            thing="bag",
            given=bags.report,
            remedy="Use additive, trees or network, which take noise.",
        )
    columns, X = PeerColumns.of(bags.X)
    return columns, BagData(X, bags.bag, bags.size.astype(float), bags.report)


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
