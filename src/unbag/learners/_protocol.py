"""What every learner shares: bags in, a fitted model out, which scores new rows and goes into a
file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unbag._progress import Progress
from unbag.bags import Bags, Kind


@runtime_checkable
class Model(Protocol):
    """A fitted model.

    Attributes
    ----------
    kind : {"binary", "total", "histogram"}
        Which labels it predicts, and so what its scores are.
    """

    @property
    def kind(self) -> Kind: ...

    def scores(self, X: Any) -> np.ndarray:
        """Logits (binary), log rates (total) or class scores of shape (rows, classes), float64.

        An offset of the rows (log exposure, an old model's score) is not part of the model: add it.
        """
        ...

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The model as arrays and settings that JSON can hold, for the model file."""
        ...

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> Model:
        """The model that `arrays` described.

        Parameters
        ----------
        arrays : dict of str to numpy.ndarray
            Its numbers.
        settings : dict
            The rest, as JSON holds it.
        """
        ...


def arrays_of(models: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of several models, each under its name, and their settings by name."""
    arrays, settings = {}, {}
    for name, model in models.items():
        own, settings[name] = model.arrays()
        arrays |= {f"{name}.{key}": value for key, value in own.items()}
    return arrays, settings


def under(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The arrays of one of these models."""
    start = f"{name}."
    return {key.removeprefix(start): a for key, a in arrays.items() if key.startswith(start)}


@runtime_checkable
class Learner(Protocol):
    """A frozen dataclass of options that fits models to bags.

    Attributes
    ----------
    name : str
        How the command line and reports call it.
    needs_random_bags : bool
        Whether its models are valid only when bags are random (within strata).
    """

    @property
    def name(self) -> str: ...

    @property
    def needs_random_bags(self) -> bool: ...

    def fit(self, bags: Bags, *, seed: int = 0, progress: Progress | None = None) -> Model:
        """Fit a model to the observed bags.

        Parameters
        ----------
        bags : Bags
            Instances in bags. `bags.X` is an Arrow table (or a frame that narwhals reads) of raw
            columns, or a NumPy or sparse matrix; `bags.offset` is added to the scores.
        seed : int
            Of everything that is drawn.
        progress : Progress, optional
            Progress after each step.
        """
        ...
