"""Bag sizes and a seed in, bag numbers of each part or batch out: everything by bag, never by
row."""

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
) -> tuple[np.ndarray, np.ndarray]:
    """Bag numbers of the two parts of a split; each part gets at least two observed bags of each
    stratum.

    Bags whose report is not observed are shared out by the same fraction.

    >>> split_plan(4, 0.5, stratum=None, seed=0)
    (array([0, 2]), array([1, 3]))
    """
    seen = np.arange(count) if observed is None else np.flatnonzero(observed)
    rest = np.random.default_rng([seed, 1]).permutation(np.setdiff1d(np.arange(count), seen))
    first, second = _split_observed(
        len(seen), fraction, stratum=None if stratum is None else stratum[seen], seed=seed
    )
    with_rest = lambda part, more: np.sort(np.concatenate([seen[part], more]))
    cut = round(fraction * len(rest))
    return with_rest(first, rest[:cut]), with_rest(second, rest[cut:])


def _split_observed(
    count: int, fraction: float, *, stratum: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    if not 0 < fraction < 1:
        raise broken(
            "A fraction must lie between 0 and 1",
            f"{fraction} came",
            "Use 0.8 to hold out a fifth.",
        )
    rng = np.random.default_rng(seed)
    groups = _groups(count, stratum)
    sizes = np.array([len(group) for group in groups])
    refuse(
        "A stratum to split must hold at least four bags, two for each part"
        if stratum is not None
        else "Bags to split must be at least four, two for each part",
        (sizes > 0) & (sizes < 4),
        thing="stratum" if stratum is not None else "set of bags",
        given=sizes,
        remedy="Make smaller bags, or merge small strata.",
    )
    first = [rng.permutation(group)[: _first_part(len(group), fraction)] for group in groups]
    chosen = np.zeros(count, bool)
    chosen[np.concatenate(first)] = True
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def _first_part(count: int, fraction: float) -> int:
    return int(np.clip(round(fraction * count), 2, count - 2)) if count else 0


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

    >>> batch_plan(np.full(5, 2), 4, seed=0)
    [array([2, 4]), array([3, 0, 1])]
    """
    if instances < 1:
        raise broken(
            "A batch must hold at least one instance", f"{instances} came", "The paper uses 4096."
        )
    groups = _groups(len(size), stratum)
    two_bags(np.array([len(group) for group in groups if len(group)]), of="An epoch")
    rng = np.random.default_rng([seed, epoch])
    if stratum is None:
        order = rng.permutation(len(size))
        unit = np.arange(len(size))
    else:
        order, unit = _paired_order(groups, rng)
    return _cut(order, unit, size, instances)


def _groups(count: int, stratum: np.ndarray | None) -> list[np.ndarray]:
    if stratum is None:
        return [np.arange(count)]
    return np.split(np.argsort(stratum, kind="stable"), np.cumsum(np.bincount(stratum))[:-1])


def _paired_order(
    groups: list[np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Bags in a random order of pairs from one stratum (the odd one out makes three), and the pair
    of each."""
    pairs = [
        pair
        for group in groups
        if len(group)
        for pair in np.array_split(rng.permutation(group), range(2, len(group) - 1, 2))
    ]
    shuffled = [pairs[i] for i in rng.permutation(len(pairs))]
    return np.concatenate(shuffled), np.repeat(
        np.arange(len(pairs)), [len(pair) for pair in shuffled]
    )


def _cut(order: np.ndarray, unit: np.ndarray, size: np.ndarray, instances: int) -> list[np.ndarray]:
    """Cut the order where a unit ends, near multiples of `instances`, two bags or more in each
    piece."""
    ends = np.flatnonzero(np.append(np.diff(unit) > 0, True)) + 1
    passed = np.cumsum(size[order])[ends - 1]
    middle = passed - np.diff(passed, prepend=0) / 2
    last_of_batch = np.append(np.diff(np.floor(middle / instances)) > 0, True)
    cuts: list[int] = []
    for end in ends[last_of_batch]:
        if end - (cuts[-1] if cuts else 0) >= 2:
            cuts.append(int(end))
    if cuts[-1] < len(order):
        cuts[-1] = len(order)
    return np.split(order, cuts[:-1])
