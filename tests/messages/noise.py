"""Bad input of noise, and the whole message that it gets."""

import numpy as np

from unbag import Bags, noise

BAG = np.array([0, 0, 1, 1])

TWO = Bags(BAG, [0.5, 0.25])

BUDGET = "Leave noise out for exact reports."

MESSAGES = [
    (lambda: noise.Laplace(0.0), f"Noise must have a positive, finite scale: 0.0 given. {BUDGET}"),
    (
        lambda: noise.Gaussian(-1.0),
        f"Noise must have a positive, finite sigma: -1.0 given. {BUDGET}",
    ),
    (
        lambda: noise.Geometric(np.inf),
        f"Noise must have a positive, finite scale: inf given. {BUDGET}",
    ),
    (
        lambda: noise.DiscreteGaussian(np.nan),
        f"Noise must have a positive, finite sigma: nan given. {BUDGET}",
    ),
    (
        lambda: noise.laplace(epsilon=0),
        f"Noise must have a positive, finite epsilon: 0 given. {BUDGET}",
    ),
    (
        lambda: noise.laplace(epsilon=1, cap=-1),
        f"Noise must have a positive, finite cap: -1 given. {BUDGET}",
    ),
    (
        lambda: noise.gaussian(epsilon=0, delta=0.1),
        f"Noise must have a positive, finite epsilon: 0 given. {BUDGET}",
    ),
    (
        lambda: noise.discrete_gaussian(rho=-1),
        f"Noise must have a positive, finite rho: -1 given. {BUDGET}",
    ),
    (
        lambda: noise.gaussian(epsilon=1, delta=0),
        "A delta must lie between 0 and 1: 0 given. Take less than one over the number of "
        "people, or laplace, which needs none.",
    ),
    (
        lambda: noise.geometric(epsilon=1, cap=1.5),
        (
            "A cap of whole counts must be a whole number: 1.5 given. Use laplace or gaussian for "
            "others."
        ),
    ),
    (
        lambda: noise.thresholded(TWO, minimum_size=3),
        (
            "A minimum size must leave some bags: 3 given and the largest bag holds 2. Make the "
            "bags larger."
        ),
    ),
    (
        lambda: noise.hidden_below(TWO, 1),
        "A report must not be hidden for its value, because leaving it out biases the result: "
        "whether it is hidden depends on the labels: bag 1 has interval (1 such bag). Ask for "
        "noisy counts or larger bags, so that none is hidden, or accept the bias with "
        "accept_bias=True.",
    ),
    (
        lambda: noise.capped([1, -1], cap=1),
        (
            "A count to cap must be finite and not negative: row 1 has -1 (1 such row). Cap counts "
            "before noise is added."
        ),
    ),
    (
        lambda: noise.capped([1, 1], cap=0),
        "A contribution cap must be positive: 0 given. Give the most that one may add.",
    ),
    (
        lambda: noise.capped([1, 1], cap=1, person=["ann", 7]),
        (
            "A person must be of one type: int and str given. Turn all into strings or all into "
            "integers."
        ),
    ),
    (
        lambda: noise.capped([1, 1], cap=1, person=["ann"]),
        (
            "person must have one entry for each row: 1 given for 2 rows. Give them in the order of "
            "the rows."
        ),
    ),
]
