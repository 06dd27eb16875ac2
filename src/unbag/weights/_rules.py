"""What the weights refuse, where values can be looked at: NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag._rules import broken, refuse, rows, two_bags


def check_batch(
    size: Any, report: Any, prior: Any, weight: Any, stratum: Any, pool: Any, *, leave_one_out: bool
) -> None:
    """Lengths, prior, finite reports, bag weights, and another bag to take the means from.

    Parameters
    ----------
    size, report, prior, weight, stratum, pool : array
        See `unbag.weights`.
    leave_one_out : bool
        Whether each bag is centred by the means of the others.
    """
    rows(len(size), len(report), thing="size", of="bag")
    expected, each = report.shape[1:], ""
    if stratum is not None:
        expected, each = (len(prior), *expected), " for each stratum"
    if np.shape(prior) != expected:
        raise broken(
            f"A prior must have one entry per component{each}, of shape {expected}",
            f"one of shape {np.shape(prior)} given",
            "Take it from Bags.components().",
        )
    s, strata = np.zeros(len(size), int), 1
    if stratum is not None:
        s, strata = np.asarray(stratum), len(prior)
        rows(len(s), len(size), thing="stratum", of="bag")
    refuse(
        f"A stratum number must lie between 0 and {strata - 1}, the last prior",
        (s < 0) | (s >= strata),
        thing="bag",
        given=s,
        remedy="Give one prior for each stratum.",
    )
    used = np.ones(len(size), bool)
    if weight is not None:
        used = _check_weight(np.asarray(weight, float), s) > 0
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


def _check_weight(weight: np.ndarray, stratum: np.ndarray) -> np.ndarray:
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
    return weight


def check_instances(bag: Any, size: Any, reference: Any) -> None:
    """Refuse what has not one row per instance, and bags that are not whole.

    Parameters
    ----------
    bag : array of int
        Bag number of each instance.
    size : array of int
        Of each bag.
    reference : array
        What must have one row per instance.
    """
    rows(len(reference), len(bag), thing="reference", of="instance")
    counted, size = np.bincount(bag, minlength=len(size)), np.asarray(size)
    beyond = len(counted) - len(size)  # bags that have instances and no size
    wrong = counted != np.append(size, [-1] * beyond)
    if beyond:
        wrong[: len(size)] = False
    claimed = [*size.tolist(), *["no"] * beyond]
    refuse(
        "A size must be the number of instances of the bag",
        wrong,
        thing="bag",
        given=[f"size {k} and {c} instances" for k, c in zip(claimed, counted, strict=True)],
        remedy="Batches must hold whole bags.",
    )
