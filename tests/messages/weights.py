"""Bad input of weights, and the whole message that it gets."""

import numpy as np

from unbag import weights

BAG = np.array([0, 0, 1, 1])

REPORT = np.array([[1, 0.5], [1, 0.25]])

PRIOR = np.array([1, 0.3])
ONES = np.ones(2)

SIZE = np.array([2, 2])

MESSAGES = [
    (
        lambda: weights.upm(SIZE[:1], REPORT[:1], PRIOR),
        "A batch must hold at least two bags, because each bag is centred by the mean of the "
        "others: 1 given. Give more bags, or a pool of further instances.",
    ),
    (
        lambda: weights.upm(
            np.ones(3), np.ones((3, 2)), np.ones((2, 2)), stratum=np.array([0, 0, 1])
        ),
        "A stratum must hold at least two bags, because each bag is centred by the mean of the "
        "others: stratum 1 has 1 (1 such stratum). Merge small strata, or cut them into random "
        "sub-bags; where a stratum has one report only, leave the strata out and train by "
        "matching or likelihood.",
    ),
    (
        lambda: weights.upm(SIZE, 0.5, 0.3),
        "There must be one report for each bag: 0.5 given. Give a list.",
    ),
    (
        lambda: weights.upm(2, [0.5, 0.25], 0.3),
        "There must be one size for each bag: 2 given. Repeat it for bags of one size.",
    ),
    (
        lambda: weights.upm(SIZE, [0.5, 0.25], 0.3, stratum=[0, 0]),
        "There must be one prior for each stratum: 0.3 given. Give a list.",
    ),
    (
        lambda: weights.upm(SIZE, REPORT, np.ones(3)),
        "A prior must have one entry per component, of shape (2,): one of shape (3,) given. Take "
        "it from Bags.components().",
    ),
    (
        lambda: weights.upm(SIZE, REPORT, PRIOR, stratum=np.zeros(2, int)),
        "A prior must have one entry per component for each stratum, of shape (2, 2): one of "
        "shape (2,) given. Take it from Bags.components().",
    ),
    (
        lambda: weights.upm(SIZE, REPORT, PRIOR, weight=np.array([0.5, 0.6])),
        "The weights of the bags must add up to 1 in each stratum: stratum 0 has 1.1 (1 such "
        "stratum). Divide them by their sum.",
    ),
    (
        lambda: weights.easy(SIZE, REPORT, PRIOR, weight=np.array([1.5, -0.5])),
        "A bag's weight must be finite and not negative: bag 1 has -0.5 (1 such bag). Use "
        "noise_weights for noisy reports.",
    ),
    (
        lambda: weights.easy(SIZE, REPORT * np.nan, PRIOR),
        (
            "A report must be finite: bag 0 has [nan, nan] (2 such bags). Give a bag whose report "
            "is pending the weight 0."
        ),
    ),
    (
        lambda: weights.upm(np.ones(3), REPORT, PRIOR),
        (
            "size must have one entry for each bag: 3 given for 2 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: weights.anchored(BAG, np.array([1, 3]), REPORT, PRIOR, np.ones((4, 2))),
        "A size must be the number of instances of the bag: bag 0 has size 1 and 2 instances (2 "
        "such bags). Batches must hold whole bags.",
    ),
    (
        lambda: weights.anchored(BAG, SIZE, REPORT, PRIOR, np.ones((3, 2))),
        "reference must have one entry for each instance: 3 given for 4 instances. Give them in "
        "the order of the instances.",
    ),
    (
        lambda: weights.anchored(BAG, SIZE, REPORT, PRIOR, np.ones((4, 2)), pool=3),
        "A pool must come with the mean of the reference, reference_mean=: none given. Give its "
        "mean over these instances and the pool together.",
    ),
    (
        lambda: weights.upm(SIZE, REPORT, np.stack([PRIOR, PRIOR]), stratum=np.zeros(3, int)),
        (
            "stratum must have one entry for each bag: 3 given for 2 bags. Give them in the order "
            "of the bags."
        ),
    ),
    (
        lambda: weights.upm(SIZE, REPORT, np.stack([PRIOR, PRIOR]), stratum=np.array([0, 2])),
        "A stratum number must lie between 0 and 1, the last prior: bag 1 has 2 (1 such bag). "
        "Give one prior for each stratum.",
    ),
    (
        lambda: weights.upm(SIZE, REPORT, PRIOR, weight=np.full(3, 1 / 3)),
        (
            "weight must have one entry for each bag: 3 given for 2 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: weights.noise_weights(SIZE, ONES, variance=0),
        "A label variance must be positive: 0 given. For binary labels it is p (1 - p).",
    ),
    (
        lambda: weights.upm_by_bag(np.ones((4, 2)), BAG, np.array([1, 3]), REPORT, PRIOR),
        "A size must be the number of instances of the bag: bag 0 has size 1 and 2 instances (2 "
        "such bags). Batches must hold whole bags.",
    ),
    (
        lambda: weights.pseudo_labels(np.array([[0.5, 0.1], [0.0, 0.2]])),
        "A sample weight must be positive: row 1 has 0 (1 such row). Give at least two bags a "
        "positive weight in each stratum.",
    ),
]
