"""The count likelihood: minus the log likelihood of each bag's count under the model.

The model gives every instance its own law, so the count of a bag has a law too, and the report is
one draw from it:

| kind | law of one label | law of the bag's count |
|---|---|---|
| binary | Bernoulli(h) | Poisson-binomial: exact for small bags, Gaussian for large ones |
| total | Poisson(exp(score)) | Poisson(sum_i exp(score_i)), exact for any bag |
| histogram | a class drawn from h | Poisson-multinomial: exact for bags of one, else Gaussian |

Like proportion matching this is not linear in the instances and has no signed weights. Unlike it,
it uses the variance of the count, not only its mean. Noise that was added to the count adds its
variance.
"""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

from unbag._arrays import (
    BagOfInstance,
    PerBag,
    PerBagComponent,
    constant,
    index_like,
    is_numpy,
    like,
    max_by,
    namespace,
    sum_by,
)
from unbag._rules import broken, one_of, refuse
from unbag.bags import Kind, Reports
from unbag.losses import Loss, cross_entropy, log, proper_loss

FLOOR = 1 / (2 * np.pi)
"""Smallest variance of a Gaussian count: its density then peaks at 1, as a probability can at most.

So the value is never negative, a model that is certain and right gets 0 as under the exact law, and
being still more certain earns nothing. It is a maximum and not a sum: a Gaussian fit is fair (its
expected gradient is zero at the true model) when its variance is either the true one or
constant, and a sum is neither: at a mean of 0.1 per bag it would push the rare class to zero.
"""
WHOLE = 0.01
"""A count this near to a whole number is one: proportions come rounded, and in single precision."""
MOST_CLASSES = 32
"""Of histograms whose classes are taken together; beyond, each is taken by itself, because the work
grows with the cube of the classes."""
IMPOSSIBLE = -1e30
"""Logarithm of a probability of 0: finite, so that gradients are."""


def count_likelihood(
    score: Any,
    bag: BagOfInstance,
    size: PerBag,
    report: PerBagComponent,
    *,
    kind: Kind = "binary",
    exact: int = 32,
    largest: int | None = None,
    noise: PerBag | None = None,
) -> PerBag:
    """Minus the log likelihood of each bag's count: -log P(count | scores of the bag).

    The value belongs to the whole bag and is divided by nothing: its gradient grows with the bag.
    Divide the average by the mean bag size to compare it with losses per instance. Bags of one give
    the ordinary log loss, cross entropy or Poisson loss.

    binary: count ~ sum_i Bernoulli(h_i), exact up to bags of `exact`. Larger bags, bags with noise,
    and counts that are not whole take the Gaussian of the same mean and variance, (count - m)^2 /
    2v + log(2 pi v) / 2 with m = sum_i h_i and v = sum_i h_i (1 - h_i) + noise, v at least 1 / 2 pi
    (see `FLOOR`). At confident wrong scores the exact law grows like the score, while the Gaussian
    is bounded and its gradient fades.

    total: rate - count log(rate) with rate = sum_i exp(score_i), for any count from 0 on;
    log(count!), which no model changes, is left out, so values can be negative. With noise the
    Gaussian with variance rate + noise.

    histogram: the Gaussian with mean sum_i h_i and covariance sum_i (diag(h_i) - h_i h_i'), plus
    noise on the diagonal, one class at a time given those before; without noise the last class
    tells nothing and is left out.

    Parameters
    ----------
    score : array
        One score per instance (one per class for histograms), of any framework.
    bag : array of int
        Bag number of each instance, in any order.
    size, report : array
        Of each bag; the report in component form, as `Bags.components()` gives it. A bag of size 0
        is padding: whatever its report and instances, its value is 0 and its instances get no
        gradient.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    exact : int
        Largest bag for the exact law of a binary count. Its cost per bag is the square of the size.
    largest : int, optional
        Size of the largest bag if you know it and `size` is not a NumPy array (under `jit`): saves
        work when it is below `exact`, and changes nothing else.
    noise : array of float, optional
        Variance of the noise on each bag's count (on each class count); by default reports are
        exact.

    Returns
    -------
    array of float
        One value per bag. NumPy reports are checked, others are taken as they are.

    >>> bag, size, report = np.array([0, 0]), np.array([2]), np.array([[1, 0.5]])
    >>> count_likelihood(np.array([0.0, 0.0]), bag, size, report).round(4)
    array([0.6931])
    """
    one_of("A kind of report", kind, _KINDS)
    if exact < 1:
        rule = "The largest exact bag must be 1 or more"
        raise broken(rule, f"{exact} given", "Use 1 for Gaussians where possible.")
    if all(is_numpy(given) for given in (bag, size, report)):
        _check_sizes(bag, size)
        check_counts(size, report, noise, kind)
    xp = namespace(score)
    if largest is None:
        largest = len(bag)
        if is_numpy(size):
            largest = int(size.max(initial=1))
    width = min(exact, largest)
    size, report = like(score, size), like(score, report)
    real, zero = size > 0, xp.zeros_like(size)
    if noise is None:
        noise = zero
    noise = xp.where(real, like(score, noise), zero)
    report = xp.where(real[:, None], report, xp.zeros_like(report))
    value = _KINDS[kind](score, bag, size, report, noise, width)
    return xp.where(real, value, xp.zeros_like(value))


