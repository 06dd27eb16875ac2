"""Bags in, a boosted model out: LightGBM or XGBoost with tame defaults, stopped by held-out bags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from unbag.bags import Bags, Kind
from unbag.boosting.objective import CURVES, BagObjective, Method, checked_loss

MANY_BAGS = 3000
"""From so many bags on, trees have depth 3: measured on Adult, where stumps are better at 1,600 bags, not at 3,200."""


@dataclass(frozen=True, eq=False, repr=False)
class Boosted(ABC):
    """Boosted trees that learned from bags.

    Parameters
    ----------
    booster : the library's own, cut after the chosen round; None if that is round 0, the trivial predictor.
    start : the score of the trivial predictor; XGBoost's booster adds it by itself, LightGBM's does not.
    kind, loss : what the scores mean.
    history : the loss estimated from held-out bags before the first round and after each: the square loss for binary
        reports, which is the least noisy, and the loss that was trained with for totals.
    """

    booster: Any
    start: float
    kind: Kind
    loss: str
    history: np.ndarray

    def __repr__(self) -> str:
        chosen, last = self.rounds, len(self.history) - 1
        return f"{type(self).__name__}({chosen} of {last} rounds; loss from held-out bags {self.history[chosen]:.4f})"

    @property
    def rounds(self) -> int:
        """The number of rounds that held-out bags chose."""
        return best_round(self.history)

    def scores(self, X: Any) -> np.ndarray:
        """One score per row."""
        return np.full(X.shape[0], self.start) if self.booster is None else np.asarray(self._scores(X), float)

    def predict(self, X: Any) -> np.ndarray:
        """The probability of label 1, or the mean count, of each row."""
        return CURVES[self.kind][self.loss].predict(self.scores(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of label 0 and of label 1, for binary reports."""
        if self.kind != "binary":
            raise ValueError(f"Probabilities must come from binary reports: {self.kind} came. Use predict for counts.")
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
        return self.booster.predict(_library("xgboost").DMatrix(X), output_margin=True)


def best_round(history: np.ndarray) -> int:
    """The round of the smallest estimated loss; a round that gave NaN is never chosen.

    >>> best_round(np.array([0.6, 0.4, np.nan, 0.5]))
    1
    """
    return int(np.nanargmin(history))


def fit_lightgbm(
    bags: Bags,
    *,
    held_out: Bags | None = None,
    method: Method = "anchored",
    loss: str | None = None,
    rounds: int = 600,
    share: float = 0.5,
    seed: int = 0,
    **params: Any,
) -> Boosted:
    """LightGBM learns from bags; held-out bags choose the number of rounds.

    Parameters
    ----------
    bags : with features X and binary reports or totals.
    held_out : bags to choose with; by default a fifth of the bags, which then are not learned from.
    method, loss, share : as in `BagObjective`, but each round listens to half of the bags.
    rounds : how many to try.
    seed : of the split, of the draws of bags and of LightGBM.
    params : LightGBM's own, which replace the defaults here: learning_rate 0.05, max_depth 1 (3 from 3,000 bags on),
        min_data_in_leaf five bags, lambda_l2 the curvature of four bags, feature_fraction 0.5.
    """
    task = _task(bags, held_out, params, method=method, loss=loss, rounds=rounds, share=share, seed=seed)
    lightgbm, start = _library("lightgbm"), task.objective.start
    tame = {
        **_shared_defaults(task),
        "min_data_in_leaf": _leaf(task.learn),
        "lambda_l2": 4 * _mean_size(task.learn) * task.objective.unit,
        "feature_fraction": 0.5,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }
    params = {**_without(tame, params, LIGHTGBM_ALIASES), **params, "objective": task.objective}
    data = lambda b, of=None: lightgbm.Dataset(
        b.X, b.report[b.bag], init_score=np.full(len(b.bag), start), reference=of, params=params
    )
    learn, history = data(task.learn), [task.judge.value(np.full(len(task.held_out.bag), start))]

    def judge(score: np.ndarray, _: Any) -> tuple[str, float, bool]:
        history.append(task.judge.value(score))
        return "estimated_loss", history[-1], False

    booster = lightgbm.train(params, learn, rounds, valid_sets=[data(task.held_out, learn)], feval=judge)
    best = best_round(np.array(history))
    cut = lightgbm.Booster(model_str=booster.model_to_string(num_iteration=best)) if best else None
    return BoostedByLightGBM(cut, start, bags.kind, task.objective.loss, np.array(history))


