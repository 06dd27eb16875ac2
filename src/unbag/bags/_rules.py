"""Bags in, nothing out or an error: what sizes, reports, statuses and priors must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from unbag._rules import broken, refuse, rows

if TYPE_CHECKING:
    from unbag.bags._bags import Bags

Kind = Literal["binary", "total", "histogram"]
Status = Literal["observed", "suppressed_by_size", "suppressed_by_value", "pending", "interval"]
HIDDEN_BY_VALUE = ("suppressed_by_value", "interval")


def check_bags(bags: Bags) -> None:
    """Refuse bags that break a rule, each with its own message."""
    if bags.kind not in get_args(Kind):
        raise broken(
            f"A kind of report must be one of {', '.join(get_args(Kind))}",
            f"{bags.kind!r} came",
            "Proportions are binary, mean counts are total, class shares are histogram.",
        )
    _check_shapes(bags)
    refuse(
        "A bag must hold at least one instance",
        bags.size == 0,
        thing="bag",
        given=bags.size,
        remedy="Drop its report, or add its rows.",
    )
    _check_status(bags)
    _check_reports(bags)
    _check_prior(bags)


def _check_shapes(bags: Bags) -> None:
    dimensions = 2 if bags.kind == "histogram" else 1
    if bags.report.ndim != dimensions or len(bags.report) == 0:
        raise broken(
            f"Reports of kind {bags.kind} must have {dimensions} dimension(s), one entry per bag",
            f"an array of shape {bags.report.shape} came",
            "Use {kind:histogram} for class shares, else one number per bag.",
        )
    refuse(
        f"A bag number must lie between 0 and {len(bags) - 1}, the last report",
        (bags.bag < 0) | (bags.bag >= len(bags)),
        thing="row",
        given=bags.bag,
        remedy="Number the bags in the order of the reports, or use from_rows for ids of any kind.",
    )
    if bags.X is not None:
        rows(_length(bags.X), len(bags.bag), thing="X", of="instance")
    if bags.offset is not None:
        rows(len(bags.offset), len(bags.bag), thing="offset", of="instance")
        refuse(
            "An offset must be finite",
            ~np.isfinite(bags.offset),
            thing="instance",
            given=bags.offset,
            remedy="Give the log exposure, or the score of a model, of every instance.",
        )
    for name in ("noise", "stratum", "names", "status"):
        value = getattr(bags, name)
        if value is not None:
            rows(len(value), len(bags), thing=name, of="bag")


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _check_status(bags: Bags) -> None:
    if bags.status is None:
        return
    refuse(
        f"A status must be one of {', '.join(get_args(Status))}",
        ~np.isin(bags.status, get_args(Status)),
        thing="bag",
        given=bags.status,
        remedy="A report that came is observed; leave status out when all came.",
    )
    refuse(
        "A report must not be hidden for its value, because leaving it out biases the result: "
        "whether it is hidden depends on the labels",
        np.isin(bags.status, HIDDEN_BY_VALUE) & (not bags.accept_bias),
        thing="bag",
        given=bags.status,
        remedy="Ask for noisy counts or larger bags, so that none is hidden, or accept the bias with accept_bias=True.",
    )


def check_observed(bags: Bags) -> None:
    """Refuse bags, or strata, without any observed report when the prior is not known from
    elsewhere."""
    seen = np.flatnonzero(bags.observed)
    if len(seen) == 0:
        raise broken(
            "Bags must have at least one observed report",
            f"all {len(bags)} are suppressed, hidden or pending",
            "Wait for reports, or make the bags larger.",
        )
    if bags.stratum is None or bags.known_prior is not None:
        return
    total, count = (
        np.bincount(s, minlength=bags.strata) for s in (bags.stratum, bags.stratum[seen])
    )
    refuse(
        "A stratum must have at least one observed report, or a known prior",
        (total > 0) & (count == 0),
        thing="stratum",
        given=[f"none of {n}" for n in total],
        remedy="Leave its bags out, merge it with another, or give {prior}.",
    )


def _check_reports(bags: Bags) -> None:
    report = bags.report if bags.kind == "histogram" else bags.report[:, None]
    refuse(
        "A report must be finite",
        ~np.isfinite(report).all(axis=1) & bags.observed,
        thing="bag",
        given=bags.report,
        remedy="Say with {status} which bags are suppressed or pending, or fix the export; never write 0 for them.",
    )
    noise = np.zeros(len(bags)) if bags.noise is None else bags.noise
    refuse(
        "A noise variance must be finite and not negative",
        ~(np.isfinite(noise) & (noise >= 0)) & bags.observed,
        thing="bag",
        given=noise,
        remedy="Give the variance of the noise on the bag's count, 0 for an exact report.",
    )
    exact = (noise == 0) & bags.observed
    high = (np.inf if bags.cap is None else bags.cap) if bags.kind == "total" else 1.0
    rule = {"binary": "A proportion", "total": "A mean count", "histogram": "A class share"}[
        bags.kind
    ]
    refuse(
        f"{rule} without noise must lie in [0, {high:g}]",
        ((report < -1e-9) | (report > high + 1e-9)).any(axis=1) & exact,
        thing="bag",
        given=bags.report,
        remedy="Divide totals by the bag size; if noise was added on purpose, declare its variance with {noise}.",
    )
    if bags.kind == "histogram":
        refuse(
            "A histogram without noise must sum to 1",
            (np.abs(report.sum(axis=1) - 1) > 1e-6) & exact,
            thing="bag",
            given=report.sum(axis=1),
            remedy="Divide class counts by the bag size; if noise was added, declare its variance with {noise}.",
        )


def _check_prior(bags: Bags) -> None:
    if bags.stratum is not None:
        refuse(
            "A stratum number must not be negative",
            bags.stratum < 0,
            thing="bag",
            given=bags.stratum,
            remedy="Number the strata from 0, or use from_rows for strata of any kind.",
        )
    if bags.known_prior is None:
        return
    strata = () if bags.stratum is None else (max(bags.strata, int(bags.stratum.max()) + 1),)
    expected = (*strata, *bags.report.shape[1:])
    if bags.known_prior.shape != expected or not np.isfinite(bags.known_prior).all():
        raise broken(
            (
                "A prior must be finite and look like one report (one per stratum), of shape "
                f"{expected}"
            ),
            f"{_brief(bags.known_prior)} of shape {bags.known_prior.shape} came",
            "Leave it out to take the size-weighted mean report.",
        )


def _brief(value: np.ndarray) -> str:
    return np.array2string(value, precision=4, threshold=6, separator=", ")
