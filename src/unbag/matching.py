"""Proportion matching: the loss of each bag's mean prediction against its report.

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
    score : array
        One score per instance (one per class for histograms), of any framework.
    bag : array of int
        Bag number of each instance.
    size, report : array
        Of each bag; the report in component form, as `Bags.components()` gives it.
    loss : Loss
        Of `unbag.losses`.
    kind : {"binary", "total", "histogram"}
        What the reports are.

    Returns
    -------
    array of float
        One value per bag. Average them to train.

    >>> from unbag import losses
    >>> bag, size, report = np.array([0, 0]), np.array([2]), np.array([[1, 0.5]])
    >>> score, of = np.array([0.0, 0.0]), {"loss": losses.log, "kind": "binary"}
    >>> proportion_matching(score, bag, size, report, **of).round(4)
    array([0.6931])
    """
    form = loss.form(kind)
    if is_numpy(report):
        check_reports(report, form, name=loss.name, kind=kind)
    prediction = form.predict(score)
    average = mean_by
    if form.log_space:
        average = log_mean_by
    components = form.components(average(index_like(score, bag), prediction, size))
    return namespace(components).sum(like(components, report) * components, axis=-1)


def check_reports(
    report: np.ndarray, form: Form, *, name: str, kind: Kind, names: np.ndarray | None = None
) -> None:
    """Refuse reports for which the matched loss has no lower bound; clipping them would bias it.

    Parameters
    ----------
    report : array of float
        Of each bag, in component form.
    form : Form
        Of the loss.
    name : str
        Of the loss.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    names : array, optional
        What the user calls each bag.
    """
    (low, high), given = form.reports, report
    if kind != "histogram":
        given = report[:, 1]
    refuse(
        f"Matching with the {name} loss must have reports in [{low:g}, {high:g}], because "
        "outside it has no lower bound",
        unbounded(report, form, kind),
        thing="bag",
        given=given,
        names=names,
        remedy="Use upm, easy or anchored, which stay unbiased under noise, or match with the "
        "square or brier loss.",
    )


def unbounded(report: np.ndarray, form: Form, kind: Kind) -> np.ndarray:
    """Which bags report, as noise can make them, what the matched loss has no lower bound for.

    Parameters
    ----------
    report : array of float
        Of each bag, in component form.
    form : Form
        Of the loss.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    """
    (low, high), value = form.reports, _values(report, kind)
    return np.any(~((value >= low - 1e-9) & (value <= high + 1e-9)), axis=1)


def _values(report: np.ndarray, kind: Kind) -> np.ndarray:
    """Reports without the leading 1 of component form."""
    if kind == "histogram":
        return report
    return report[:, 1:]
