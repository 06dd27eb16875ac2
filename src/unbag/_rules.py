"""A rule and what came in; nothing out, or a ValueError: the thing, the rule, what came, what to do."""

from __future__ import annotations

from typing import Any

import numpy as np

PLURALS = {"stratum": "strata", "set of bags": "sets of bags"}


def refuse(rule: str, bad: Any, *, thing: str, came: Any, remedy: str) -> None:
    """Raise when any entry of `bad` is true, naming the first offender and how many there are.

    >>> refuse("A report must be finite", np.array([False, True]), thing="bag",
    ...        came=np.array([0.5, np.nan]), remedy="Fix the export.")
    Traceback (most recent call last):
    ValueError: A report must be finite: bag 1 has nan (1 such bag). Fix the export.
    """
    bad = np.asarray(bad)
    if not bad.any():
        return
    first, count = int(np.argmax(bad)), int(bad.sum())
    value = np.asarray(came)[first]
    plural = f"{count} such {PLURALS.get(thing, thing + 's')}" if count > 1 else f"1 such {thing}"
    raise ValueError(f"{rule}: {thing} {first} has {_show(value)} ({plural}). {remedy}")


def two_bags(
    count: np.ndarray | int, *, pool: np.ndarray | float = 0.0, of: str = "A batch"
) -> None:
    """Refuse a lone bag, or a lone bag in a stratum: no other bag's mean exists to centre it."""
    count = np.atleast_1d(count)
    lone = (count < 2) & ~(np.broadcast_to(pool, count.shape) > 0)
    if not lone.any():
        return
    if len(count) == 1:
        raise ValueError(
            f"{of} must hold at least two bags, because each bag is centred by the mean of the others: "
            f"{int(count[0])} came. Give more bags, or a pool of further instances."
        )
    refuse(
        "A stratum must hold at least two bags, because each bag is centred by the mean of the others",
        lone,
        thing="stratum",
        came=count,
        remedy="Merge small strata, or cut them into random sub-bags; where a stratum has one report only, leave the "
        "strata out and train by matching or likelihood.",
    )


VALID = (
    "method='matching' or method='likelihood', which stay valid when the model holds across bags"
)
LONE = f"Ask for reports of random sub-bags, two or more for each stratum; where that cannot be, use {VALID}."


def two_reports(stratum: np.ndarray | None, observed: np.ndarray) -> None:
    """Refuse an unbiased evaluation where a stratum has one report only, and offer what stays valid."""
    s = np.zeros(len(observed), int) if stratum is None else stratum
    count = np.bincount(s, weights=observed).astype(int)
    refuse(
        "An unbiased evaluation must have at least two reports in each stratum",
        (count < 2) & (np.bincount(s) > 0),
        thing="stratum",
        came=count,
        remedy=LONE,
    )


def rows(actual: int, expected: int, *, thing: str, of: str) -> None:
    """Refuse an array whose length does not fit."""
    if actual != expected:
        raise ValueError(
            f"{thing} must have one entry for each {of}: {actual} came for {expected} {of}s. "
            f"Give them in the order of the {of}s."
        )


def _show(value: Any) -> str:
    if np.ndim(value) > 0:
        return np.array2string(np.asarray(value), precision=6, threshold=8, separator=", ")
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
