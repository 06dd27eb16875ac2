"""Bad input of bags, and the whole message that it gets."""

import numpy as np

from unbag import Bags, from_rows, random_bags
from unbag.bags import make_bags

BAG = np.array([0, 0, 1, 1])

MESSAGES = [
    (
        lambda: random_bags(None, np.eye(3), size=1, seed=0, kind="histogram"),
        "Labels must be one number for each row: an array of shape (3, 3) given. Write "
        "y.argmax(axis=1), say, for columns of zeros and ones.",
    ),
    (
        lambda: random_bags(None, ["yes", "no"], size=1, seed=0),
        "Labels must be numbers: an array of type <U3 given. Write y == 'yes', say, for binary labels, "
        "and class numbers from 0 for more classes.",
    ),
    (
        lambda: from_rows([0, 0, 1], [0.5, 0.5, 1, 1], X=np.zeros((4, 1))),
        "bag must have one entry for each row: 3 given for 4 rows. Give them in the order of the "
        "rows.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], offset=[0, np.nan, 0, 0]),
        "An offset must be finite: instance 1 has nan (1 such instance). Give the log exposure, or "
        "the score of a model, of every instance.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], offset=np.zeros(3)),
        "offset must have one entry for each instance: 3 given for 4 instances. Give them in the "
        "order of the instances.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], stratum=[0, 1], stratum_names=["north"]),
        "Every stratum must have a name: 1 given, and the last stratum is number 1. Give one for "
        "each number from 0, or leave stratum_names= out.",
    ),
    (
        lambda: Bags(BAG, [0.5, np.nan]),
        "A report must be finite: bag 1 has nan (1 such bag). Say with status= which bags are "
        "suppressed or pending, or fix the export; never write 0 for them.",
    ),
    (
        lambda: Bags(BAG, [np.inf, -np.inf]),
        "A report must be finite: bag 0 has inf (2 such bags). Say with status= which bags are "
        "suppressed or pending, or fix the export; never write 0 for them.",
    ),
    (
        lambda: Bags(BAG, [0.5, 1.5]),
        "A proportion without noise must lie in [0, 1]: bag 1 has 1.5 (1 such bag). Divide "
        "totals by the bag size; if noise was added on purpose, declare its variance with "
        "noise=.",
    ),
    (
        lambda: Bags(BAG, [0.5, -0.5], noise=[1, 0]),
        "A proportion without noise must lie in [0, 1]: bag 1 has -0.5 (1 such bag). Divide "
        "totals by the bag size; if noise was added on purpose, declare its variance with "
        "noise=.",
    ),
    (
        lambda: Bags(BAG, [-1, 2], "total"),
        "A mean count without noise must lie in [0, inf]: bag 0 has -1 (1 such bag). Divide "
        "totals by the bag size; if noise was added on purpose, declare its variance with "
        "noise=.",
    ),
    (
        lambda: Bags(BAG, [1, 7], "total", cap=5),
        "A mean count without noise must lie in [0, 5]: bag 1 has 7 (1 such bag). Divide totals "
        "by the bag size; if noise was added on purpose, declare its variance with noise=.",
    ),
    (
        lambda: Bags(BAG, [[0.5, 0.5], [-0.1, 1.1]], "histogram"),
        "A class share without noise must lie in [0, 1]: bag 1 has [-0.1,  1.1] (1 such bag). "
        "Divide totals by the bag size; if noise was added on purpose, declare its variance "
        "with noise=.",
    ),
    (
        lambda: Bags(BAG, [[0.5, 0.4], [0.5, 0.5]], "histogram"),
        "A histogram without noise must sum to 1: bag 0 has 0.9 (1 such bag). Divide class "
        "counts by the bag size; if noise was added, declare its variance with noise=.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], noise=[1, -1]),
        "A noise variance must be finite and not negative: bag 1 has -1 (1 such bag). Give the "
        "variance of the noise on the bag's count, 0 for an exact report.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5, 0.5]),
        (
            "A bag must hold at least one instance: bag 2 has 0 (1 such bag). Drop its report, or "
            "add its rows."
        ),
    ),
    (
        lambda: Bags(BAG, [0.5]),
        "A bag number must lie between 0 and 0, the last report: row 2 has 1 (2 such rows). "
        "Number the bags in the order of the reports, or use from_rows for ids of any kind.",
    ),
    (
        lambda: Bags(BAG, [[0.5], [0.5]]),
        "Reports of kind binary must have 1 dimension(s), one entry per bag: an array of shape "
        "(2, 1) given. Use kind='histogram' for class shares, else one number per bag.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], "ternary"),
        "A kind of report must be one of binary, total, histogram: 'ternary' given. Proportions "
        "are binary, mean counts are total, class shares are histogram.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], X=np.ones((3, 2))),
        (
            "X must have one entry for each instance: 3 given for 4 instances. Give them in the "
            "order of the instances."
        ),
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], stratum=[0]),
        (
            "stratum must have one entry for each bag: 1 given for 2 bags. Give them in the order "
            "of the bags."
        ),
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], stratum=[0, -1]),
        "A stratum number must not be negative: bag 1 has -1 (1 such bag). Number the strata "
        "from 0, or use from_rows for strata of any kind.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], known_prior=1.5),
        "A prior must lie between 0 and 1, as the mean of labels does: 1.5 given. Leave it out to "
        "take the size-weighted mean report.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], known_prior=[0.5, 0.5]),
        "A prior must be finite and look like one report (one per stratum), of shape (): [0.5, "
        "0.5] of shape (2,) given. Leave it out to take the size-weighted mean report.",
    ),
    (
        lambda: Bags(BAG, [[0.5, 0.5], [0.5, 0.5]], "histogram", known_prior=[0.2, 0.3, 0.5]),
        "A prior must be finite and look like one report (one per stratum), of shape (2,): "
        "[0.2, 0.3, 0.5] of shape (3,) given. Leave it out to take the size-weighted mean report.",
    ),
    (
        lambda: from_rows([1, "a", 1], [0.5, 0.5, 0.5]),
        (
            "A bag id must be of one type: int and str given. Turn all into strings or all into "
            "integers."
        ),
    ),
    (
        lambda: from_rows(["a", None, "b"], [0.5, 0.5, 0.5]),
        (
            "A bag id must not be missing: row 1 has None (1 such row). Drop such rows or give "
            "them a bag."
        ),
    ),
    (
        lambda: from_rows(np.array([1, np.nan]), [0.5, 0.5]),
        (
            "A bag id must not be missing: row 1 has nan (1 such row). Drop such rows or give them "
            "a bag."
        ),
    ),
    (
        lambda: from_rows(np.array([[1], [2]]), [0.5, 0.5]),
        "A bag id must be one value per row: an array of shape (2, 1) given. Flatten it.",
    ),
    (
        lambda: from_rows(["a", "b"], {"a": 0.5}),
        (
            "Every bag must have a report: bag b has none (1 such bag). Add it, or leave the rows "
            "of that bag out."
        ),
    ),
    (
        lambda: from_rows(["a", "b"], {"a": 0.5, "b": 0, "c": 1, "d": 1}),
        "A bag must hold at least one instance: bag c has a report and no rows (2 such bags). "
        "Drop its report, or add its rows.",
    ),
    (
        lambda: from_rows(["a", "a", "b"], [0.5, 0.6, 0.5]),
        "A report must be the same for all rows of a bag: bag a has 0.5 and 0.6 (1 such bag). "
        "Give every row its bag's report; where these are labels of the rows, their mean in each bag.",
    ),
    (
        lambda: from_rows(["a", "a", "b"], [0.5, 0.5, 0.5], size={"a": 2, "b": 3}),
        "A reported size must be the number of rows of the bag: bag b has 3 reported and 1 rows "
        "(1 such bag). Find the missing or doubled rows: the estimate is biased without them.",
    ),
    (
        lambda: from_rows(["a", "b"], [0.5]),
        (
            "report must have one entry for each row: 1 given for 2 rows. Give them in the order of "
            "the rows."
        ),
    ),
    (
        lambda: from_rows(["a", "b"]),
        "Bags must have either reports or labels: both or neither given. Give report= or y=.",
    ),
    (
        lambda: random_bags(None, [0, 1, 2], size=1, seed=0),
        (
            "A binary label must be 0 or 1: row 2 has 2 (1 such row). Use kind='histogram' or "
            "kind='total'."
        ),
    ),
    (
        lambda: random_bags(None, [0, 1, -2], size=1, seed=0, kind="total"),
        "A count must be finite and not negative: row 2 has -2 (1 such row). Use counts.",
    ),
    (
        lambda: random_bags(None, [0, 1.5, 1], size=1, seed=0, kind="histogram"),
        "A class must be a whole number from 0: row 1 has 1.5 (1 such row). Use class numbers.",
    ),
    (
        lambda: random_bags(None, [0, 3], size=1, seed=0, kind="histogram", classes=3),
        "A class must be below 3: row 1 has 3 (1 such row). Raise classes=, or leave it out.",
    ),
    (
        lambda: random_bags(None, [0, 1], size=0, seed=0),
        "A bag size must be positive: 0 given. Use 64, say.",
    ),
    (
        lambda: random_bags(None, [0, 1], size=3, seed=0),
        "Bags must fit into the rows: bags of 3 given for 2 rows. Make the bags smaller.",
    ),
    (
        lambda: random_bags(None, [0, 1], size=[1, 2], seed=0),
        "Bag sizes must fit into the rows: they add up to 3 for 2 rows. Leave some out.",
    ),
    (
        lambda: random_bags(None, [0, 1], size=[1, 0], seed=0),
        "A bag size must be positive: bag 1 has 0 (1 such bag). Leave empty bags out.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5]).split(0.5, seed=0),
        "Bags to split must be at least four, two for each part: set of bags 0 has 2 (1 such "
        "set of bags). Make smaller bags, or merge small strata.",
    ),
    (
        lambda: random_bags(None, np.tile([0, 1], 10), size=4, seed=0).split(1.0, seed=0),
        "A fraction must lie between 0 and 1: 1.0 given. Use 0.8 to hold out a fifth.",
    ),
    (
        lambda: list(Bags(BAG[:2], [0.5]).batches(seed=0)),
        "An epoch must hold at least two bags, because each bag is centred by the mean of the "
        "others: 1 given. Give more bags, or a pool of further instances.",
    ),
    (
        lambda: list(Bags(np.arange(4), np.ones(4), stratum=[0, 1, 1, 1]).batches(seed=0)),
        "A stratum must hold at least two bags, because each bag is centred by the mean of the "
        "others: stratum 0 has 1 (1 such stratum). Merge small strata, or cut them into random "
        "sub-bags; where a stratum has one report only, leave the strata out and train by "
        "matching or likelihood.",
    ),
    (
        lambda: list(Bags(BAG, [0.5, 0.5]).batches(0, seed=0)),
        "A batch must hold at least one instance: 0 given. The paper uses 4096.",
    ),
    (
        lambda: random_bags(None, [0, 1], size=1, seed=0, stratum=["a"]),
        (
            "stratum must have one entry for each row: 1 given for 2 rows. Give them in the order "
            "of the rows."
        ),
    ),
    (
        lambda: from_rows(["a", "b"], y=[1]),
        (
            "y must have one entry for each row: 1 given for 2 rows. Give them in the order of the "
            "rows."
        ),
    ),
    (
        lambda: make_bags(np.zeros((4, 1)), [0, 1, 0, 1], "alphabet", size=2, seed=0),
        "A way to make bags must be one of random, naive, kmeans, feature, dirichlet, simple, "
        "intermediate, hard: 'alphabet' given. Choose one of these.",
    ),
    (
        lambda: make_bags(np.zeros((4, 1)), [0, 0, 0, 0], "naive", size=2, seed=0),
        "Bags must have rows for two, labels of both sorts and a positive concentration: bags of 2 "
        "given for 4 rows with a mean label of 0, and a concentration of 2. Make the bags smaller.",
    ),
]
