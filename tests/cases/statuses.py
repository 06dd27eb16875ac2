"""Small cases that the tests of statuses, and the table of its messages, share."""

import numpy as np

from unbag import Bags

BAG = np.array([0, 0, 1, 2, 2, 2])

NAN = np.nan

STATUSES = ["observed", "pending", "observed"]

SOME = Bags(BAG, [0.5, NAN, 1.0], status=STATUSES)
