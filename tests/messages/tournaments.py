"""Bad input of tournaments, and the whole message that it gets."""

import numpy as np

from cases.tournaments import binary_problem, problem_of
from unbag import Bags, losses, tournament
from unbag.planning import ModelSpread

PROBABLY = {"scale": "probability"}
ONE, TWO = binary_problem(n=600, models=2)


def broken(value):
    models = [model.copy() for model in TWO]
    models[1][7] = value
    return models


MESSAGES = [
    (
        lambda: tournament([1 / (1 + np.exp(-each)) for each in TWO], ONE, beta=0.1, groups=9),
        "Scores must be logits: all of 400 values lie between 0 and 1, like probabilities. Say "
        "scale='probability', or scale='score' if they are logits all the same.",
    ),
    (
        lambda: tournament(TWO, ONE, beta=0, groups=9),
        "beta must be positive: 0 given. It is the regret that you can accept.",
    ),
    (
        lambda: tournament(TWO, ONE, beta=0.1, delta=1.0),
        "delta must lie between 0 and 1: 1.0 given. Use 0.05 for 95% confidence.",
    ),
    (
        lambda: tournament(TWO, ONE, beta=0.1, delta=0.001),
        "Each part of the split must hold at least as many bags as there are groups, 67: part 0 "
        "has 50 (2 such parts). Give more bags, or allow a larger chance of failure: it takes "
        "fewer groups.",
    ),
    (
        lambda: tournament(TWO, ONE, beta=0.1, groups=9, scale="odds"),
        "A scale must be one of score, probability: 'odds' given. Leave it out for scores.",
    ),
    (
        lambda: tournament(TWO, ONE, beta=0.1, groups=9, clip=0.0),
        "A clip must be positive: 0.0 given. Use 10, say, for log odds.",
    ),
    (
        lambda: tournament(
            *problem_of("total")[::-1], beta=0.1, loss=losses.poisson, spread=ModelSpread(1, 1, 1)
        ),
        "A known spread must come with exact binary reports or totals with a cap: there are "
        "histograms, noise or counts without a cap. Leave spread= out, or give the bags a cap.",
    ),
    (
        lambda: tournament(TWO, ONE, beta=0.1, groups=9, spread=ModelSpread(np.nan, 1, -1)),
        "A known spread must hold upper bounds of variances and squares: f1 nan, f2 1, mean -1, bag "
        "None given. Measure them on rows without labels, or take them from bounded_spread.",
    ),
    (
        lambda: tournament(
            [np.zeros(600), np.full(600, -2.0)], ONE, beta=0.1, groups=9, **PROBABLY
        ),
        "A probability must lie between 0 and 1: -2 given (400 such). Leave scale= out if these are "
        "scores.",
    ),
    (
        lambda: tournament(TWO[:1], ONE, beta=0.1, groups=9),
        "A tournament must have at least two models: 1 given. There is nothing to choose.",
    ),
    (
        lambda: tournament({"a": TWO[0], "b": TWO[1][:-1]}, ONE, beta=0.1, groups=9),
        "A model must have one prediction for each instance: model b has 599 for 600 instances. "
        "Predict for bags.X, in its order.",
    ),
    (
        lambda: tournament(broken(np.nan), ONE, beta=0.1, groups=9),
        "Predictions must be finite: model 1 has 1 that are not. Leave it out, or find out why.",
    ),
    (
        lambda: tournament([lambda X: X, lambda X: X[1:]], ONE, beta=0.1, groups=9),
        "A model must have one prediction for each instance: model 1 gave 399 for 400 rows. "
        "Return one score (or one row of class scores) per row.",
    ),
    (
        lambda: tournament(
            [lambda X: X, np.zeros(4)], Bags(np.arange(4), np.ones(4)), beta=0.1, groups=1
        ),
        "Bags must have features X for a model that is a function: model 0 is one and X is "
        "None. Give X to the bags, or predictions.",
    ),
    (
        lambda: tournament(TWO, ONE, beta=0.1, groups=9, loss=losses.brier),
        "A loss for binary reports must take one score per instance and labels 0 and 1: brier "
        "does not. Use log or square or poisson.",
    ),
    (
        lambda: tournament(
            [np.zeros(8), np.ones(8)],
            Bags(np.arange(8), np.ones(8), stratum=[0, 1] * 4),
            beta=0.1,
            groups=1,
        ),
        "Bags of a tournament must be random throughout: bags with strata given. Hold one "
        "tournament for each stratum, or compare models by evaluate.",
    ),
]
