"""Signed weights of each bag: the formulas of `unbag.weights` with windows over strata."""

from __future__ import annotations

from typing import Any

import ibis

from unbag.bags import label_variance
from unbag.sql._columns import constant, total
from unbag.sql._match import Request

WITHIN, ALL_BAGS = ibis.window(group_by="stratum"), ibis.window()


def weigh_bags(bags: Any, request: Request) -> Any:
    """Weights W of each bag that is usable: one column for each component.

    N is the number of instances of the stratum, `all` that of all strata.
    """
    parts = range(len(request.parts))
    needed = ["bag", "size", "stratum", "noise", *(f"a_{i}" for i in parts)]
    needed += [f"g_{i}" for i in range(len(request.reference))]
    usable = bags.filter(bags.usable).select(*needed)
    usable = usable.mutate(N=usable.size.sum().over(WITHIN), all=usable.size.sum().over(ALL_BAGS))
    sums = {f"p_{i}": (usable.size * usable[f"a_{i}"]).sum().over(WITHIN) for i in parts}
    usable = usable.mutate(**{name: sum_ / usable.N for name, sum_ in sums.items()})
    usable = _with_bag_weights(usable, request)
    if request.method == "anchored":
        usable = _residuals(usable, request)
    weights = {f"W_{i}": _FORMULAS[request.method](usable, i) for i in parts}
    return usable.select("bag", "size", "stratum", "all", **weights)


def _with_bag_weights(usable: Any, request: Request) -> Any:
    """The weight w of each bag in its stratum: equal, or under noise proportional to 1 / (Var y +
    noise / k)."""
    one = constant(1) / usable.count().over(WITHIN)
    if request.columns.noise is None:
        return usable.mutate(w=one)
    # Var y is averaged over strata, one by one: a bag stands for 1 / (bags of its stratum)
    usable = usable.mutate(v=_label_variance(usable, request), one=one)
    variance = (usable.v * usable.one).sum().over(ALL_BAGS) / usable.one.sum().over(ALL_BAGS)
    usable = usable.mutate(variance=ibis.greatest(variance, constant(1e-6)))
    usable = usable.mutate(raw=constant(1) / (usable.variance + usable.noise / usable.size))
    return usable.mutate(w=usable.raw / usable.raw.sum().over(WITHIN))


def _label_variance(usable: Any, request: Request) -> Any:
    """Var y in a stratum: p (1 - p), on average over classes; for counts that of a Poisson
    variable."""
    if request.columns.counts is None:
        return label_variance(usable.p_1, request.columns.reports_are)
    p = [usable[f"p_{i}"] for i in range(len(request.parts))]
    return total([label_variance(each, "histogram") for each in p]) / len(p)


def _residuals(usable: Any, request: Request) -> Any:
    """Reports and priors less the reference: a - mean of g in the bag, p - mean of g in the
    stratum."""
    sums = [usable[f"g_{i}"] for i in range(len(request.reference))]
    if len(sums) < len(request.parts):  # (1, g): the leading 1 has no column
        sums = [usable.size.cast("float64"), *sums]
    less = {}
    for i, g in enumerate(sums):
        less[f"p_{i}"] = usable[f"p_{i}"] - g.sum().over(WITHIN) / usable.N
        less[f"a_{i}"] = usable[f"a_{i}"] - g / usable.size
    return usable.mutate(**less)


def _upm(usable: Any, i: int) -> Any:
    """W = share (w (a - p) + sum of the other bags' g),  g = w (p - k (a - p)) / (N - k)."""
    centred, p = usable[f"a_{i}"] - usable[f"p_{i}"], usable[f"p_{i}"]
    others = (usable.N - usable.size).nullif(0)  # 0 for a lone bag, which the checks refuse
    g = usable.w * (p - usable.size * centred) / others
    return usable.N / usable.all * (usable.w * centred + g.sum().over(WITHIN) - g)


def _easy(usable: Any, i: int) -> Any:
    """W = share w (a - p + p / k)."""
    a, p = usable[f"a_{i}"], usable[f"p_{i}"]
    return usable.N / usable.all * usable.w * (a - p + p / usable.size)


_FORMULAS = {"upm": _upm, "anchored": _upm, "easy": _easy}
