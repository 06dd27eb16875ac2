"""Objectives of other papers: from the scores of a padded batch to the value that training lowers.

Each is a function of (score, batch, ask) in JAX, for binary reports; `unbag.methods.METHODS` has
their names, so `unbag.train(model, bags, "llp_fc")`, `NetworkLearner(method="llp_fc")` and
`BagClassifier(method="llp_fc")` take them like our own. Rows where `batch.real` is false and bags
of weight 0 are padding or held out, and do not count. `ask` is what an objective may ask of the
model beyond its scores (`Ask`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import comb, perm
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from unbag._arrays import mean_by, softplus, sum_by
from unbag._rules import broken
from unbag.losses import log
from unbag.matching import proportion_matching


class Ask(NamedTuple):
    """What an objective may ask beyond the scores of the batch.

    Parameters
    ----------
    scores : callable
        From rows of features to scores, with the parameters of the moment.
    X : array
        Features of the rows of the batch.
    key : array
        For whatever is drawn; another one in each step.
    """

    scores: Callable[[Any], Any]
    X: Any
    key: Any


def mean_over_bags(by_bag: Any, weight: Any) -> Any:
    """The mean over bags by their weights; bags of weight 0 may have any value.

    Parameters
    ----------
    by_bag : array
        A value for each bag.
    weight : array
        Of each bag.

    >>> float(mean_over_bags(jnp.array([1.0, 3.0, jnp.nan]), jnp.array([0.5, 0.5, 0.0])))
    2.0
    """
    total = jnp.maximum(jnp.sum(weight), 1e-30)  # a batch in which no bag counts says nothing
    return jnp.sum(jnp.where(weight > 0, by_bag, 0.0) * weight) / total


# The square loss made unbiased at the level of bags: Li and others, Busa-Fekete and others. With
# r_j = a_j - mean_j h, the residual of bag j, p the prior and k_j the size, k_j r_j^2 alone has the
# expectation E (y - h)^2 + (k_j - 1) (p - E h)^2. The two estimators remove the excess in two ways.
# E h is the mean over the other bags of the batch (and stratum); with the true E h both are exactly
# unbiased, with the estimate up to about Var h / B.

DELTA = 0.05
"""Of the bound by which `clipped_square` clips."""


class Residuals(NamedTuple):
    """What the square loss needs of each bag.

    Parameters
    ----------
    size : array
        Number of instances k.
    own : array
        a - mean h.
    common : array
        p - E h.
    """

    size: Any
    own: Any
    common: Any


def debiased_square(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """The debiased square loss of Li, Chen, Javanmard and Mirrokni (2024), also called DSQ.

        mean_j  k_j (a_j - mean_j h)^2 - (k_j - 1) (p - E h)^2

    Unbiased; its variance keeps the term 2 (k_j - 1) (p - E h) r_j of a wrong level. The value can
    be negative.

    Parameters
    ----------
    score : array
        Logit of each row.
    batch : Batches
        Of the training.
    ask : Ask, optional
        Not used.
    """
    return mean_over_bags(debiased(residuals(score, batch)), _weight(batch))


def centred_square(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """The centred square loss of Busa-Fekete and others (2025), not clipped: their equation (2).

        mean_j  k_j (a_j - p - (mean_j h - E h))^2 + (p - E h)^2

    Unbiased, and its variance does not grow with the bag: the level is taken out before squaring.

    Parameters
    ----------
    score, batch, ask : array, Batches, Ask
        As in `debiased_square`.
    """
    return mean_over_bags(centred(residuals(score, batch)), _weight(batch))


def clipped_square(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """The same with the centred residual clipped to where it lies with high probability.

        mean_j  k_j clip(a_j - p - (mean_j h - E h), +-c_j)^2 + (p - E h)^2

    The constant is left open by the descriptions that we could read. We take Hoeffding's bound for
    the mean of k values in [-1, 1] to hold for all B bags of the batch at once with probability
    1 - DELTA: c_j = sqrt(2 log(2 B / DELTA) / k_j). So it acts on outliers only.

    Parameters
    ----------
    score, batch, ask : array, Batches, Ask
        As in `debiased_square`.
    """
    bags = jnp.maximum(jnp.sum(batch.weight > 0), 1)
    r = residuals(score, batch)
    bound = jnp.sqrt(2 * jnp.log(2 * bags / DELTA) / r.size)
    return mean_over_bags(centred(r, bound=bound), _weight(batch))


def residuals(score: Any, batch: Any) -> Residuals:
    """The residuals of each bag, with E h from the other bags of its stratum.

    Parameters
    ----------
    score, batch : array, Batches
        As in `debiased_square`.
    """
    h = jax.nn.sigmoid(score) * batch.real
    prior, stratum = jnp.atleast_2d(batch.prior)[:, 1], batch.stratum
    if len(prior) == 1:
        stratum = jnp.zeros_like(stratum)
    size = jnp.maximum(batch.size, 1)
    mean, total = mean_by(batch.bag, h, size), sum_by(batch.bag, h, len(size))
    # E h without the bag's own rows, of which it must be independent: the losses are unbiased only
    # if (p - E h) and (a - mean h) are uncorrelated
    others = sum_by(stratum, total, len(prior))[stratum] - total
    count = sum_by(stratum, batch.size, len(prior))[stratum] - batch.size
    expected = others / jnp.maximum(count, 1)
    return Residuals(size, batch.report[:, 1] - mean, prior[stratum] - expected)


def debiased(r: Residuals) -> Any:
    """What each bag says by Li and others."""
    return r.size * r.own**2 - (r.size - 1) * r.common**2


def centred(r: Residuals, *, bound: Any = jnp.inf) -> Any:
    """What each bag says by Busa-Fekete and others.

    Parameters
    ----------
    r : Residuals
        Of each bag.
    bound : array
        To which the centred residual is clipped.
    """
    return r.size * jnp.clip(r.own - r.common, -bound, bound) ** 2 + r.common**2


def _weight(batch: Any) -> Any:
    """Bags weigh as they do in their stratum, and strata by their instances."""
    if batch.prior.ndim == 1:
        return batch.weight
    return batch.weight * sum_by(batch.stratum, batch.size, len(batch.prior))[batch.stratum]


# Moment matching (LLP-MM): the labels of a few instances of a bag, drawn without replacement.

ORDER = 3
"""Of the highest moments that are matched, as in the public code."""
SMOOTHING = 1e-4
"""Share of the uniform law in both laws, so that no logarithm is infinite; as in the public
code."""


def moments(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """The cross entropy of count profiles of the orders 1 to ORDER, each with the same weight.

    Draw r of the k instances of a bag without replacement, and count their positives s. The report
    says P(s) = C(c, s) C(k - c, r - s) / C(k, r) with c = k a; the model says the mean over subsets
    of the law of the sum of their labels. The objective is the mean over r of the cross entropy of
    the two. Order 1 is proportion matching, order k the likelihood of the count. A bag has only the
    orders up to its size.

    Parameters
    ----------
    score, batch, ask : array, Batches, Ask
        As in `debiased_square`.
    """
    predicted = count_profiles(score, batch, ORDER)
    count = jnp.round(batch.size * batch.report[:, 1])
    by_bag = jnp.zeros(len(batch.size))
    for r, law in enumerate(predicted, 1):
        ways = [
            _falling(count, s) * _falling(batch.size - count, r - s) * comb(r, s)
            for s in range(r + 1)
        ]
        reported = jnp.stack(ways, axis=1) / jnp.maximum(_falling(batch.size, r), 1)[:, None]
        p, q = ((1 - SMOOTHING) * each + SMOOTHING / (r + 1) for each in (reported, law))
        entropy = -jnp.sum(p * jnp.log(q), axis=1)
        by_bag += jnp.where(batch.size >= r, entropy, 0.0)
    orders = jnp.clip(batch.size, 1, ORDER)
    return mean_over_bags(by_bag / orders, batch.weight)


def count_profiles(score: Any, batch: Any, order: int) -> list[Any]:
    """Of each order r the law of the positives among r instances drawn from a bag, as (bags, r+1).

    The generating polynomials e_r(t) = sum over subsets of prod (h_i t + 1 - h_i) follow from the
    power sums P_m(t) = sum_i (h_i t + 1 - h_i)^m by Newton's identities,
    r e_r = sum_m (-1)^(m - 1) e_{r - m} P_m, so nothing walks through the instances.

    Parameters
    ----------
    score, batch : array, Batches
        As in `moments`.
    order : int
        The highest.
    """
    h = jax.nn.sigmoid(score)
    size = batch.size
    power = []
    for m in range(1, order + 1):
        # coefficients of (h t + 1 - h)^m in t, of each row
        terms = [comb(m, a) * h**a * (1 - h) ** (m - a) * batch.real for a in range(m + 1)]
        power.append(sum_by(batch.bag, jnp.stack(terms, axis=1), len(size)))
    # Divided by k(k-1)...(k-r+1)/r! at once, so that numbers stay near 1.
    laws = [jnp.ones((len(size), 1))]
    for r in range(1, order + 1):
        total = 0.0
        for m in range(1, r + 1):
            scale = _falling(size, r - m) / jnp.maximum(_falling(size, r), 1)
            product = jax.vmap(jnp.convolve)(laws[r - m], power[m - 1])
            total += (-1) ** (m - 1) * perm(r - 1, m - 1) * scale[:, None] * product
        laws.append(jnp.clip(total, 0, 1))
    return laws[1:]


def _falling(n: Any, r: int) -> Any:
    """n (n - 1) ... (n - r + 1), 0 where a factor is negative."""
    value = jnp.ones_like(n)
    for i in range(r):
        value = value * jnp.maximum(n - i, 0)
    return value


# LLP-FC: which bag of a pair a row is from is a noisy label of it.

TINY = 1e-6


def llp_fc(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """Learning with label noise by forward correction, LLP-FC-uniform of Zhang, Wang and Scott
    (2022), for two classes.

    Bags i and j form a pair. Draw one of the two with probability 1/2, then a row of it: the number
    of the bag is a noisy label, with P(i | y = 1) = a_i / (a_i + a_j) and
    P(i | y = 0) = (1 - a_i) / (2 - a_i - a_j). The objective is the log loss of that label,

        -log( P(i | y = 1) h(x) + P(i | y = 0) (1 - h(x)) ),

    averaged over the rows of a bag and then over bags. Valid when bags differ in their proportions
    only. The pairs are neighbours in the batch, so new ones in each epoch; of an odd number one bag
    is left out. A pair of equal proportions says nothing.

    Parameters
    ----------
    score, batch, ask : array, Batches, Ask
        As in `debiased_square`.
    """
    partner = partners(batch.weight > 0)
    a, own = batch.report[:, 1], jnp.arange(len(partner))
    both = a + a[partner]
    of_one, of_zero = a / jnp.maximum(both, TINY), (1 - a) / jnp.maximum(2 - both, TINY)
    h = jax.nn.sigmoid(score)
    noisy = of_one[batch.bag] * h + of_zero[batch.bag] * (1 - h)
    loss = -jnp.log(jnp.maximum(noisy, TINY)) * batch.real
    by_bag = mean_by(batch.bag, loss, jnp.maximum(batch.size, 1))
    return mean_over_bags(by_bag, batch.weight * (partner != own))


def partners(usable: Any) -> Any:
    """Of each bag the one it is paired with: the next usable one; itself where there is none left.

    Parameters
    ----------
    usable : array of bool
        Which bags can be paired.

    >>> partners(jnp.array([True, False, True, True])).tolist()
    [2, 1, 0, 3]
    """
    order = jnp.argsort(~usable, stable=True)  # usable bags first, in their order
    position = jnp.argsort(order)
    count = jnp.sum(usable)
    other = jnp.where(position % 2 == 0, position + 1, position - 1)
    other = jnp.where((position < count) & (other < count), other, position)
    return order[other]


# LLP-VAT: matching, and predictions that do not change in the worst direction nearby.

RADIUS = 0.1
"""How far away, in typical lengths of a row: about what the public code has for images."""
SHARE = 0.05
"""Of the consistency, beside the matching; as in the public code."""


def llp_vat(score: Any, batch: Any, ask: Ask) -> Any:
    """Consistency regularisation by virtual adversarial training, Tsai and Lin (2020).

        mean_j PM_j + SHARE mean_i KL( h(x_i) || h(x_i + r_i) ),
        r_i = RADIUS s grad z(x_i) / |grad z(x_i)|,    s^2 = mean_i |x_i|^2

    The paper looks for the direction r by a step of power iteration. For two classes the matrix in
    question is h (1 - h) grad z grad z', of rank one, so the gradient of the logit is that
    direction, and nothing is drawn. The paper's radius is a number for normalised images; ours is a
    share of the typical length of a row, because tables have columns of any number. It raises SHARE
    from 0 in the first epochs; ours is constant, because bags choose the moment to stop.

    Parameters
    ----------
    score : array
        Logit of each row.
    batch : Batches
        Of the training.
    ask : Ask
        The model and the features, in floating point.
    """
    if not jnp.issubdtype(ask.X.dtype, jnp.inexact):
        rule = "The method llp_vat must have features that can be moved a little"
        remedy = "Give them in floating point, or use another method."
        raise broken(rule, f"features of type {ask.X.dtype} given", remedy)
    size = jnp.maximum(batch.size, 1)
    matched = proportion_matching(score, batch.bag, size, batch.report, loss=log, kind="binary")
    moved = ask.scores(jax.lax.stop_gradient(ask.X + worst_direction(ask, batch.real)))
    fixed = jax.lax.stop_gradient(score)
    divergence = jax.nn.sigmoid(fixed) * (fixed - moved) + softplus(moved) - softplus(fixed)
    consistency = jnp.sum(divergence * batch.real) / jnp.sum(batch.real)
    return mean_over_bags(matched, batch.weight) + SHARE * consistency


def worst_direction(ask: Ask, real: Any) -> Any:
    """A step along the gradient of each row's logit, of RADIUS times the typical length of rows.

    Parameters
    ----------
    ask : Ask
        The model and the features.
    real : array of bool
        Which rows are no padding.
    """
    slope = jax.grad(lambda X: jnp.sum(ask.scores(X)))(ask.X)
    flat = slope.reshape(len(slope), -1)
    # The norm is not differentiable at 0, and nothing is differentiated here.
    length = jnp.sqrt(jnp.sum(flat**2, axis=1) + 1e-24)
    squared = jnp.sum(ask.X.reshape(len(real), -1) ** 2, axis=1)
    typical = jnp.sqrt(jnp.sum(squared * real) / jnp.sum(real))
    return RADIUS * typical * (flat / length[:, None]).reshape(slope.shape)


# MixBag: further bags made of parts of two, whose proportion is known up to an interval.

STANDARD_ERRORS = 2.576
"""Half the width of the interval: 99 per cent, as in the paper."""
SPREAD = 0.1
"""Standard deviation of the share that a mixed bag takes of its first bag, around 1/2."""


def mixbag(score: Any, batch: Any, ask: Ask) -> Any:
    """Proportion matching on bags and on mixtures of two, Asanomi and others (2023).

    A mixed bag takes n_i of the k_i instances of bag i and n_j of the next, n_i about half. Its
    proportion has mean m = (n_i a_i + n_j a_j) / (n_i + n_j) and a variance v, by drawing without
    replacement. Its loss is that of matching with m when the predicted mean is outside
    m +- 2.576 sqrt(v), and constant inside (the confidence interval loss). The objective is the
    mean of the two kinds of bags. The paper describes a binomial v; ours is the exact one.

    Parameters
    ----------
    score : array
        Logit of each row.
    batch : Batches
        Of the training.
    ask : Ask
        Whose key says what is drawn.
    """
    size = jnp.maximum(batch.size, 1)
    plain = proportion_matching(score, batch.bag, size, batch.report, loss=log, kind="binary")
    mean, target, variance, weight = mixtures(score, batch, ask.key)
    mean = jnp.clip(mean, TINY, 1 - TINY)
    loss = -target * jnp.log(mean) - (1 - target) * jnp.log(1 - mean)
    outside = jnp.abs(mean - target) > STANDARD_ERRORS * jnp.sqrt(variance)
    mixed = jnp.where(outside, loss, jax.lax.stop_gradient(loss))
    return (mean_over_bags(plain, batch.weight) + mean_over_bags(mixed, weight)) / 2


def mixtures(score: Any, batch: Any, key: Any) -> tuple[Any, Any, Any, Any]:
    """Mean prediction, mean and variance of the proportion, and weight of a mixed bag for each bag.

    Parameters
    ----------
    score, batch : array, Batches
        As in `mixbag`.
    key : array
        Says which instances are drawn.
    """
    of_share, of_rank = jax.random.split(key)
    k, a = batch.size, batch.report[:, 1]
    usable = batch.weight > 0
    order = jnp.argsort(~usable, stable=True)
    following = jnp.argsort(order) + 1
    following = order[jnp.where(following < jnp.sum(usable), following, 0)]
    drawn = 0.5 + SPREAD * jax.random.normal(of_share, k.shape)
    share = jnp.clip(drawn, 1 / jnp.maximum(k, 1), 1)
    first = jnp.round(share * k)
    second = jnp.maximum(jnp.round((1 - share) * k[following]), 1)
    rank = _ranks(jax.random.uniform(of_rank, batch.bag.shape), batch)
    h = jax.nn.sigmoid(score) * batch.real
    # A bag lends its first ranks to its own mixture and its last ranks to that of the bag before.
    lender = jnp.where(usable, following, len(k))
    lent = jnp.zeros_like(k).at[lender].set(second, mode="drop")
    to_own = sum_by(batch.bag, h * (rank < first[batch.bag]), len(k))
    to_other = sum_by(batch.bag, h * (rank >= (k - lent)[batch.bag]), len(k))
    count = jnp.maximum(first + second, 1)
    mean = (to_own + to_other[following]) / count
    target = (first * a + second * a[following]) / count
    variance = 0.0  # of the positives among n drawn of k without replacement, from both bags
    for n, k_, a_ in ((first, k, a), (second, k[following], a[following])):
        variance += n * a_ * (1 - a_) * jnp.maximum(k_ - n, 0) / jnp.maximum(k_ - 1, 1) / count**2
    return mean, target, variance, batch.weight * (following != jnp.arange(len(k)))


def _ranks(drawn: Any, batch: Any) -> Any:
    """The rank of each row in its bag by what was drawn for it, from 0; padding comes last."""
    order = jnp.lexsort((jnp.where(batch.real, drawn, 2.0), batch.bag))
    rows = sum_by(batch.bag, jnp.ones_like(drawn), len(batch.size))
    start = jnp.cumsum(rows) - rows
    rank = jnp.arange(len(order)) - start[batch.bag[order]]
    return jnp.zeros(len(order)).at[order].set(rank)


OBJECTIVES: Mapping[str, Callable[[Any, Any, Ask], Any]] = {
    objective.__name__: objective
    for objective in (
        debiased_square,
        centred_square,
        clipped_square,
        moments,
        llp_fc,
        llp_vat,
        mixbag,
    )
}
"""By the names of the table of methods."""
