"""Bags in, a boosted model out: LightGBM or XGBoost with tame defaults, stopped where held-out bags say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import zip_longest
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
    names : of the columns learned from, where these had any.
    bags_ : those learned from, without features, where they have names, so that nobody evaluates on them.
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
        return f"{type(self).__name__}({chosen} of {last} rounds; loss from held-out bags {self.history[chosen]:.4f})"

    @property
    def rounds(self) -> int:
        """The number of rounds that held-out bags chose."""
        return best_round(self.history)

    def scores(self, X: Any) -> np.ndarray:
        """One score per row."""
        _check_names(_names_of(X), self.names)
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
        return self.booster.predict(_import("xgboost").DMatrix(X), output_margin=True)


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
    held_out : bags to choose with. By default a fifth of the bags, and after the choice all bags are learned from.
    method, loss, share : as in `BagObjective`, but each round listens to half of the bags.
    rounds : how many to try.
    seed : of the split, of the draws of bags and of LightGBM.
    params : LightGBM's own, which replace the defaults here: learning_rate 0.05, max_depth 1 (3 from 3,000 bags on),
        min_data_in_leaf five bags, lambda_l2 the curvature of four bags, feature_fraction 0.5.
    """
    choices = {"method": method, "loss": loss, "share": share, "seed": seed}
    return _fit(LIGHTGBM, bags, held_out, rounds, params, choices)


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
    held_out : bags to choose with. By default a fifth of the bags, and after the choice all bags are learned from.
    method, loss, share : as in `BagObjective`, but each round listens to half of the bags.
    rounds : how many to try.
    seed : of the split, of the draws of bags and of XGBoost.
    params : XGBoost's own, which replace the defaults here: learning_rate 0.05, max_depth 1 (3 from 3,000 bags on),
        min_child_weight the curvature of five bags, reg_lambda that of four, colsample_bytree 0.5.
    """
    choices = {"method": method, "loss": loss, "share": share, "seed": seed}
    return _fit(XGBOOST, bags, held_out, rounds, params, choices)


class _Watch(NamedTuple):
    """Held-out bags, and what is done with their scores after each round."""

    bags: Bags
    look: Callable[[np.ndarray], float]


class _Library(NamedTuple):
    """What differs between the two: their words, and the way they are called."""

    name: str
    defaults: Callable[[BagObjective], dict[str, Any]]
    aliases: Mapping[str, tuple[str, ...]]
    grow: Callable[[BagObjective, Any, int, dict[str, Any], _Watch | None], Any]
    cut: Callable[[Any, int], Any]
    model: type[Boosted]


def _fit(
    library: _Library,
    bags: Bags,
    held_out: Bags | None,
    rounds: int,
    params: dict[str, Any],
    choices: dict[str, Any],
) -> Boosted:
    choices["loss"] = checked_loss(bags.kind, choices["method"], choices["loss"])
    _check(bags, held_out, params, rounds)
    bags, held_out = bags.reported(), None if held_out is None else held_out.reported()
    learn, judges = bags.split(0.8, seed=choices["seed"]) if held_out is None else (bags, held_out)
    objective = BagObjective(learn, **choices)
    judge = BagObjective(judges, loss="square" if bags.kind == "binary" else choices["loss"])
    history = [judge.value(np.full(len(judges.bag), objective.start))]

    def look(score: np.ndarray) -> float:
        history.append(judge.value(score))
        return history[-1]

    params = _tame(library, objective, params, many=len(bags) >= MANY_BAGS)
    booster = library.grow(objective, learn.X, rounds, params, _Watch(judges, look))
    best = best_round(np.array(history))
    if held_out is None and best:
        objective = BagObjective(bags, **choices)
        booster = library.grow(objective, bags.X, best, params, None)
    cut = library.cut(booster, best) if best else None
    known = bags.names is not None and bags.size.max() > 1
    names, learned = _names_of(bags.X), replace(bags, X=None) if known else None
    return library.model(cut, objective.start, bags.kind, objective.loss, np.array(history), names, learned)


def _names_of(X: Any) -> list[str] | None:
    """Names of the columns of a data frame or an Arrow table."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None else [str(name) for name in names]


def _check_names(names: Sequence[str] | None, learned: Sequence[str] | None) -> None:
    """Refuse columns in another order: LightGBM would take one for another."""
    if names is None or learned is None or list(names) == list(learned):
        return
    pairs = enumerate(zip_longest(names, learned, fillvalue="nothing"))
    place, (came, was) = next(pair for pair in pairs if len(set(pair[1])) == 2)
    raise ValueError(
        f"Columns must be those learned from, in the same order: column {place} is {came} and was {was}. Choose them "
        "by name."
    )