def fit_xgboost(
    bags: Bags,
    *,
    held_out: Bags | None = None,
    method: Method = "anchored",
    loss: str | None = None,
    rounds: int = 600,
    share: float = 0.5,
    seed: int = 0,
    **params: Any,
) -> Boosted:
    """XGBoost learns from bags; held-out bags choose the number of rounds.

    Parameters
    ----------
    bags : with features X and binary reports or totals.
    held_out : bags to choose with; by default a fifth of the bags, which then are not learned from.
    method, loss, share : as in `BagObjective`, but each round listens to half of the bags.
    rounds : how many to try.
    seed : of the split, of the draws of bags and of XGBoost.
    params : XGBoost's own, which replace the defaults here: learning_rate 0.05, max_depth 1 (3 from 3,000 bags on),
        min_child_weight the curvature of five bags, reg_lambda that of four, colsample_bytree 0.5.
    """
    task = _task(bags, held_out, params, method=method, loss=loss, rounds=rounds, share=share, seed=seed)
    xgboost, start = _library("xgboost"), task.objective.start
    tame = {
        **_shared_defaults(task),
        "min_child_weight": _leaf(task.learn) * task.objective.unit,
        "reg_lambda": 4 * _mean_size(task.learn) * task.objective.unit,
        "colsample_bytree": 0.5,
        "base_score": start,
        "disable_default_eval_metric": True,
    }
    history = [task.judge.value(np.full(len(task.held_out.bag), start))]

    def judge(score: np.ndarray, _: Any) -> tuple[str, float]:
        history.append(task.judge.value(score))
        return "estimated_loss", history[-1]

    booster = xgboost.train(
        {**_without(tame, params, XGBOOST_ALIASES), **params},
        xgboost.DMatrix(task.learn.X),
        rounds,
        evals=[(xgboost.DMatrix(task.held_out.X), "held_out")],
        obj=task.objective,
        custom_metric=judge,
        verbose_eval=False,
    )
    best = best_round(np.array(history))
    return BoostedByXGBoost(booster[:best] if best else None, start, bags.kind, task.objective.loss, np.array(history))


class _Task(NamedTuple):
    """What both libraries need: bags to learn from and to hold out, what to minimise, and who judges a round."""

    learn: Bags
    held_out: Bags
    objective: BagObjective
    judge: BagObjective


def _task(
    bags: Bags,
    held_out: Bags | None,
    params: Mapping[str, Any],
    *,
    method: Method,
    loss: str | None,
    rounds: int,
    share: float,
    seed: int,
) -> _Task:
    loss = checked_loss(bags.kind, method, loss)
    _check(bags, held_out, params, rounds)
    learn, held_out = bags.split(0.8, seed=seed) if held_out is None else (bags, held_out)
    objective = BagObjective(learn, method=method, loss=loss, share=share, seed=seed)
    return _Task(learn, held_out, objective, BagObjective(held_out, loss="square" if bags.kind == "binary" else loss))


def _check(bags: Bags, held_out: Bags | None, params: Mapping[str, Any], rounds: int) -> None:
    if "objective" in params or "obj" in params:
        raise ValueError("The objective must be that of the bags: another came. Choose with method= and loss=.")
    if rounds < 1:
        raise ValueError(f"Rounds must be at least 1: {rounds} came. 600 suit the learning rate of 0.05.")
    if bags.X is None or (held_out is not None and held_out.X is None):
        raise ValueError("Bags to boost from must have features: X is None. Make the bags with X.")
    if held_out is not None and held_out.kind != bags.kind:
        raise ValueError(
            f"Held-out bags must report what the others report: {held_out.kind} came beside {bags.kind}. "
            "Take them from bags.split."
        )


def _mean_size(bags: Bags) -> float:
    return len(bags.bag) / len(bags)


def _leaf(bags: Bags) -> int:
    """Rows of a leaf: five bags' worth, and less where there are fewer than fifty bags."""
    return max(1, min(round(5 * _mean_size(bags)), len(bags.bag) // 10))


def _shared_defaults(task: _Task) -> dict[str, Any]:
    depth = 3 if len(task.learn) >= MANY_BAGS else 1
    return {"learning_rate": 0.05, "max_depth": depth, "seed": task.objective.seed}


LIGHTGBM_ALIASES = {
    "learning_rate": ("shrinkage_rate", "eta"),
    "min_data_in_leaf": ("min_data_per_leaf", "min_data", "min_child_samples", "min_samples_leaf"),
    "lambda_l2": ("reg_lambda", "lambda", "l2_regularization"),
    "feature_fraction": ("sub_feature", "colsample_bytree"),
    "verbosity": ("verbose",),
    "force_col_wise": ("force_row_wise",),
    "seed": ("random_seed", "random_state"),
}
XGBOOST_ALIASES = {"learning_rate": ("eta",), "reg_lambda": ("lambda",), "seed": ("random_state",)}


def _without(
    defaults: Mapping[str, Any], params: Mapping[str, Any], aliases: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Defaults that the user did not set under another name; LightGBM would prefer ours, silently."""
    return {name: value for name, value in defaults.items() if not set(aliases.get(name, ())) & set(params)}


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} must be installed to boost with it. Run pip install 'unbag[boosting]'.") from error
