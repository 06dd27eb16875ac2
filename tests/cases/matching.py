"""Small cases that the tests of matching, and the table of its messages, share."""

import numpy as np

from unbag import as_components
from unbag.matching import proportion_matching

BAG, SIZE = np.array([0, 1, 0, 1, 1]), np.array([2, 3])


def match(score, report, loss, kind, bag=BAG, size=SIZE):
    return proportion_matching(score, bag, size, as_components(report, kind), loss=loss, kind=kind)
