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

MANY_BAGS = 3000
"""From so many bags on, trees have depth 3: on Adult stumps win at 1,600 bags, not at 3,200."""


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
    _check(bags, held_out, params, rounds)
    choices["loss"] = checked_loss(bags.kind, choices["method"], choices["loss"])
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
    names, learned = names_of(bags.X), bags.bare() if known else None
    return library.model(
        cut, float(objective.start), bags.kind, objective.loss, np.array(history), names, learned
    )


def _check(bags: Bags, held_out: Bags | None, params: Mapping[str, Any], rounds: int) -> None:
    taken = sorted(
        {"objective", "obj", "n_estimators", "num_boost_round", "num_iterations"} & set(params)
    )
    if taken:
        raise broken(
            "Objective and rounds must be chosen with method=, loss= and rounds=",
            f"{taken[0]} given",
            "Leave it out.",
        )
    if bags.kind == "histogram":
        raise broken(
            "Reports to boost from must be binary or total, because each instance has one score",
            f"{bags.kind} given",
            "Use unbag.learners.Trees, or boost each class against the rest.",
        )
    if rounds < 1:
        raise ValueError(
            f"Rounds must be at least 1: {rounds} given. 600 suit the learning rate of 0.05."
        )
    if bags.X is None or (held_out is not None and held_out.X is None):
        raise broken("Bags to boost from must have features", "X is None", "Make the bags with X.")
    if held_out is not None and held_out.kind != bags.kind:
        raise broken(
            "Held-out bags must report what the others report",
            f"{held_out.kind} given beside {bags.kind}",
            "Take them from bags.split.",
        )
    if held_out is not None:
        check_names(names_of(held_out.X), names_of(bags.X))


def _tame(
    library: _Library, objective: BagObjective, params: Mapping[str, Any], *, many: bool
) -> dict[str, Any]:
    """The user's parameters, and our defaults for the rest; given both, LightGBM would prefer its
    main names, ours."""
    ours = {
        "learning_rate": 0.05,
        "max_depth": 3 if many else 1,
        "seed": objective.seed,
        **library.defaults(objective),
    }
    return {
        k: v for k, v in ours.items() if not set(library.aliases.get(k, ())) & set(params)
    } | dict(params)


def _leaf(bags: Bags) -> int:
    """Rows of a leaf: five bags' worth, and less where there are fewer than fifty bags."""
    return max(1, min(round(5 * np.mean(bags.size)), len(bags.bag) // 10))


def _penalty(objective: BagObjective) -> float:
    return float(4 * np.mean(objective.bags.size) * objective.unit)


def _grow_lightgbm(
    objective: BagObjective, X: Any, rounds: int, params: dict[str, Any], watch: _Watch | None
) -> Any:
    lightgbm, b = imported("lightgbm"), objective.bags
    params = {**params, "objective": objective}
    start = lambda bags: np.full(len(bags.bag), objective.start)
    data = lightgbm.Dataset(X, b.report[b.bag], init_score=start(b), params=params)
    if watch is None:
        return lightgbm.train(params, data, rounds)
    held_out = data.create_valid(
        watch.bags.X, watch.bags.report[watch.bags.bag], init_score=start(watch.bags)
    )
    look = lambda score, _: ("estimated_loss", watch.look(score), False)
    return lightgbm.train(params, data, rounds, valid_sets=[held_out], feval=look)


def _cut_lightgbm(booster: Any, rounds: int) -> Any:
    return imported("lightgbm").Booster(model_str=booster.model_to_string(num_iteration=rounds))


def _grow_xgboost(
    objective: BagObjective, X: Any, rounds: int, params: dict[str, Any], watch: _Watch | None
) -> Any:
    xgboost = imported("xgboost")
    options = {"obj": objective, "verbose_eval": False}
    if watch is not None:
        options["evals"] = [(xgboost.DMatrix(watch.bags.X), "held_out")]
        options["custom_metric"] = lambda score, _: ("estimated_loss", watch.look(score))
    params = {**params, "base_score": objective.start, "disable_default_eval_metric": True}
    return xgboost.train(params, xgboost.DMatrix(X), rounds, **options)


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
