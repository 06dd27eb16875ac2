"""Signed weights: a bag's report *is* a weight for each instance and each loss component.

    estimate of the population loss = sum_i sum_r W[bag(i), r] * component_r(x_i)

All three methods are linear in the loss components (of `unbag.losses`), so training from bags is
ordinary weighted training. Arrays in, array out: NumPy inputs are checked; JAX and PyTorch arrays
are taken as they are, because values under `jit` cannot be looked at.

Arguments that all methods share
--------------------------------
size : array of int
    Number of instances of each bag.
report, prior : array of float
    In component form, (1, proportion) or a class histogram: what `Bags.components()` gives; or the
    paper's alpha and p, one proportion per bag and one number. With strata the prior has one row
    per stratum. Take it from the whole data set, never from the batch:
    with the batch's own mean as prior, and batch means, EasyLLP and GeneralUPM are the same, and
    both are biased. A prior that is the mean report of B bags is fit for means over the instances
    of these bags; with a pool or pending bags outside it `upm` is biased by about -Cov(y, f2) / B
    times their share of the instances (docs/mathematics.md has the exact bias). Give a prior that
    is known, or from many more bags; `unbag.evaluate` corrects for it.
weight : array of float, optional
    Of each bag in the estimate, adding up to 1 (in each stratum); equal if left out. A bag of
    weight 0 (its report pending, say; it may be NaN) still lends its instances to the means.
stratum : array of int, optional
    Stratum number of each bag. Bags need only be random within their stratum: each has its own
    prior and means, and counts by its share of the instances.
pool : float or array, optional
    Number of further instances, without a report, that help to estimate the means of the components
    (one number per stratum). The result then has one more row (per stratum) that multiplies the
    *mean components of the pool*. `pool=inf` says that these means are known: all of the
    expectation is taken from them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.weights._linear import anchored as anchored
    from unbag.weights._linear import check_batch as check_batch
    from unbag.weights._linear import check_instances as check_instances
    from unbag.weights._linear import easy as easy
    from unbag.weights._linear import upm as upm
    from unbag.weights._linear import upm_by_bag as upm_by_bag
    from unbag.weights._pseudo_labels import PseudoLabels as PseudoLabels
    from unbag.weights._pseudo_labels import noise_weights as noise_weights
    from unbag.weights._pseudo_labels import pseudo_labels as pseudo_labels
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
