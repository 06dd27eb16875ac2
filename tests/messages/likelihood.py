"""Bad input of likelihood, and the whole message that it gets."""

import numpy as np

from cases.likelihood import simple

RULE = (
    "{} without noise must lie in [0, {}]: bag {} (1 such bag). Divide totals by the bag size; if "
    "noise was added on purpose, declare its variance with noise=."
)

MESSAGES = [
    (lambda: simple([0.5, 1.5]), RULE.format("A proportion", 1, "1 has 1.5")),
    (
        lambda: simple([-0.5, 1.5], noise=np.array([1.0, 0.0])),
        RULE.format("A proportion", 1, "1 has 1.5"),
    ),
    (lambda: simple([-0.5, 1.5], "total"), RULE.format("A mean count", "inf", "0 has -0.5")),
    (
        lambda: simple([[0.5, 0.5], [1.5, -0.5]], "histogram"),
        RULE.format("A class share", 1, "1 has [ 1.5, -0.5]"),
    ),
    (
        lambda: simple([[0.5, 0.5], [0.5, 0.4]], "histogram"),
        "A histogram without noise must sum to 1: bag 1 has 0.9 (1 such bag). Divide class counts by the bag size; if noise was added, declare its "
        "variance with noise=.",
    ),
    (
        lambda: simple([np.nan, np.inf], noise=np.ones(2)),
        "A report must be finite: bag 0 has nan (2 such bags). Say with status= which bags are "
        "suppressed or pending, or fix the export; never write 0 for them.",
    ),
    (
        lambda: simple([0.5, 0.5], noise=np.array([1.0, -1.0])),
        "A noise variance must be finite and not negative: bag 1 has -1 (1 such bag). Give the "
        "variance of the noise on the bag's count, 0 for an exact report.",
    ),
    (
        lambda: simple([0.5, 0.5], size=(2, 3)),
        "A size must be the number of instances of the bag, or 0 for padding: bag 1 has size 3 "
        "and 2 instances (1 such bag). Batches must hold whole bags.",
    ),
    (
        lambda: simple([0.5, 0.5], "ternary"),
        (
            "A kind of report must be one of binary, total, histogram: 'ternary' given. Choose one "
            "of these."
        ),
    ),
    (
        lambda: simple([0.5, 0.5], exact=0),
        "The largest exact bag must be 1 or more: 0 given. Use 1 for Gaussians where possible.",
    ),
]
