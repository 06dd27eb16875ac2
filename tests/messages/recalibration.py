"""Bad input of recalibration, and the whole message that it gets."""

import numpy as np

from cases.recalibration import binary
from unbag import from_rows, random_bags, recalibrate

SCORE, Y = binary(60)

BAGS = random_bags(SCORE, Y, size=6, seed=0)

MESSAGES = [
    (
        lambda: recalibrate(SCORE, BAGS, fit="slope"),
        "What a recalibration fits must be one of both, intercept: 'slope' given. Choose one of these.",
    ),
    (
        lambda: recalibrate(SCORE, from_rows(np.arange(60) // 6, np.zeros(60))),
        "A recalibration must have a finite answer: these 10 bags estimate label means that no "
        "slope and intercept can meet, or the scores are all the same. Give more bags, or "
        "fit='intercept'.",
    ),
    (
        lambda: recalibrate(SCORE, from_rows(np.arange(60) // 6, np.zeros(60)), fit="intercept"),
        "A recalibration must have a finite answer: these 10 bags estimate label means that no "
        "intercept can meet, or the scores are all the same. Give more bags.",
    ),
]