def check_link(loss: Loss, kind: Kind) -> None:
    """Refuse a loss that reads scores in another way than the likelihood does.

    Parameters
    ----------
    loss : Loss
        What predictions are made with.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    """
    usual = proper_loss(kind)
    score = np.array([[-1.0, 0.5], [0.0, 2.0]])
    if kind != "histogram":
        score = score[0]
    read, expected = (each.form(kind).link.prediction(score, kind) for each in (loss, usual))
    if read.shape != expected.shape or not np.allclose(read, expected):
        rule = f"The likelihood must go with a loss that reads scores as {usual.name} does"
        raise broken(rule, f"{loss.name} given", "Leave the loss out.")


def _binary(score: Any, bag: Any, size: Any, report: Any, noise: Any, width: int) -> Any:
    xp = namespace(score)
    count = report[:, 1] * size
    inside = (count > -WHOLE) & (count < size + WHOLE)
    by_pmf = inside & _is_whole(count) & (noise == 0) & (size <= width)
    value = zero = xp.zeros_like(count)
    if not is_numpy(by_pmf) or by_pmf.any():  # the exact law is by far the dearest part
        value = _poisson_binomial(
            score, bag, xp.where(by_pmf, size, zero), xp.where(by_pmf, count, zero), width
        )
    index = index_like(score, bag)
    log_h = log.form("binary").predict(score)
    moments = xp.stack([xp.exp(log_h[:, 1]), xp.exp(log_h[:, 0] + log_h[:, 1])], axis=-1)
    mean, variance = sum_by(index, moments, len(size)).T
    return xp.where(by_pmf, value, _gaussian(count - mean, variance + noise))


def _total(score: Any, bag: Any, size: Any, report: Any, noise: Any, width: int) -> Any:
    xp = namespace(score)
    total = report[:, 1] * size
    log_rate = _log_sum_by(index_like(score, bag), score, size)
    rate = xp.exp(log_rate)
    return xp.where(noise > 0, _gaussian(total - rate, rate + noise), rate - total * log_rate)


def _histogram(score: Any, bag: Any, size: Any, report: Any, noise: Any, width: int) -> Any:
    xp, index = namespace(score), index_like(score, bag)
    count = report * size[:, None]
    log_h = cross_entropy.form("histogram").predict(score)
    h = xp.exp(log_h)
    by_class = xp.all(_is_whole(count), axis=1) & (noise == 0) & (size == 1)
    ordinary = -xp.sum(count * sum_by(index, log_h, len(size)), axis=1)
    if h.shape[1] > MOST_CLASSES:
        # A Gaussian for each class by itself, whose cost grows with the classes and not with their
        # square. Without noise one class follows from the others, so that all count a little less.
        mean, variance = (sum_by(index, part, len(size)) for part in (h, h * (1 - h)))
        apart = xp.sum(_gaussian(count - mean, variance + noise[:, None]), axis=1)
        ones = xp.ones_like(noise)
        apart = apart * xp.where(noise > 0, ones, ones * (1 - 1 / h.shape[1]))
        return xp.where(by_class, ordinary, apart)
    outer = sum_by(index, h[:, :, None] * h[:, None, :], len(size))
    mean = sum_by(index, h, len(size))
    identity = like(score, np.eye(h.shape[1]))
    covariance = (mean + noise[:, None])[:, :, None] * identity - outer
    return xp.where(by_class, ordinary, _gaussian_by_class(count - mean, covariance, noise > 0))


_KINDS = {"binary": _binary, "total": _total, "histogram": _histogram}


def _is_whole(count: Any) -> Any:
    xp = namespace(count)
    return xp.abs(count - xp.round(count)) < WHOLE


def _gaussian(residual: Any, variance: Any) -> Any:
    """r^2 / 2v + log(2 pi v) / 2 with v at least `FLOOR`; r^2 is never formed, since it can
    overflow."""
    v = _floored(variance)
    return residual * (residual / v) / 2 + namespace(v).log(2 * np.pi * v) / 2


def _floored(variance: Any) -> Any:
    xp = namespace(variance)
    return xp.maximum(variance, xp.full_like(variance, FLOOR))


