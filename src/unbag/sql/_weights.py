"""Bags with reports in, signed weights of each bag out: the formulas of `unbag.weights` with
windows over strata."""

from __future__ import annotations

from typing import Any

from unbag.bags import label_variance
from unbag.sql._columns import Asking, constant, ibis, total


def weigh_bags(bags: Any, asking: Asking) -> Any:
    """Weights W of each bag that is seen: one column for each component.

    N is the number of instances of the stratum, `share` the part of the stratum among all.
    """
    parts = range(len(asking.parts))
    needed = ["bag", "size", "stratum", "noise", *(f"a_{i}" for i in parts)]
    seen = bags.filter(bags.seen).select(*needed, *(f"g_{i}" for i in range(len(asking.reference))))
    within, all_bags = ibis().window(group_by="stratum"), ibis().window()
    seen = seen.mutate(N=seen.size.sum().over(within), all=seen.size.sum().over(all_bags))
    prior = lambda i: (seen.size * seen[f"a_{i}"]).sum().over(within) / seen.N
    seen = seen.mutate(**{f"p_{i}": prior(i) for i in parts})
    seen = _with_bag_weights(seen, asking)
    seen = _residuals(seen, asking) if asking.method == "anchored" else seen
    own = {
        f"W_{i}": formula
        for i, formula in zip(parts, _FORMULAS[asking.method](seen, parts), strict=True)
    }
    return seen.select("bag", "size", "stratum", "all", **own)


def _with_bag_weights(seen: Any, asking: Asking) -> Any:
    """The weight w of each bag in its stratum: equal, or under noise proportional to 1 / (Var y +
    noise / k)."""
    within, all_bags = ibis().window(group_by="stratum"), ibis().window()
    if asking.columns.noise is None:
        return seen.mutate(w=constant(1) / seen.count().over(within))
    # Var y is averaged over strata, one by one: a bag stands for 1 / (bags of its stratum)
    seen = seen.mutate(v=_label_variance(seen, asking), one=constant(1) / seen.count().over(within))
    variance = (seen.v * seen.one).sum().over(all_bags) / seen.one.sum().over(all_bags)
    seen = seen.mutate(variance=ibis().greatest(variance, constant(1e-6)))
    seen = seen.mutate(raw=constant(1) / (seen.variance + seen.noise / seen.size))
    return seen.mutate(w=seen.raw / seen.raw.sum().over(within))


def _label_variance(seen: Any, asking: Asking) -> Any:
    """Var y in a stratum: p (1 - p), on average over classes; for counts that of a Poisson
    variable."""
    if asking.columns.counts is not None:
        p = [seen[f"p_{i}"] for i in range(len(asking.parts))]
        return total([label_variance(each, "histogram") for each in p]) / len(p)
    return label_variance(seen.p_1, asking.columns.reports_are)


def _residuals(seen: Any, asking: Asking) -> Any:
    """Reports and priors less the reference: a - mean of g in the bag, p - mean of g in the
    stratum."""
    within, parts = ibis().window(group_by="stratum"), range(len(asking.parts))
    first = len(asking.parts) - len(asking.reference)  # (1, g): the leading 1 has no column
    sums = {i: seen[f"g_{i - first}"] if i >= first else seen.size.cast("float64") for i in parts}
    means = {f"p_{i}": seen[f"p_{i}"] - sums[i].sum().over(within) / seen.N for i in parts}
    return seen.mutate(**means, **{f"a_{i}": seen[f"a_{i}"] - sums[i] / seen.size for i in parts})


def _upm(seen: Any, parts: range) -> list[Any]:
    """W = share (w (a - p) + sum of the other bags' g),  g = w (p - k (a - p)) / (N - k)."""
    centred = lambda i: seen[f"a_{i}"] - seen[f"p_{i}"]
    others = (seen.N - seen.size).nullif(0)  # 0 for a lone bag, which the checks refuse
    g = lambda i: seen.w * (seen[f"p_{i}"] - seen.size * centred(i)) / others
    within, share = ibis().window(group_by="stratum"), seen.N / seen.all
    return [share * (seen.w * centred(i) + g(i).sum().over(within) - g(i)) for i in parts]


def _easy(seen: Any, parts: range) -> list[Any]:
    """W = share w (a - p + p / k)."""
    share = seen.N / seen.all
    return [
        share * seen.w * (seen[f"a_{i}"] - seen[f"p_{i}"] + seen[f"p_{i}"] / seen.size)
        for i in parts
    ]


_FORMULAS = {"upm": _upm, "anchored": _upm, "easy": _easy}
