"""An `Evaluation` by the likelihood of the counts of held-out bags.

For bags that are not random no loss of an instance can be estimated without bias. What stays is how
likely the model makes the reports of bags that it did not learn from.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from unbag.bags import Bags
from unbag.likelihood import count_likelihood
from unbag.metrics._estimate import Estimate
from unbag.metrics._evaluation import Evaluation
from unbag.metrics._notes import Note

LEVEL = 0.95  # of the intervals
MARK = (
    "Judged by the likelihood of the counts of bags that had no part in learning, because no loss "
    "of an instance can be estimated from these bags without bias"
)


def evaluate_counts(
    score: np.ndarray, bags: Bags, *, trivial: np.ndarray, why: str = ""
) -> Evaluation:
    """How likely a model makes held-out reports, and how much more so than the prior does.

    Parameters
    ----------
    score : numpy.ndarray
        Of each instance, by a model that never learned from its bag.
    bags : Bags
        With observed reports, random or not.
    trivial : numpy.ndarray
        Score of each instance by the prior alone.
    why : str
        Why no loss can be estimated.

    Returns
    -------
    Evaluation
        With `log_likelihood` and `gain_over_prior`, both for one bag in the mean, and a note that
        says what they are.

    >>> bags = Bags(np.array([0, 0, 1, 1]), np.array([0.0, 1.0]))
    >>> found = evaluate_counts(np.array([-2.0, -2, 2, 2]), bags, trivial=np.zeros(4))
    >>> round(found["gain_over_prior"].value, 2)
    1.13
    """
    report, known = bags.components().report, {"kind": bags.kind, "noise": bags.noise}
    ours, theirs = (
        -count_likelihood(each, bags.bag, bags.size, report, **known) for each in (score, trivial)
    )
    note = Note(f"{MARK}{f': {why}' * bool(why)}.", "counts")
    estimates = {
        "log_likelihood": mean_estimate(ours, LEVEL),
        "gain_over_prior": mean_estimate(ours - theirs, LEVEL),
    }
    return Evaluation(estimates, [], [], "bags", len(bags), len(bags.bag), LEVEL, (note,))


def mean_estimate(values: np.ndarray, level: float) -> Estimate:
    """A mean over bags or cells, with Student's t interval.

    Parameters
    ----------
    values : numpy.ndarray
        One for each bag.
    level : float
        Of the interval.
    """
    value, count = float(values.mean()), len(values)
    if count < 2:
        return Estimate(value, np.inf, -np.inf, np.inf)
    error = float(values.std(ddof=1) / np.sqrt(count))
    reach = float(stdtrit(count - 1, (1 + level) / 2)) * error
    return Estimate(value, error, value - reach, value + reach)