def _gaussian_by_class(residual: Any, covariance: Any, noisy: Any) -> Any:
    """The Gaussian in several dimensions as a chain of Gaussians in one: each class given the
    classes before it.

    Subtracting `slope` r_c from the residuals leaves the covariance C - (2 - C_cc / v) / v column
    column', which is the usual elimination unless the variance v of the class was raised to the
    floor.
    """
    xp, classes = namespace(residual), residual.shape[1]

    def one_class(c: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        value, residual, covariance = state
        r, own, column = residual[:, c], covariance[:, c, c], covariance[:, :, c]
        term, v = _gaussian(r, own), _floored(own)
        counts = noisy | (c < classes - 1)  # without noise the last class follows from the others
        value = value + xp.where(counts, term, xp.zeros_like(term))
        outer = column[:, :, None] * column[:, None, :]
        covariance = covariance - ((2 - own / v) / v)[:, None, None] * outer
        return value, residual - column * (r / v)[:, None], covariance

    state = (xp.zeros_like(residual[:, 0]), residual, covariance)
    if compat.is_jax_array(residual):  # written out, 16 classes take minutes to compile
        import jax

        return jax.lax.fori_loop(0, classes, one_class, state)[0]
    for c in range(classes):
        state = one_class(c, state)
    return state[0]


def _log_sum_by(index: Any, log_values: Any, size: Any) -> Any:
    """log sum_i exp(log_values_i) of each bag; 0 for a bag of size 0."""
    xp = namespace(log_values)
    real = size > 0
    top = max_by(index, log_values, len(size))
    top = xp.where(real, top, xp.zeros_like(top))
    below = xp.where(real[index], log_values - top[index], xp.zeros_like(log_values))
    total = sum_by(index, xp.exp(below), len(size))
    return top + xp.log(xp.where(real, total, xp.ones_like(total)))


def _poisson_binomial(score: Any, bag: Any, size: Any, count: Any, width: int) -> Any:
    """-log P(sum_i y_i = count), y_i ~ Bernoulli(sigmoid(score_i)), for bags of at most `width`.

    Every instance is a law on {0, 1}; laws are merged in pairs, pairs of pairs and so on, in log
    space, with as many sure zeros as it takes to make the bag a power of two.
    """
    xp = namespace(score)
    width = 1 << (width - 1).bit_length()
    # Rows of the first `width` instances of each bag; a smaller bag's row goes on with others.
    by_bag, place = namespace(bag), index_like(bag, np.arange(width))
    order = by_bag.argsort(bag, stable=True)
    start = by_bag.searchsorted(bag[order], index_like(bag, np.arange(len(size))))
    place = start[:, None] + place
    last = by_bag.full_like(place, len(bag) - 1)
    members = index_like(score, order[by_bag.minimum(place, last)])
    log_pmf = log.form("binary").predict(score[members])
    held = like(score, np.arange(width)) < size[:, None]
    log_pmf = xp.where(held[:, :, None], log_pmf, like(score, [0, IMPOSSIBLE]))
    while log_pmf.shape[1] > 1:
        half = log_pmf.shape[1] // 2
        log_pmf = _log_convolve(log_pmf[:, :half], log_pmf[:, half:])
    where = xp.astype(xp.round(count), index_like(score, np.arange(1)).dtype)
    return -xp.take_along_axis(log_pmf[:, 0], where[:, None], axis=1)[:, 0]


def _log_convolve(a: Any, b: Any) -> Any:
    """Logarithm of the law of a sum, from the logarithms of two laws on {0, ..., n - 1}.

    The grid a_i + b_j is padded to rows of 2 n and read anew as rows of 2 n - 1, which moves row i
    by i places to the right: then the sums i + j stand in one column.
    """
    xp, n = namespace(a), a.shape[-1]
    grid = a[..., :, None] + b[..., None, :]
    grid = xp.concat([grid, xp.full_like(grid, IMPOSSIBLE)], axis=-1)
    grid = grid.reshape((*a.shape[:-1], 2 * n * n))[..., : n * (2 * n - 1)]
    grid = grid.reshape((*a.shape[:-1], n, 2 * n - 1))
    top = constant(xp.max(grid, axis=-2))
    return top + xp.log(xp.sum(xp.exp(grid - top[..., None, :]), axis=-2))


def _check_sizes(bag: np.ndarray, size: np.ndarray) -> None:
    counted = np.bincount(bag, minlength=len(size))[: len(size)]
    refuse(
        "A size must be the number of instances of the bag, or 0 for padding",
        (counted != size) & (size > 0),
        thing="bag",
        given=[f"size {k} and {c} instances" for k, c in zip(size, counted, strict=True)],
        remedy="Batches must hold whole bags.",
    )


def check_counts(size: np.ndarray, report: np.ndarray, noise: Any, kind: Kind) -> None:
    """Refuse reports that the law of the count cannot give.

    Parameters
    ----------
    size : array of int
        Of each bag; a bag of size 0 is padding and may hold anything.
    report : array of float
        Of each bag, in component form.
    noise : array of float, optional
        Variance of the noise on each bag's count.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    """
    real = np.flatnonzero(size > 0)
    given = report if kind == "histogram" else report[:, 1]
    variance = None if noise is None else np.asarray(noise)[real]
    if len(real):
        Reports(size[real], given[real], kind, variance, names=real)