def _check(bags: Bags, held_out: Bags | None, params: Mapping[str, Any], rounds: int) -> None:
    taken = sorted({"objective", "obj", "n_estimators", "num_boost_round", "num_iterations"} & set(params))
    if taken:
        raise ValueError(
            f"Objective and rounds must be chosen with method=, loss= and rounds=: {taken[0]} came. Leave it out."
        )
    if rounds < 1:
        raise ValueError(f"Rounds must be at least 1: {rounds} came. 600 suit the learning rate of 0.05.")
    if bags.X is None or (held_out is not None and held_out.X is None):
        raise ValueError("Bags to boost from must have features: X is None. Make the bags with X.")
    if held_out is not None and held_out.kind != bags.kind:
        raise ValueError(
            f"Held-out bags must report what the others report: {held_out.kind} came beside {bags.kind}. "
            "Take them from bags.split."
        )
    if held_out is not None:
        _check_names(_names_of(held_out.X), _names_of(bags.X))


def _tame(library: _Library, objective: BagObjective, params: Mapping[str, Any], *, many: bool) -> dict[str, Any]:
    """The user's parameters, and our defaults for the rest; given both, LightGBM would prefer its main names, ours."""
    ours = {"learning_rate": 0.05, "max_depth": 3 if many else 1, "seed": objective.seed, **library.defaults(objective)}
    return {k: v for k, v in ours.items() if not set(library.aliases.get(k, ())) & set(params)} | dict(params)


def _leaf(bags: Bags) -> int:
    """Rows of a leaf: five bags' worth, and less where there are fewer than fifty bags."""
    return max(1, min(round(5 * np.mean(bags.size)), len(bags.bag) // 10))


def _penalty(objective: BagObjective) -> float:
    return float(4 * np.mean(objective.bags.size) * objective.unit)


def _grow_lightgbm(objective: BagObjective, X: Any, rounds: int, params: dict[str, Any], watch: _Watch | None) -> Any:
    lightgbm, b = _import("lightgbm"), objective.bags
    params = {**params, "objective": objective}
    start = lambda bags: np.full(len(bags.bag), objective.start)
    data = lightgbm.Dataset(X, b.report[b.bag], init_score=start(b), params=params)
    if watch is None:
        return lightgbm.train(params, data, rounds)
    held_out = data.create_valid(watch.bags.X, watch.bags.report[watch.bags.bag], init_score=start(watch.bags))
    look = lambda score, _: ("estimated_loss", watch.look(score), False)
    return lightgbm.train(params, data, rounds, valid_sets=[held_out], feval=look)


def _cut_lightgbm(booster: Any, rounds: int) -> Any:
    return _import("lightgbm").Booster(model_str=booster.model_to_string(num_iteration=rounds))


def _grow_xgboost(objective: BagObjective, X: Any, rounds: int, params: dict[str, Any], watch: _Watch | None) -> Any:
    xgboost = _import("xgboost")
    options = {"obj": objective, "verbose_eval": False}
    if watch is not None:
        options["evals"] = [(xgboost.DMatrix(watch.bags.X), "held_out")]
        options["custom_metric"] = lambda score, _: ("estimated_loss", watch.look(score))
    params = {**params, "base_score": objective.start, "disable_default_eval_metric": True}
    return xgboost.train(params, xgboost.DMatrix(X), rounds, **options)


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} must be installed to boost with it. Run pip install 'unbag[boosting]'.") from error


LIGHTGBM = _Library(
    name="lightgbm",
    defaults=lambda objective: {
        "min_data_in_leaf": _leaf(objective.bags),
        "lambda_l2": _penalty(objective),
        "feature_fraction": 0.5,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    },
    aliases={
        "learning_rate": ("shrinkage_rate", "eta"),
        "min_data_in_leaf": ("min_data_per_leaf", "min_data", "min_child_samples", "min_samples_leaf"),
        "lambda_l2": ("reg_lambda", "lambda", "l2_regularization"),
        "feature_fraction": ("sub_feature", "colsample_bytree"),
        "seed": ("random_seed", "random_state"),
        "force_col_wise": ("force_row_wise",),
        "verbosity": ("verbose",),
    },
    grow=_grow_lightgbm,
    cut=_cut_lightgbm,
    model=BoostedByLightGBM,
)
XGBOOST = _Library(
    name="xgboost",
    defaults=lambda objective: {
        "min_child_weight": _leaf(objective.bags) * objective.unit,
        "reg_lambda": _penalty(objective),
        "colsample_bytree": 0.5,
    },
    aliases={"learning_rate": ("eta",), "reg_lambda": ("lambda",), "seed": ("random_state",)},
    grow=_grow_xgboost,
    cut=lambda booster, rounds: booster[:rounds],
    model=BoostedByXGBoost,
)
