"""Bags of several runs in, one array of features and bags that point into it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags


def shared_features(
    many: Sequence[Bags], X: Any, hold: Callable[[Any], Any]
) -> tuple[Any, list[Any]]:
    """One array of features for all, held on the device or the host, and bags whose rows point into
    it."""
    if X is not None:
        return hold(X), [_Pointing(b, b.rows) for b in many]
    if any(b.X is None for b in many):
        raise broken(
            "Bags to train on must have features",
            "X is None",
            "Give X to the bags, or to the trainer.",
        )
    if all(b is many[0] for b in many):
        return hold(many[0].X), list(many)
    offsets = np.cumsum([0, *(len(b.bag) for b in many[:-1])])
    stacked = np.concatenate([np.asarray(b.X) for b in many])
    return hold(stacked), [
        _Pointing(b, o + np.arange(len(b.bag))) for b, o in zip(many, offsets, strict=True)
    ]


class _Pointing:
    """Bags whose instances are rows of another array."""

    def __init__(self, bags: Bags, rows: Any) -> None:
        self._bags, self._rows = bags, np.asarray(rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bags, name)

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        return self._rows[self._bags.rows_of(numbers)]
