"""The linear methods: `upm`, `easy` and `anchored`; see `unbag.weights` for their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unbag._arrays import (
    BagOfInstance,
    PerBag,
    PerBagComponent,
    PerInstanceComponent,
    Weights,
    index_like,
    is_numpy,
    like,
    mean_by,
    namespace,
    sum_by,
)
from unbag._rules import broken, refuse, rows, two_bags
from unbag.bags import as_components

Sizes = PerBag | Sequence[int]
Reports = PerBagComponent | PerBag | Sequence[float]


def upm(
    size: Sizes,
    report: Reports,
    prior: Any,
    *,
    weight: PerBag | None = None,
    stratum: Any = None,
    pool: Any = None,
) -> Weights:
    """GeneralUPM: unbiased at any bag size, with a variance that does not grow with it.

    Each bag j is centred by the prior p and by the means over the other bags (and the pool):

        W_j = w_j (a_j - p) + sum_{l != j} w_l g_l,   g_l = (p - k_l (a_l - p)) / (N - k_l)

    which is equation (2) of the paper, averaged over the bags of a batch.

    Parameters
    ----------
    size, report, prior, weight, stratum, pool : array
        See `unbag.weights`.

    Returns
    -------
    array of float, of shape (bags, components)
        The weights; a pool adds a row (per stratum).

    >>> upm(np.array([2, 2]), np.array([[1, 0.5], [1, 0.0]]), np.array([1, 0.25]))
    array([[ 0.25  ,  0.3125],
           [ 0.25  , -0.1875]])
    """
    b = _Batch.of(size, report, prior, weight, stratum, pool, leave_one_out=True)
    centred = b.a - b.p
    mean_part = b.w * (b.p - b.k * centred)
    others = b.instances + b.pool - b.k
    g = mean_part / others
    total = sum_by(b.s, g, b.strata)[b.s]
    own = b.share * (b.w * centred + total - g)
    if pool is None:
        return own
    from_pool = b.share * mean_part * (1 - (b.instances - b.k) / others)
    return namespace(own).concat((own, sum_by(b.s, from_pool, b.strata)), axis=0)


def upm_by_bag(
    components: PerInstanceComponent, bag: BagOfInstance, size: Sizes, report: Reports, prior: Any
) -> PerBag:
    """What each bag says: GeneralUPM's loss of every bag, whose mean is the estimate of `upm`.

    For what is not linear in the bags: medians of means, and intervals from the spread between
    bags.

    Parameters
    ----------
    components : array of float, of shape (instances, components)
        Loss components of each instance.
    bag : array of int
        Bag number of each instance.
    size, report, prior : array
        See `unbag.weights`.

    >>> f, bag = np.array([[1.0, -1.0], [0.5, 0.3], [0.2, 0.1]]), np.array([0, 0, 1])
    >>> upm_by_bag(f, bag, np.array([2, 1]), np.array([[1, 0.5], [1, 0.0]]), np.array([1, 0.5]))
    array([0.25, 0.35])
    """
    report, prior = in_components(report, prior)
    if is_numpy(report):
        check_batch(size, report, prior, None, None, 0.0, leave_one_out=True)
        check_instances(bag, size, components)
    xp, k = namespace(components), like(components, size)[:, None]
    sums = sum_by(index_like(components, bag), components, len(size))
    mean = (xp.sum(sums, axis=0) - sums) / (xp.sum(k) - k)
    a, p = like(components, report), like(components, prior)
    return xp.sum((a - p) * (sums - k * mean) + p * mean, axis=1)


def easy(
    size: Sizes,
    report: Reports,
    prior: Any,
    *,
    weight: PerBag | None = None,
    stratum: Any = None,
    pool: Any = None,
) -> Weights:
    """EasyLLP: unbiased too, with a variance that grows with the bag size unless E[f2] = 0.

        W_j = w_j (k_j (a_j - p) + p) / k_j

    With a pool (or known means) the part p E[component] comes from all instances and the pool
    instead of the bag itself.

    Parameters
    ----------
    size, report, prior, weight, stratum, pool : array
        See `unbag.weights`.

    Returns
    -------
    array of float, of shape (bags, components)
        The weights; a pool adds a row (per stratum).

    >>> easy(np.array([2, 2]), np.array([[1, 0.5], [1, 0.0]]), np.array([1, 0.25]))
    array([[ 0.25  ,  0.1875],
           [ 0.25  , -0.0625]])
    """
    b = _Batch.of(size, report, prior, weight, stratum, pool, leave_one_out=False)
    if pool is None:
        return b.share * b.w * (b.a - b.p + b.p / _positive(b.k))
    per_instance = b.p / (b.instances + b.pool)
    own = b.share * (b.w * (b.a - b.p) + per_instance)
    from_pool = b.share * b.w * (b.p - b.instances * per_instance)
    return namespace(b.a).concat((own, sum_by(b.s, from_pool, b.strata)), axis=0)


def anchored(
    bag: BagOfInstance,
    size: Sizes,
    report: Reports,
    prior: Any,
    reference: PerInstanceComponent,
    *,
    reference_mean: Any = None,
    weight: PerBag | None = None,
    stratum: Any = None,
    pool: Any = None,
) -> Weights:
    """GeneralUPM of the residual y - g for a reference prediction g.

    It is unbiased for any fixed g, and less noisy the better g is.

        W_i = g_i / N + W_res[bag(i)],   W_res = upm(a_j - mean_j g, p - E g)

    Parameters
    ----------
    bag : array of int
        Bag number of each instance.
    size, report, prior, weight, stratum, pool : array
        See `unbag.weights`.
    reference : array of float, of shape (instances, components)
        Prediction for each instance in component form, (1, g) or class probabilities, made without
        the labels of the instance's own bag.
    reference_mean : array of float, optional
        E g (one row per stratum), from as much data as there are; by default the mean over these
        instances, which is exact up to -Cov(g, f2) / N. It must not leave bags out, and with a pool
        it must be given: the mean over these instances and the pool together is exact up to
        -Cov(g, f2) / (N + pool), that over these instances alone is not, because a bag's own share
        in it would no longer cancel.

    Returns
    -------
    array of float, of shape (instances, components)
        The weights; a pool adds a row (per stratum).

    >>> report, reference = np.array([[1, 1.0], [1, 0.0]]), np.array([[1, 0.5], [1, 0.5]])
    >>> anchored(np.array([0, 1]), np.array([1, 1]), report, np.array([1, 0.5]), reference)
    array([[ 0.5 ,  0.75],
           [ 0.5 , -0.25]])
    """
    if pool is not None and reference_mean is None:
        raise broken(
            "A pool must come with the mean of the reference, reference_mean=",
            "none given",
            "Give its mean over these instances and the pool together.",
        )
    report, prior = in_components(report, prior, strata=stratum is not None)
    if is_numpy(report):
        check_instances(bag, size, reference)
    reference, bag, k = like(report, reference), index_like(report, bag), like(report, size)
    mean_of_bag = mean_by(bag, reference, _positive(k))
    if reference_mean is None:
        reference_mean = _mean_by_stratum(mean_of_bag, size, prior, stratum)
    of_residual = report - mean_of_bag, prior - like(report, reference_mean)
    W = upm(size, *of_residual, weight=weight, stratum=stratum, pool=pool)
    own = reference / namespace(k).sum(k) + W[: len(size)][bag]
    if pool is None:
        return own
    return namespace(report).concat((own, W[len(size) :]), axis=0)


def in_components(report: Any, prior: Any, *, strata: bool = False) -> tuple[Any, Any]:
    """Reports and prior in component form, (1, proportion), from the paper's alpha and p.

    Parameters
    ----------
    report : array or sequence of float
        One proportion (or mean count) per bag; what is in component form already stays so.
    prior : float or array
        Of the same form; one for each stratum where there are strata.
    strata : bool
        Whether there are.

    >>> in_components([0.5, 0.0], 0.25)[1]
    array([1.  , 0.25])
    """
    if isinstance(report, list | tuple) or is_numpy(report):
        report = np.asarray(report, float)
    if np.ndim(report) == 0:
        raise broken("There must be one report for each bag", f"{report} given", "Give a list.")
    if strata and np.ndim(prior) == 0:
        raise broken("There must be one prior for each stratum", f"{prior} given", "Give a list.")
    if report.ndim > 1:
        return report, prior
    if np.ndim(prior) == int(strata):
        prior = as_components(like(report, prior))
    return as_components(report), prior


def _positive(count: Any) -> Any:
    """Numbers to divide by: a bag of size 0 is padding, and a batch may lack a stratum."""
    return namespace(count).where(count > 0, count, 1.0)


def _mean_by_stratum(mean_of_bag: Any, size: Sizes, prior: Any, stratum: Any) -> Any:
    k = like(mean_of_bag, size)[:, None]
    if stratum is None:
        return namespace(k).sum(k * mean_of_bag, axis=0) / namespace(k).sum(k)
    s = index_like(mean_of_bag, stratum)
    return sum_by(s, k * mean_of_bag, len(prior)) / _positive(sum_by(s, k, len(prior)))


class _Batch(NamedTuple):
    """The letters of the paper, each with one row per bag."""

    k: Any
    a: Any
    p: Any
    w: Any
    s: Any
    strata: int
    instances: Any  # in the bag's stratum
    share: Any  # of the stratum among all instances
    pool: Any

    @staticmethod
    def of(
        size: Any,
        report: Any,
        prior: Any,
        weight: Any,
        stratum: Any,
        pool: Any,
        *,
        leave_one_out: bool,
    ) -> _Batch:
        pool = 0.0 if pool is None else pool
        report, prior = in_components(report, prior, strata=stratum is not None)
        if is_numpy(report):
            check_batch(size, report, prior, weight, stratum, pool, leave_one_out=leave_one_out)
            pool = np.asarray(pool)
        xp, k, p = namespace(report), like(report, size)[:, None], like(report, prior)
        if stratum is None:
            p, stratum = p[None, :], np.zeros(len(size), int)
        s, strata = index_like(report, stratum), len(p)
        instances = sum_by(s, k, strata)[s]
        if weight is None:
            w = 1 / sum_by(s, xp.ones_like(k), strata)[s]
        else:
            w = like(report, weight)[:, None]
        a = xp.where(w > 0, report, p[s])
        n0 = xp.broadcast_to(like(report, pool), (strata,))[s][:, None]
        return _Batch(k, a, p[s], w, s, strata, instances, instances / xp.sum(k), n0)


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
    if np.ndim(size) == 0:
        remedy = "Repeat it for bags of one size."
        raise broken("There must be one size for each bag", f"{size} given", remedy)
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
    remedy = "Give a bag whose report is pending the weight 0."
    bad = ~np.isfinite(report).all(axis=1) & used
    refuse("A report must be finite", bad, thing="bag", given=report, remedy=remedy)
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
