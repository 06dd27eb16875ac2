"""Signed weights of each bag: the formulas of `unbag.weights` with windows over strata."""

from __future__ import annotations

from typing import Any

import ibis

from unbag.bags import label_variance
from unbag.sql._columns import constant, total
from unbag.sql._match import Request

WITHIN, ALL_BAGS = ibis.window(group_by="stratum"), ibis.window()


def weigh_bags(bags: Any, request: Request) -> Any:
    """Weights W of each bag that is seen: one column for each component.

    N is the number of instances of the stratum, `all` that of all strata.
    """
    parts = range(len(request.parts))
    needed = ["bag", "size", "stratum", "noise", *(f"a_{i}" for i in parts)]
    needed += [f"g_{i}" for i in range(len(request.reference))]
    seen = bags.filter(bags.seen).select(*needed)
    seen = seen.mutate(N=seen.size.sum().over(WITHIN), all=seen.size.sum().over(ALL_BAGS))
    sums = {f"p_{i}": (seen.size * seen[f"a_{i}"]).sum().over(WITHIN) for i in parts}
    seen = seen.mutate(**{name: sum_ / seen.N for name, sum_ in sums.items()})
    seen = _with_bag_weights(seen, request)
    if request.method == "anchored":
        seen = _residuals(seen, request)
    weights = {f"W_{i}": _FORMULAS[request.method](seen, i) for i in parts}
    return seen.select("bag", "size", "stratum", "all", **weights)


def _with_bag_weights(seen: Any, request: Request) -> Any:
    """The weight w of each bag in its stratum: equal, or under noise proportional to 1 / (Var y +
    noise / k)."""
    one = constant(1) / seen.count().over(WITHIN)
    if request.columns.noise is None:
        return seen.mutate(w=one)
    # Var y is averaged over strata, one by one: a bag stands for 1 / (bags of its stratum)
    seen = seen.mutate(v=_label_variance(seen, request), one=one)
    variance = (seen.v * seen.one).sum().over(ALL_BAGS) / seen.one.sum().over(ALL_BAGS)
    seen = seen.mutate(variance=ibis.greatest(variance, constant(1e-6)))
    seen = seen.mutate(raw=constant(1) / (seen.variance + seen.noise / seen.size))
    return seen.mutate(w=seen.raw / seen.raw.sum().over(WITHIN))


def _label_variance(seen: Any, request: Request) -> Any:
    """Var y in a stratum: p (1 - p), on average over classes; for counts that of a Poisson
    variable."""
    if request.columns.counts is None:
        return label_variance(seen.p_1, request.columns.reports_are)
    p = [seen[f"p_{i}"] for i in range(len(request.parts))]
    return total([label_variance(each, "histogram") for each in p]) / len(p)


def _residuals(seen: Any, request: Request) -> Any:
    """Reports and priors less the reference: a - mean of g in the bag, p - mean of g in the
    stratum."""
    sums = [seen[f"g_{i}"] for i in range(len(request.reference))]
    if len(sums) < len(request.parts):  # (1, g): the leading 1 has no column
        sums = [seen.size.cast("float64"), *sums]
    less = {}
    for i, g in enumerate(sums):
        less[f"p_{i}"] = seen[f"p_{i}"] - g.sum().over(WITHIN) / seen.N
        less[f"a_{i}"] = seen[f"a_{i}"] - g / seen.size
    return seen.mutate(**less)


def _upm(seen: Any, i: int) -> Any:
    """W = share (w (a - p) + sum of the other bags' g),  g = w (p - k (a - p)) / (N - k)."""
    centred, p = seen[f"a_{i}"] - seen[f"p_{i}"], seen[f"p_{i}"]
    others = (seen.N - seen.size).nullif(0)  # 0 for a lone bag, which the checks refuse
    g = seen.w * (p - seen.size * centred) / others
    return seen.N / seen.all * (seen.w * centred + g.sum().over(WITHIN) - g)


def _easy(seen: Any, i: int) -> Any:
    """W = share w (a - p + p / k)."""
    a, p = seen[f"a_{i}"], seen[f"p_{i}"]
    return seen.N / seen.all * seen.w * (a - p + p / seen.size)


_FORMULAS = {"upm": _upm, "anchored": _upm, "easy": _easy}
