"""Bags in, a boosted model out: LightGBM or XGBoost with tame defaults, stopped where held-out bags
say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags
from unbag.boosting._model import (
    Boosted,
    BoostedByLightGBM,
    BoostedByXGBoost,
    best_round,
    check_names,
    imported,
    names_of,
)
from unbag.boosting._objective import BagObjective, checked_loss
from unbag.methods import Method

# from so many bags on, trees have depth 3: on Adult stumps win at 1,600 bags, not at 3,200
MANY_BAGS = 3000


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
    bags : Bags
        With features X and binary reports or totals.
    held_out : Bags, optional
        Bags to choose with. By default a fifth of the bags, and after the choice all bags are
        learned from.
    method : {"anchored", "upm"}
        See `BagObjective`.
    loss : str, optional
        See `BagObjective`.
    rounds : int
        How many to try.
    share : float
        See `BagObjective`; by default each round listens to half of the bags.
    seed : int
        Of the split, of the draws of bags and of LightGBM.
    **params : object
        LightGBM's own, which replace the defaults here: learning_rate 0.05, max_depth 1 (3 from
        3,000 bags on), min_data_in_leaf five bags, lambda_l2 the curvature of four bags,
        feature_fraction 0.5.
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
    bags, held_out, method, loss, rounds, share, seed : Bags, str, int and float
        As in `fit_lightgbm`.
    **params : object
        XGBoost's own, which replace the defaults here: learning_rate 0.05, max_depth 1 (3 from
        3,000 bags on), min_child_weight the curvature of five bags, reg_lambda that of four,
        colsample_bytree 0.5.
    """
    choices = {"method": method, "loss": loss, "share": share, "seed": seed}
    return _fit(XGBOOST, bags, held_out, rounds, params, choices)


# held-out bags, and what is done with their scores after each round
Watch = tuple[Bags, Callable[[np.ndarray], float]]


class _Library(NamedTuple):
    """What differs between the two: their words, and the way they are called."""

    name: str
    defaults: Callable[[BagObjective], dict[str, Any]]
    aliases: Mapping[str, tuple[str, ...]]
    grow: Callable[[BagObjective, Any, int, dict[str, Any], Watch | None], Any]
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
    taken = {"objective", "obj", "n_estimators", "num_boost_round", "num_iterations"} & set(params)
    if taken:
        rule = "Objective and rounds must be chosen with method=, loss= and rounds="
        raise broken(rule, f"{min(taken)} given", "Leave it out.")
    if bags.kind == "histogram":
        rule = "Reports to boost from must be binary or total, because each instance has one score"
        remedy = "Use unbag.learners.Trees, or boost each class against the rest."
        raise broken(rule, f"{bags.kind} given", remedy)
    if rounds < 1:
        words = f"Rounds must be at least 1: {rounds} given."
        raise ValueError(f"{words} 600 suit the learning rate of 0.05.")
    if bags.X is None or (held_out is not None and held_out.X is None):
        raise broken("Bags to boost from must have features", "X is None", "Make the bags with X.")
    choices["loss"] = checked_loss(bags.kind, choices["method"], choices["loss"])
    if held_out is None:
        bags = bags.reported()
        learn, judges = bags.split(0.8, seed=choices["seed"])
    else:
        if held_out.kind != bags.kind:
            rule = "Held-out bags must report what the others report"
            remedy = "Take them from bags.split."
            raise broken(rule, f"{held_out.kind} given beside {bags.kind}", remedy)
        check_names(names_of(held_out.X), names_of(bags.X))
        bags = learn = bags.reported()
        judges = held_out.reported()
    objective = BagObjective(learn, **choices)
    judge = BagObjective(judges, loss="square" if bags.kind == "binary" else choices["loss"])
    history = [judge.value(np.full(len(judges.bag), objective.start))]

    def look(score: np.ndarray) -> float:
        history.append(judge.value(score))
        return history[-1]

    # Given both, LightGBM would prefer its main names, ours, to the user's.
    ours = {"learning_rate": 0.05, "max_depth": 1, "seed": objective.seed}
    if len(bags) >= MANY_BAGS:
        ours["max_depth"] = 3
    for name, value in (ours | library.defaults(objective)).items():
        if not {name, *library.aliases.get(name, ())} & set(params):
            params = {name: value, **params}
    booster = library.grow(objective, learn.X, rounds, params, (judges, look))
    best = best_round(np.array(history))
    if held_out is None and best:
        objective = BagObjective(bags, **choices)
        booster = library.grow(objective, bags.X, best, params, None)
    cut = known = None
    if best:
        cut = library.cut(booster, best)
    if bags.names is not None and bags.size.max() > 1:
        known = bags.bare()
    about = (float(objective.start), bags.kind, objective.loss, np.array(history))
    return library.model(cut, *about, names_of(bags.X), known)


