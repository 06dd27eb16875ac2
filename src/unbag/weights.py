"""Reports in, signed weights out: a bag's report *is* a weight for each instance and each loss component.

    estimate of the population loss = sum_i sum_r W[bag(i), r] * component_r(x_i)

All three methods are linear in the loss components (of `unbag.losses`), so training from bags is ordinary
weighted training. Arrays in, array out: NumPy inputs are checked; JAX and PyTorch arrays are taken as they are,
because values under `jit` cannot be looked at.

Arguments that all methods share
--------------------------------
size : number of instances of each bag.
report, prior : in component form, (1, proportion) or a class histogram: what `Bags.components()` gives. With
    strata the prior has one row per stratum. Take it from the whole data set, never from the batch: with the
    batch's own mean as prior, and batch means, EasyLLP and GeneralUPM are the same, and both are biased.
weight : of each bag in the estimate, adding up to 1 (in each stratum); equal if left out. A bag of weight 0
    (its report pending, say; it may be NaN) still lends its instances to the means.
stratum : stratum number of each bag. Bags need only be random within their stratum: each has its own prior and
    means, and counts by its share of the instances.
pool : number of further instances, without a report, that help to estimate the means of the components (one
    number per stratum). The result then has one more row (per stratum) that multiplies the *mean components of
    the pool*. `pool=inf` says that these means are known: all of the expectation is taken from them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unbag.arrays import (
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
from unbag.bags import Kind
from unbag.checks import refuse, rows, two_bags


def upm(
    size: PerBag,
    report: PerBagComponent,
    prior: Any,
    *,
    weight: PerBag | None = None,
    stratum: Any = None,
    pool: Any = None,
) -> Weights:
    """GeneralUPM: unbiased at any bag size, with a variance that does not grow with it.

    Each bag j is centred by the prior p and by the means over the other bags (and the pool):

        W_j = w_j (a_j - p) + sum_{l != j} w_l g_l,   g_l = (p - k_l (a_l - p)) / (N - k_l)

    which is equation (1) of the paper, averaged over the bags of a batch.

    Returns
    -------
    One row per bag, one column per component (and further rows for a pool).

    >>> upm(np.array([2, 2]), np.array([[1, 0.5], [1, 0.0]]), np.array([1, 0.25]))
    array([[ 0.25  ,  0.3125],
           [ 0.25  , -0.1875]])
    """
    if pool is None:
        return _upm(_Batch.of(size, report, prior, weight, stratum, 0.0, leave_one_out=True))[0]
    b = _Batch.of(size, report, prior, weight, stratum, pool, leave_one_out=True)
    return namespace(b.a).concat(_upm(b), axis=0)


def _upm(b: _Batch) -> tuple[Any, Any]:
    centred = b.a - b.p
    mean_part = b.w * (b.p - b.k * centred)
    others = b.instances + b.pool - b.k
    g = mean_part / others
    from_pool = mean_part * (1 - (b.instances - b.k) / others)
    total = sum_by(b.s, g, b.strata)[b.s]
    return b.share * (b.w * centred + total - g), sum_by(b.s, b.share * from_pool, b.strata)


def easy(
    size: PerBag,
    report: PerBagComponent,
    prior: Any,
    *,
    weight: PerBag | None = None,
    stratum: Any = None,
    pool: Any = None,
) -> Weights:
    """EasyLLP: unbiased too, with a variance that grows with the bag size unless E[f2] = 0.

        W_j = w_j (k_j (a_j - p) + p) / k_j

    With a pool (or known means) the part p E[component] comes from all instances and the pool instead of the
    bag itself.

    >>> easy(np.array([2, 2]), np.array([[1, 0.5], [1, 0.0]]), np.array([1, 0.25]))
    array([[ 0.25  ,  0.1875],
           [ 0.25  , -0.0625]])
    """
    if pool is None:
        b = _Batch.of(size, report, prior, weight, stratum, 0.0, leave_one_out=False)
        return b.share * b.w * (b.a - b.p + b.p / b.k)
    b = _Batch.of(size, report, prior, weight, stratum, pool, leave_one_out=False)
    per_instance = b.p / (b.instances + b.pool)
    own = b.share * (b.w * (b.a - b.p) + per_instance)
    from_pool = b.share * b.w * (b.p - b.instances * per_instance)
    return namespace(b.a).concat((own, sum_by(b.s, from_pool, b.strata)), axis=0)


def anchored(
    bag: BagOfInstance,
    size: PerBag,
    report: PerBagComponent,
    prior: Any,
    reference: PerInstanceComponent,
    *,
    reference_mean: Any = None,
    weight: PerBag | None = None,
    stratum: Any = None,
    pool: Any = None,
) -> Weights:
    """GeneralUPM of the residual y - g for a reference prediction g: unbiased for any fixed g, and less noisy
    the better g is.

        W_i = g_i / N + W_res[bag(i)],   W_res = upm(a_j - mean_j g, p - E g)

    Parameters
    ----------
    bag : bag number of each instance.
    reference : prediction for each instance in component form, (1, g) or class probabilities, made without the
        labels of the instance's own bag.
    reference_mean : E g (one row per stratum), from as much data as there are; by default the mean over these
        instances, which is exact up to -Cov(g, f2) / N. It must not leave bags out.

    Returns
    -------
    One row per instance (and further rows for a pool).

    >>> anchored(np.array([0, 1]), np.array([1, 1]), np.array([[1, 1.0], [1, 0.0]]), np.array([1, 0.5]),
    ...          np.array([[1, 0.5], [1, 0.5]]))
    array([[ 0.5 ,  0.75],
           [ 0.5 , -0.25]])
    """
    if is_numpy(report):
        _check_instances(bag, size, reference)
    reference, bag = like(report, reference), index_like(report, bag)
    mean_of_bag = mean_by(bag, reference, size)
    if reference_mean is None:
        reference_mean = _mean_by_stratum(mean_of_bag, size, prior, stratum)
    residual = report - mean_of_bag
    W = upm(size, residual, prior - like(report, reference_mean), weight=weight, stratum=stratum, pool=pool)
    own = reference / reference.shape[0] + W[: len(size)][bag]
    return own if pool is None else namespace(report).concat((own, W[len(size) :]), axis=0)


def _mean_by_stratum(mean_of_bag: Any, size: PerBag, prior: Any, stratum: Any) -> Any:
    k = like(mean_of_bag, size)[:, None]
    if stratum is None:
        return namespace(k).sum(k * mean_of_bag, axis=0) / namespace(k).sum(k)
    s = index_like(mean_of_bag, stratum)
    instances = sum_by(s, k, len(prior))
    return sum_by(s, k * mean_of_bag, len(prior)) / namespace(k).where(instances > 0, instances, 1.0)


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
    def of(size: Any, report: Any, prior: Any, weight: Any, stratum: Any, pool: Any, *, leave_one_out: bool) -> _Batch:
        if is_numpy(report):
            _check_batch(size, report, prior, weight, stratum, pool, leave_one_out=leave_one_out)
        xp, k = namespace(report), like(report, size)[:, None]
        p = like(report, prior)
        s = index_like(report, np.zeros(len(size), int) if stratum is None else stratum)
        p, strata = (p[None, :], 1) if stratum is None else (p, len(prior))
        instances = sum_by(s, k, strata)[s]
        w = 1 / sum_by(s, xp.ones_like(k), strata)[s] if weight is None else like(report, weight)[:, None]
        a = xp.where(w > 0, report, p[s])
        n0 = like(report, np.broadcast_to(pool, (strata,)) if is_numpy(report) else pool)
        n0 = xp.broadcast_to(n0, (strata,))[s][:, None]
        return _Batch(k, a, p[s], w, s, strata, instances, instances / xp.sum(k), n0)


def noise_weights(size: PerBag, noise: PerBag, *, variance: float, stratum: np.ndarray | None = None) -> np.ndarray:
    """Best weights of bags whose counts carry noise: w_j proportional to 1 / (Var y + noise_j / k_j).

    Parameters
    ----------
    size, noise : of each bag, its size and the variance of the noise on its count.
    variance : Var y, which is p (1 - p) for binary labels, or Var(y - g) for a reference g.

    >>> noise_weights(np.array([10, 10]), np.array([0.0, 7.5]), variance=0.25)
    array([0.8, 0.2])
    """
    if not variance > 0:
        raise ValueError(f"A label variance must be positive: {variance} came. For binary labels it is p (1 - p).")
    raw = 1 / (variance + np.asarray(noise, float) / np.asarray(size, float))
    s = np.zeros(len(raw), int) if stratum is None else np.asarray(stratum)
    return raw / np.bincount(s, weights=raw)[s]


class PseudoLabels(NamedTuple):
    """Targets and sample weights for any trainer that takes both."""

    target: np.ndarray
    sample_weight: np.ndarray


def pseudo_labels(weights: Any, *, kind: Kind = "binary") -> PseudoLabels:
    """Signed weights as a target and a positive sample weight: W . f = sample_weight * loss(score, target).

    Binary and total: target W2 / W1, sample weight W1. Histogram: class targets W / sum W, sample weight sum W.
    Targets may lie outside [0, 1]; the log loss softplus(z) - target z stays convex in the score all the same.
    Take the rows per instance, `W[bag]` (those of `anchored` are so already).

    >>> pseudo_labels(np.array([[0.25, 0.5], [0.25, 0.0]]))
    PseudoLabels(target=array([2., 0.]), sample_weight=array([0.25, 0.25]))
    """
    W = np.asarray(weights)
    positive = W.sum(axis=1) if kind == "histogram" else W[:, 0]
    refuse(
        "A sample weight must be positive",
        ~(positive > 0),
        thing="row",
        came=positive,
        remedy="Give at least two bags a positive weight in each stratum.",
    )
    target = W / positive[:, None] if kind == "histogram" else W[:, 1] / positive
    return PseudoLabels(target, positive)


def _check_batch(
    size: Any, report: Any, prior: Any, weight: Any, stratum: Any, pool: Any, *, leave_one_out: bool
) -> None:
    rows(len(size), len(report), thing="size", of="bag")
    strata = 1 if stratum is None else len(prior)
    expected = report.shape[1:] if stratum is None else (strata, *report.shape[1:])
    if np.shape(prior) != expected:
        raise ValueError(
            f"A prior must have one entry per component{' for each stratum' if stratum is not None else ''}, of "
            f"shape {expected}: one of shape {np.shape(prior)} came. Take it from Bags.components()."
        )
    s = np.zeros(len(size), int) if stratum is None else np.asarray(stratum)
    rows(len(s), len(size), thing="stratum", of="bag")
    weight = None if weight is None else np.asarray(weight, float)
    if weight is not None:
        _check_weight(weight, s)
    used = np.ones(len(size), bool) if weight is None else weight > 0
    refuse(
        "A report must be finite",
        ~np.isfinite(report).all(axis=1) & used,
        thing="bag",
        came=report,
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
        came=weight,
        remedy="Use noise_weights for noisy reports.",
    )
    total = np.bincount(stratum, weights=weight)[np.unique(stratum)]
    refuse(
        "The weights of the bags must add up to 1 in each stratum",
        np.abs(total - 1) > 1e-6,
        thing="stratum",
        came=total,
        remedy="Divide them by their sum.",
    )


def _check_instances(bag: Any, size: Any, reference: Any) -> None:
    rows(len(reference), len(bag), thing="reference", of="instance")
    counted = np.bincount(bag, minlength=len(size))
    refuse(
        "A size must be the number of instances of the bag",
        counted != np.asarray(size),
        thing="bag",
        came=[f"size {k} and {c} instances" for k, c in zip(size, counted, strict=True)]
        if len(counted) == len(size)
        else counted,
        remedy="Batches must hold whole bags.",
    )
