"""Small discrete worlds in which every outcome can be enumerated, so that expectations are
exact."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import jaxtyping
import numpy as np

from unbag.bags import Kind, as_components

T = TypeVar("T")


def repeated(items: Iterable[T]) -> Iterator[T]:
    """The items of a long loop. Shapes are checked for the first only: the check takes twice as
    long as the work."""
    try:
        for number, item in enumerate(items):
            jaxtyping.config.update("jaxtyping_disable", number > 0)
            yield item
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@dataclass(frozen=True)
class World:
    """x takes a few values with probabilities q; given x, y takes 0..c-1 with probabilities
    eta[x]."""

    kind: Kind
    q: np.ndarray
    eta: np.ndarray

    @property
    def classes(self) -> int:
        return self.eta.shape[1]

    @property
    def joint(self) -> np.ndarray:
        return self.q[:, None] * self.eta

    def label(self, y: np.ndarray) -> np.ndarray:
        """What is averaged into a report."""
        return np.eye(self.classes)[y] if self.kind == "histogram" else np.asarray(y, float)

    def label_components(self, y: np.ndarray) -> np.ndarray:
        return as_components(self.label(y), self.kind)

    @property
    def prior(self) -> np.ndarray:
        return np.einsum("xy,yr->r", self.joint, self.label_components(np.arange(self.classes)))

    def loss(self, components: np.ndarray) -> float:
        """Population loss for components[x, r]."""
        label = self.label_components(np.arange(self.classes))
        return float(np.einsum("xy,yr,xr->", self.joint, label, components))

    def covariance(self, components: np.ndarray) -> float:
        """sum_r Cov(label_r, component_r)."""
        return self.loss(components) - float(self.prior @ (self.q @ components))


def random_world(kind: Kind, seed: int, *, states: int = 2, classes: int | None = None) -> World:
    rng = np.random.default_rng(seed)
    classes = classes or (2 if kind == "binary" else 3)
    return World(kind, rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(classes), size=states))


def outcomes(worlds: list[World]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every (x, y) of one instance from each world, with its probability: arrays of (outcomes,
    instances)."""
    cells = [list(np.ndindex(world.joint.shape)) for world in worlds]
    table = np.array(list(itertools.product(*cells)))
    x, y = table[..., 0], table[..., 1]
    chance = np.prod([world.joint[x[:, i], y[:, i]] for i, world in enumerate(worlds)], axis=0)
    return x, y, chance