def _tame(objective: BagObjective) -> tuple[int, float]:
    """Rows of a leaf, five bags' worth and less where there are fewer than fifty bags; and the
    penalty, the curvature of four bags."""
    size, rows = np.mean(objective.bags.size), len(objective.bags.bag)
    return max(1, min(round(5 * size), rows // 10)), float(4 * size * objective.unit)


def _grow_lightgbm(
    objective: BagObjective, X: Any, rounds: int, params: dict[str, Any], watch: Watch | None
) -> Any:
    lightgbm, b = imported("lightgbm"), objective.bags
    params = {**params, "objective": objective}
    start = lambda bags: np.full(len(bags.bag), objective.start)
    data = lightgbm.Dataset(X, b.report[b.bag], init_score=start(b), params=params)
    if watch is None:
        return lightgbm.train(params, data, rounds)
    judges, look = watch
    held_out = data.create_valid(judges.X, judges.report[judges.bag], init_score=start(judges))

    def estimated_loss(score: Any, _: Any) -> tuple[str, float, bool]:
        return "estimated_loss", look(score), False

    return lightgbm.train(params, data, rounds, valid_sets=[held_out], feval=estimated_loss)


def _grow_xgboost(
    objective: BagObjective, X: Any, rounds: int, params: dict[str, Any], watch: Watch | None
) -> Any:
    xgboost = imported("xgboost")
    options = {"obj": objective, "verbose_eval": False}
    if watch is not None:
        judges, look = watch
        options["evals"] = [(xgboost.DMatrix(judges.X), "held_out")]
        options["custom_metric"] = lambda score, _: ("estimated_loss", look(score))
    params = {**params, "base_score": objective.start, "disable_default_eval_metric": True}
    return xgboost.train(params, xgboost.DMatrix(X), rounds, **options)


LIGHTGBM = _Library(
    name="lightgbm",
    defaults=lambda objective: {
        "min_data_in_leaf": _tame(objective)[0],
        "lambda_l2": _tame(objective)[1],
        "feature_fraction": 0.5,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    },
    aliases={
        "learning_rate": ("shrinkage_rate", "eta"),
        "min_data_in_leaf": (
            "min_data_per_leaf",
            "min_data",
            "min_child_samples",
            "min_samples_leaf",
        ),
        "lambda_l2": ("reg_lambda", "lambda", "l2_regularization"),
        "feature_fraction": ("sub_feature", "colsample_bytree"),
        "seed": ("random_seed", "random_state"),
        "force_col_wise": ("force_row_wise",),
        "verbosity": ("verbose",),
    },
    grow=_grow_lightgbm,
    cut=lambda booster, rounds: imported("lightgbm").Booster(
        model_str=booster.model_to_string(num_iteration=rounds)
    ),
    model=BoostedByLightGBM,
)
XGBOOST = _Library(
    name="xgboost",
    defaults=lambda objective: {
        "min_child_weight": _tame(objective)[0] * objective.unit,
        "reg_lambda": _tame(objective)[1],
        "colsample_bytree": 0.5,
    },
    aliases={"learning_rate": ("eta",), "reg_lambda": ("lambda",), "seed": ("random_state",)},
    grow=_grow_xgboost,
    cut=lambda booster, rounds: booster[:rounds],
    model=BoostedByXGBoost,
)
