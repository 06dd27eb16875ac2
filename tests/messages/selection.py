"""Bad input of selection, and the whole message that it gets."""

import numpy as np

from cases.selection import X, Y, run
from unbag import choose, random_bags

BAGS = random_bags(X, Y, size=6, seed=0)

NOTHING = np.random.default_rng(0).normal(size=(400, 5))

PAIRS = random_bags(None, np.random.default_rng(1).integers(2, size=400), size=2, seed=0)

MESSAGES = [
    (
        lambda: choose([], BAGS),
        "There must be candidates to choose among: none given. Give runs, or a mapping of models.",
    ),
    (
        lambda: choose([lambda X: X], BAGS),
        (
            "Candidates must be runs, or a mapping from names to models: a function given. Name "
            "your models in a dict."
        ),
    ),
    (
        lambda: choose([run("upm", np.nan)], BAGS),
        "A candidate must have finite scores: none of 1 has. Train with a lower rate.",
    ),
    (
        lambda: choose({"one": X}, BAGS, test=(X, Y)),
        "A candidate must be a model where test= is given: one given as scores, which are those "
        "of the held-out bags. Give models, or leave test out.",
    ),
    (
        lambda: choose({"one": X}, BAGS, rule="luck"),
        "A rule must be one of paired, tournament: 'luck' given. Choose one of these.",
    ),
    (
        lambda: choose(dict(enumerate(NOTHING.T)), PAIRS, rule="tournament", beta=1e-3),
        "A tournament must leave a model. No model is left of 5: every one is beaten by "
        "another, so 200 bags are too few for beta = 0.001. Planning asks for 9,800,935,650 "
        "bags, or for a beta of 8.32 with these. Raise beta, or use rule='paired'.",
    ),
]
