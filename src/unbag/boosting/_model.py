"""Rows in, scores and predictions of boosted trees out, after a look at the names of the
columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from typing import Any

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, Kind
from unbag.boosting._objective import CURVES


@dataclass(frozen=True, eq=False, repr=False)
class Boosted(ABC):
    """Boosted trees that learned from bags.

    Parameters
    ----------
    booster : object
        The library's own, cut after the chosen round; None if that is round 0, the trivial
        predictor.
    start : float
        The score of the trivial predictor; XGBoost's booster adds it by itself, LightGBM's does
        not.
    kind : {"binary", "total"}
        What the scores mean.
    loss : str
        What was trained with.
    history : numpy.ndarray
        The loss estimated from held-out bags before the first round and after each: the square
        loss for binary reports, which is the least noisy, and the loss that was trained with for
        totals.
    names : sequence of str, optional
        Of the columns learned from, where these had any.
    bags_ : Bags, optional
        Those learned from, without features, where they have names, so that nobody evaluates on
        them.
    """

    booster: Any
    start: float
    kind: Kind
    loss: str
    history: np.ndarray
    names: Sequence[str] | None = None
    bags_: Bags | None = None

    def __repr__(self) -> str:
        chosen, last = self.rounds, len(self.history) - 1
        loss = f"loss from held-out bags {self.history[chosen]:.4f}"
        return f"{type(self).__name__}({chosen} of {last} rounds; {loss})"

    @property
    def rounds(self) -> int:
        """The number of rounds that held-out bags chose."""
        return best_round(self.history)

    def scores(self, X: Any) -> np.ndarray:
        """One score per row."""
        check_names(names_of(X), self.names)
        if self.booster is None:
            return np.full(X.shape[0], self.start)
        return np.asarray(self._scores(X), float)

    def predict(self, X: Any) -> np.ndarray:
        """The probability of label 1, or the mean count, of each row."""
        return CURVES[self.kind][self.loss].predict(self.scores(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of label 0 and of label 1, for binary reports."""
        if self.kind != "binary":
            rule = "Probabilities must come from binary reports"
            raise broken(rule, f"{self.kind} given", "Use predict for counts.")
        h = self.predict(X)
        return np.stack([1 - h, h], axis=1)

    @abstractmethod
    def _scores(self, X: Any) -> Any: ...


class BoostedByLightGBM(Boosted):
    """Boosted trees of LightGBM."""

    def _scores(self, X: Any) -> Any:
        return self.start + self.booster.predict(X, raw_score=True)


class BoostedByXGBoost(Boosted):
    """Boosted trees of XGBoost."""

    def _scores(self, X: Any) -> Any:
        return self.booster.predict(imported("xgboost").DMatrix(X), output_margin=True)


def best_round(history: np.ndarray) -> int:
    """The round of the smallest estimated loss; a round that gave NaN is never chosen.

    >>> best_round(np.array([0.6, 0.4, np.nan, 0.5]))
    1
    """
    return int(np.nanargmin(history))


def names_of(X: Any) -> list[str] | None:
    """Names of the columns of a data frame or an Arrow table; numbers are none."""
    names: list[Any] = list(getattr(X, "column_names", getattr(X, "columns", ())))
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return names


def check_names(names: Sequence[str] | None, learned: Sequence[str] | None) -> None:
    """Refuse columns in another order: LightGBM would take one for another."""
    if names is None or learned is None or list(names) == list(learned):
        return
    pairs = enumerate(zip_longest(names, learned))
    place, (given, was) = next(pair for pair in pairs if len(set(pair[1])) == 2)
    rule = "Columns must be those learned from, in the same order"
    raise broken(rule, f"column {place} is {given} and was {was}", "Choose them by name.")


def imported(name: str) -> Any:
    """A library, or how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name} must be installed to boost with it. Run pip install 'unbag[boosting]'."
        ) from error
