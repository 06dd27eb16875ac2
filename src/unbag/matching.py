"""Scores and reports in, one loss per bag out: the loss of the mean prediction against the bag's
report.

Proportion matching (PM) is not linear in the instances, so it has no signed weights. It is biased
for bags of more than one, and strong at small bags all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag._arrays import (
    BagOfInstance,
    PerBag,
    PerBagComponent,
    index_like,
    is_numpy,
    like,
    log_mean_by,
    mean_by,
    namespace,
)
from unbag._rules import refuse
from unbag.bags import Kind
from unbag.losses import Form, Loss


def proportion_matching(
    score: Any, bag: BagOfInstance, size: PerBag, report: PerBagComponent, *, loss: Loss, kind: Kind
) -> PerBag:
    """The loss of each bag's mean prediction against its report: loss(mean_i h(x_i), alpha).

    The mean is taken in log space where the prediction is a probability or a rate, so that no score
    overflows.

    Parameters
    ----------
    score : one score per instance (one per class for histograms), of any framework.
    bag : bag number of each instance.
    size, report : of each bag; the report in component form, as `Bags.components()` gives it.
    loss, kind : a loss of `unbag.losses`, and what the reports are.

    Returns
    -------
    One value per bag. Average them to train.

    >>> from unbag import losses
    >>> proportion_matching(np.array([0.0, 0.0]), np.array([0, 0]), np.array([2]), np.array([[1, 0.5]]),
    ...                     loss=losses.log, kind="binary").round(4)
    array([0.6931])
    """
    form = loss.form(kind)
    if is_numpy(report):
        check_reports(report, form, name=loss.name, kind=kind)
    prediction = form.predict(score)
    average = log_mean_by if form.log_space else mean_by
    components = form.components(average(index_like(score, bag), prediction, size))
    return namespace(components).sum(like(components, report) * components, axis=-1)


def check_reports(report: np.ndarray, form: Form, *, name: str, kind: Kind) -> None:
    """Refuse reports for which the matched loss has no lower bound; clipping them would bias the
    result."""
    low, high = form.reports
    refuse(
        f"Matching with the {name} loss must have reports in [{low:g}, {high:g}], because "
        "outside it has no lower bound",
        unbounded(report, form, kind),
        thing="bag",
        given=report if kind == "histogram" else report[:, 1],
        remedy="Use upm, easy or anchored, which stay unbiased under noise, or match with the square or brier loss.",
    )


def unbounded(report: np.ndarray, form: Form, kind: Kind) -> np.ndarray:
    """Which bags report, as noise can make them, what the matched loss has no lower bound for; 1e-9
    is rounding."""
    low, high = form.reports
    value = report if kind == "histogram" else report[:, 1:]
    return np.any(~((value >= low - 1e-9) & (value <= high + 1e-9)), axis=1)
