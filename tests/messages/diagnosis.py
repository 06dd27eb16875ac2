"""Bad input of diagnosis, and the whole message that it gets."""

import numpy as np

from unbag import Bags, diagnose, drift, evaluate

TEN = Bags(np.arange(20) // 2, np.full(10, 0.5))

MESSAGES = [
    (
        lambda: diagnose(TEN, level=1),
        "A level must lie between 0 and 1: 1 given. It is the chance of a false alarm, say 0.01.",
    ),
    (
        lambda: diagnose(TEN, tolerance=-1),
        "A tolerance must not be negative: -1 given. Use 0 to take any bias seriously.",
    ),
    (
        lambda: diagnose(TEN, np.zeros(10)),
        "scores must have one entry for each instance: 10 given for 20 instances. Give them in "
        "the order of the instances.",
    ),
    (
        lambda: diagnose(TEN, np.where(np.arange(20) == 3, np.inf, 0)),
        (
            "A score must be finite: instance 3 has inf (1 such instance). Give logits, of which a "
            "probability of 0 or 1 has none; a model that predicts NaN has diverged: train it with "
            "a lower learning rate."
        ),
    ),
    (
        lambda: evaluate(np.zeros(6), Bags(np.arange(6) // 2, np.full(3, 0.5), stratum=[0, 0, 2])),
        "An unbiased evaluation must have at least two reports in each stratum: stratum 2 has 1 "
        "(1 such stratum). Ask for reports of random sub-bags, two or more for each stratum; "
        "where that cannot be, use method='matching' or method='likelihood', which stay valid "
        "when the model holds across bags.",
    ),
    (
        lambda: drift(TEN, np.arange(10), level=0),
        "A level must lie between 0 and 1: 0 given. It is the chance of a false alarm, say 0.01.",
    ),
    (
        lambda: drift(TEN, np.arange(11)),
        "A time must be given for each of 10 bags or each of 20 instances: an array of shape "
        "(11,) given. Give them in the order of the bags or of the instances.",
    ),
    (
        lambda: drift(TEN, np.where(np.arange(10) == 4, np.nan, 0)),
        "A time must be known: entry 4 has nan (1 such entry). Leave such bags out.",
    ),
    (
        lambda: drift(TEN, np.arange(10)),
        "Windows must be at least two, with two reports each: 12 given for 10 reports. Use "
        "fewer, or wait for more reports.",
    ),
    (
        lambda: drift(TEN, np.arange(10), windows=[3, 5]),
        "The first window must begin before the first report: 3 is later. Begin earlier.",
    ),
    (
        lambda: drift(TEN, np.arange(10), windows=[0]),
        (
            "Windows must be at least two, and fewer than the reports: 1 hold the 10 reports. "
            "Choose other windows."
        ),
    ),
]
