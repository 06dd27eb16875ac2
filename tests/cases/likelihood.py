"""Small cases that the tests of likelihood, and the table of its messages, share."""

import numpy as np

from unbag import as_components
from unbag.likelihood import count_likelihood


def simple(report, kind="binary", size=(2, 2), **how):
    score = np.zeros((4, 2)) if kind == "histogram" else np.zeros(4)
    report = as_components(report, kind)
    return count_likelihood(score, np.array([0, 0, 1, 1]), np.array(size), report, kind=kind, **how)
