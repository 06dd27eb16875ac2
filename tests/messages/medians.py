"""Bad input of medians, and the whole message that it gets."""

import numpy as np

from unbag.medians import median_of_means

MESSAGES = [
    (
        lambda: median_of_means([1.0, 2.0], delta=1.5, seed=0),
        "delta must lie between 0 and 1: 1.5 given. Use 0.05 for 95% confidence.",
    ),
    (
        lambda: median_of_means([1.0, 2.0], delta=0.05, seed=0),
        "There must be at least as many values as groups: 2 values given for 24 groups. Give "
        "more values (bags), or allow a larger chance of failure: it takes fewer groups.",
    ),
    (
        lambda: median_of_means([1.0, 2.0], seed=0),
        "Either delta or groups must be given: both or neither given. Use delta=0.05.",
    ),
    (
        lambda: median_of_means([1.0, np.nan], groups=1, seed=0),
        "Values must be finite: 1 are not. Find out where they come from.",
    ),
]
