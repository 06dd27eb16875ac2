"""Bad input of matching, and the whole message that it gets."""

import numpy as np

from cases.matching import match
from unbag import losses

LOG_RULE = "must have reports in [0, {}], because outside it has no lower bound"

REMEDY = "Use upm, easy or anchored, which stay unbiased under noise, or match with the square or brier loss."

SHARES = [[0.2, 0.3, 0.5], [-0.1, 0.6, 0.5]]

MESSAGES = [
    (
        lambda: match(np.zeros(5), [0.5, 1.2], losses.log, "binary"),
        f"Matching with the log loss {LOG_RULE.format(1)}: bag 1 has 1.2 (1 such bag). {REMEDY}",
    ),
    (
        lambda: match(np.zeros(5), [-0.1, -0.2], losses.poisson, "total"),
        (
            f"Matching with the poisson loss {LOG_RULE.format('inf')}: bag 0 has -0.1 (2 such "
            f"bags). {REMEDY}"
        ),
    ),
    (
        lambda: match(np.zeros((5, 3)), SHARES, losses.cross_entropy, "histogram"),
        f"Matching with the cross_entropy loss {LOG_RULE.format(1)}: bag 1 has [-0.1,  0.6,  "
        f"0.5] (1 such bag). {REMEDY}",
    ),
]
