"""NumPy inputs of the weights in; nothing out, or an error that says what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag._rules import broken, refuse, rows, two_bags


def check_batch(
    size: Any, report: Any, prior: Any, weight: Any, stratum: Any, pool: Any, *, leave_one_out: bool
) -> None:
    """Lengths, prior, finite reports, bag weights, and another bag to take the means from."""
    rows(len(size), len(report), thing="size", of="bag")
    strata = 1 if stratum is None else len(prior)
    expected = report.shape[1:] if stratum is None else (strata, *report.shape[1:])
    if np.shape(prior) != expected:
        raise broken(
            (
                "A prior must have one entry per "
                f"component{(' for each stratum' if stratum is not None else '')}, of shape "
                f"{expected}"
            ),
            f"one of shape {np.shape(prior)} came",
            "Take it from Bags.components().",
        )
    s = np.zeros(len(size), int) if stratum is None else np.asarray(stratum)
    rows(len(s), len(size), thing="stratum", of="bag")
    refuse(
        f"A stratum number must lie between 0 and {strata - 1}, the last prior",
        (s < 0) | (s >= strata),
        thing="bag",
        given=s,
        remedy="Give one prior for each stratum.",
    )
    weight = None if weight is None else np.asarray(weight, float)
    if weight is not None:
        _check_weight(weight, s)
    used = np.ones(len(size), bool) if weight is None else weight > 0
    refuse(
        "A report must be finite",
        ~np.isfinite(report).all(axis=1) & used,
        thing="bag",
        given=report,
        remedy="Give a bag whose report is pending the weight 0.",
    )
    if leave_one_out:
        count = np.bincount(s, minlength=strata)
        two_bags(count[count > 0], pool=np.broadcast_to(pool, (strata,))[count > 0])


def _check_weight(weight: np.ndarray, stratum: np.ndarray) -> None:
    rows(len(weight), len(stratum), thing="weight", of="bag")
    refuse(
        "A bag's weight must be finite and not negative",
        ~(np.isfinite(weight) & (weight >= 0)),
        thing="bag",
        given=weight,
        remedy="Use noise_weights for noisy reports.",
    )
    total = np.bincount(stratum, weights=weight)[np.unique(stratum)]
    refuse(
        "The weights of the bags must add up to 1 in each stratum",
        np.abs(total - 1) > 1e-6,
        thing="stratum",
        given=total,
        remedy="Divide them by their sum.",
    )


def check_instances(bag: Any, size: Any, reference: Any) -> None:
    """One row per instance, and whole bags."""
    rows(len(reference), len(bag), thing="reference", of="instance")
    counted, size = np.bincount(bag, minlength=len(size)), np.asarray(size)
    wrong = counted != size if len(counted) == len(size) else np.arange(len(counted)) >= len(size)
    if wrong.any():
        claimed = [size[j] if j < len(size) else "no" for j in range(len(counted))]
        refuse(
            "A size must be the number of instances of the bag",
            wrong,
            thing="bag",
            given=[f"size {k} and {c} instances" for k, c in zip(claimed, counted, strict=True)],
            remedy="Batches must hold whole bags.",
        )
