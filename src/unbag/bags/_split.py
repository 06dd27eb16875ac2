"""Bag numbers of the parts of a split and of the batches of an epoch: by bag, never by row."""

from __future__ import annotations

import numpy as np

from unbag._rules import broken, refuse, two_bags


def split_plan(
    count: int,
    fraction: float,
    *,
    stratum: np.ndarray | None,
    observed: np.ndarray | None = None,
    seed: int,
    names: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bag numbers of two parts, each with at least two observed bags of each stratum.

    Bags whose report is not observed are shared out by the same fraction.

    Parameters
    ----------
    count : int
        Number of bags.
    fraction : float
        Share of the bags in the first part.
    stratum : array of int, optional
        Of each bag.
    observed : array of bool, optional
        Whether the report of each bag is; by default all are.
    seed : int
        Which of the possible splits.
    names : array, optional
        What the user calls each stratum.

    >>> split_plan(4, 0.5, stratum=None, seed=0)
    (array([0, 2]), array([1, 3]))
    """
    if not 0 < fraction < 1:
        raise broken(
            "A fraction must lie between 0 and 1",
            f"{fraction} given",
            "Use 0.8 to hold out a fifth.",
        )
    if observed is None:
        observed = np.ones(count, bool)
    with_report, others = np.flatnonzero(observed), np.flatnonzero(~observed)
    own = None if stratum is None else stratum[observed]
    groups = [with_report[group] for group in _groups(len(with_report), own)]
    _check_groups(groups, stratified=stratum is not None, names=names)
    rng = np.random.default_rng(seed)
    sizes = [int(np.clip(round(fraction * len(g)), 2, len(g) - 2)) for g in groups]
    first = [rng.permutation(g)[:size] for g, size in zip(groups, sizes, strict=True)]
    others = np.random.default_rng([seed, 1]).permutation(others)
    first.append(others[: round(fraction * len(others))])
    in_first = np.zeros(count, bool)
    in_first[np.concatenate(first)] = True
    return np.flatnonzero(in_first), np.flatnonzero(~in_first)


def _check_groups(groups: list[np.ndarray], *, stratified: bool, names: np.ndarray | None) -> None:
    rule, thing = "Bags to split must be at least four, two for each part", "set of bags"
    if stratified:
        rule = "A stratum to split must hold at least four bags, two for each part"
        thing = "stratum"
    sizes = np.array([len(group) for group in groups])
    remedy = "Make smaller bags, or merge small strata."
    few = (sizes > 0) & (sizes < 4)
    refuse(rule, few, thing=thing, given=sizes, remedy=remedy, names=names)


def batch_plan(
    size: np.ndarray,
    instances: int,
    *,
    stratum: np.ndarray | None = None,
    seed: int,
    epoch: int = 0,
) -> list[np.ndarray]:
    """Bag numbers of each batch of one epoch.

    Every bag comes once, in an order drawn from (seed, epoch). A batch ends where the running
    number of instances is nearest to a multiple of `instances`; a batch of a single bag joins the
    one before.

    Parameters
    ----------
    size : array of int
        Of each bag.
    instances : int
        About how many instances a batch holds.
    stratum : array of int, optional
        Of each bag; a batch then holds at least two bags of each stratum in it.
    seed, epoch : int
        Of the order.

    >>> batch_plan(np.full(5, 2), 4, seed=0)
    [array([2, 4]), array([3, 0, 1])]
    """
    if instances < 1:
        raise broken(
            "A batch must hold at least one instance", f"{instances} given", "The paper uses 4096."
        )
    groups = _groups(len(size), stratum)
    two_bags(np.array([len(group) for group in groups if len(group)]), of="An epoch")
    rng = np.random.default_rng([seed, epoch])
    if stratum is None:
        order, unit = rng.permutation(len(size)), np.arange(len(size))
    else:
        order, unit = _paired_order(groups, rng)
    return _cut(order, unit, size, instances)


def _groups(count: int, stratum: np.ndarray | None) -> list[np.ndarray]:
    """The numbers of each stratum; all of them where there is none."""
    if stratum is None:
        return [np.arange(count)]
    return np.split(np.argsort(stratum, kind="stable"), np.cumsum(np.bincount(stratum))[:-1])


def _paired_order(
    groups: list[np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Bags in a random order of pairs of one stratum (an odd one out makes three), and each one's
    pair."""
    pairs = [
        pair
        for group in groups
        if len(group)
        for pair in np.array_split(rng.permutation(group), range(2, len(group) - 1, 2))
    ]
    shuffled = [pairs[i] for i in rng.permutation(len(pairs))]
    pair_of_bag = np.repeat(np.arange(len(pairs)), [len(pair) for pair in shuffled])
    return np.concatenate(shuffled), pair_of_bag


def _cut(order: np.ndarray, unit: np.ndarray, size: np.ndarray, instances: int) -> list[np.ndarray]:
    """Cut the order where a unit ends, near multiples of `instances`, two bags or more in each
    piece."""
    ends = np.flatnonzero(np.append(np.diff(unit) > 0, True)) + 1
    passed = np.cumsum(size[order])[ends - 1]
    middle = passed - np.diff(passed, prepend=0) / 2
    last_of_batch = np.append(np.diff(np.floor(middle / instances)) > 0, True)
    cuts = [0]
    for end in ends[last_of_batch]:
        if end - cuts[-1] >= 2:
            cuts.append(int(end))
    return np.split(order, cuts[1:-1])  # what follows the last cut belongs to the last batch
