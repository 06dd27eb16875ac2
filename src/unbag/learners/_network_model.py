"""Networks that learned from bags: the matrix they take, their form, and the mean of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse, special

from unbag import models
from unbag._arrays import like, namespace
from unbag._model_file import Misfit
from unbag._rules import broken
from unbag.additive import spread_and_tail
from unbag.bags import Kind
from unbag.tables import FeaturePlan, plan_features

BLOCK = 8192
"""Rows that are scored at once."""
MOST_ENTRIES = 2**29
"""Of a sparse matrix that is made dense."""
OTHER_UNITS = 10.0
"""A matrix of which one column varies so many times as much as the median column has columns in
units of their own; pixels and embeddings have one unit (a ratio of 1 to 2)."""
KNOTS, FEWEST_KNOTS = 64, 10
"""Of the normal scores of a number with a long tail; a number of fewer values stays as it is."""


@dataclass(frozen=True)
class NetworkForm:
    """What a network looks like.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    outputs : int
        Scores of a row: 1, or one for each class.
    numbers : int
        How many columns are numbers; bucket numbers follow.
    buckets, dimensions : tuple of int
        Of each embedding.
    """

    hidden: tuple[int, ...]
    outputs: int
    numbers: int
    buckets: tuple[int, ...] = ()
    dimensions: tuple[int, ...] = ()

    def make(self, key: int, start: Any) -> Any:
        """A network that starts at the trivial predictor; embeddings start at zero, so that a value
        that is rare or new adds nothing.

        Parameters
        ----------
        key : int
            Of JAX's random numbers.
        start : float or array
            The score to start with, `loss.trivial_score(prior)`.
        """
        options: dict[str, Any] = {"key": key, "outputs": self.outputs, "start": start}
        if not self.buckets:
            return models.mlp(self.numbers, self.hidden, **options)
        options["key"] = jax.random.split(jax.random.key(key), len(self.buckets) + 1)[-1]
        head = models.mlp(self.numbers + sum(self.dimensions), self.hidden, **options)
        shapes = zip(self.buckets, self.dimensions, strict=True)
        return models.Mixed(tuple(jnp.zeros(shape) for shape in shapes), head, self.numbers)


@dataclass(frozen=True, eq=False)
class NetworkColumns:
    """How rows become the matrix that a network takes: numbers around 0, then bucket numbers.

    Pixels and embeddings are divided by one scale and not each by its own: what hardly varies, as
    the rim of an image, should hardly count. Numbers in units of their own, those of a table or of
    a matrix with very different scales, are standardised first, and of those with a long tail
    normal scores of the ranks are taken. One network of an estimator has a scale for each column,
    as scikit-learn's users expect.

    Parameters
    ----------
    plan : FeaturePlan or None
        How the columns of a table are read; None for a matrix or images.
    shape : tuple of int
        Of a row of a matrix or of images.
    mean : numpy.ndarray
        Of each number.
    scale : float or numpy.ndarray
        What all numbers are divided by, or each.
    tails : dict of int to numpy.ndarray
        Of each number with a long tail: values, and their normal scores; (2, knots).
    """

    plan: FeaturePlan | None
    shape: tuple[int, ...]
    mean: np.ndarray
    scale: float | np.ndarray
    tails: Mapping[int, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def of(
        X: Any, *, numbers: int | None = None, each: bool = False
    ) -> tuple[NetworkColumns, np.ndarray]:
        """The columns of a table, matrix or images, and the matrix of these rows.

        Parameters
        ----------
        X : table, matrix or images
            Rows; numbers that are not finite are missing.
        numbers : int, optional
            How many columns of a matrix are numbers, where bucket numbers follow.
        each : bool
            Whether each number has a scale of its own.
        """
        plan, shape = None, ()
        if isinstance(X, np.ndarray) or sparse.issparse(X):
            shape = tuple(X.shape[1:])
        else:
            plan = plan_features(X)
            numbers = plan.numbers
        columns = NetworkColumns(plan, shape, np.zeros(0), 1.0)
        raw = columns._raw(X)
        mean, scale, spread = _middle(raw[:, :numbers])
        if each:
            scale = _not_zero(spread)
        elif plan is not None or (len(shape) == 1 and _in_own_units(spread)):
            columns = replace(columns, tails=_tails(raw[:, :numbers]))
            raw = columns._ranked(raw)
            mean, scale, spread = _middle(raw[:, :numbers])
            if plan is None:  # a plan has standardised its numbers already
                scale = _units(raw, spread)
        columns = replace(columns, mean=mean, scale=scale)
        return columns, columns.centred(raw)

    def form(self, hidden: tuple[int, ...], outputs: int) -> NetworkForm:
        """The form of a network for these columns.

        Parameters
        ----------
        hidden, outputs : tuple of int, int
            See `NetworkForm`.
        """
        if self.plan is not None:
            plan = self.plan
            return NetworkForm(hidden, outputs, plan.numbers, plan.buckets, plan.dimensions)
        return NetworkForm(hidden, outputs, int(np.prod(self.shape)))

    def matrix(self, X: Any) -> np.ndarray:
        """The matrix of rows, as those of training became it."""
        raw = self._raw(X)
        if self.plan is None and tuple(np.shape(X)[1:]) != self.shape:
            raise broken(
                f"Rows must have the shape {self.shape} of those learned from",
                f"{tuple(np.shape(X)[1:])} given",
                "Give the same columns.",
            )
        return self.centred(self._ranked(raw))

    def _raw(self, X: Any) -> np.ndarray:
        if self.plan is not None:
            return self.plan.apply(X)
        if sparse.issparse(X):
            X = _dense(X)
        X = np.asarray(X)
        if X.dtype != np.float32:
            X = X.astype(np.float64)
        return X.reshape(len(X), -1)

    def _ranked(self, raw: np.ndarray) -> np.ndarray:
        """Numbers with long tails as normal scores; beyond the range of training as at its end."""
        if self.tails:
            raw = raw.copy()
        for column, (value, score) in self.tails.items():
            raw[:, column] = np.interp(raw[:, column], value, score)
        return raw

    def centred(self, raw: Any) -> Any:
        """Numbers around 0, where a missing one is taken to be; bucket numbers as they are.

        Parameters
        ----------
        raw : array
            A matrix of NumPy, or of JAX where a program is made of it.
        """
        count, xp = len(self.mean), namespace(raw)
        numbers = (raw[:, :count] - like(raw, self.mean)) / like(raw, self.scale)
        numbers = xp.where(xp.isfinite(numbers), numbers, 0)
        return xp.concat([numbers, raw[:, count:]], axis=1)


def _middle(numbers: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """The mean of each column, the scale of all, and the spread of each, 0 where it is constant;
    missing numbers are left out."""
    known = np.isfinite(numbers)
    count, size = np.maximum(known.sum(axis=0), 1), np.abs(np.where(known, numbers, 0))
    mean = np.where(known, numbers, 0).sum(axis=0, dtype=float) / count
    away = np.where(known, numbers - mean.astype(numbers.dtype), 0)
    # squares in single precision overflow, and those of a column beside a far larger one vanish
    largest = _not_zero(np.abs(away).max(axis=0, initial=0).astype(float))
    away /= largest.astype(away.dtype)
    spread = largest * np.sqrt((away**2).sum(axis=0, dtype=float) / count)
    most = float(spread.max(initial=0)) or 1.0
    squares = float((count * (spread / most) ** 2).sum())
    common = most * float(np.sqrt(squares / max(known.sum(), 1))) or 1.0
    # a constant column has the rounding errors of its mean, which must not become features
    return mean, common, np.where(spread > 1e-12 * size.max(axis=0, initial=0), spread, 0.0)


def _not_zero(spread: np.ndarray) -> np.ndarray:
    """The spread to divide by: that of a constant column is 1."""
    return np.where(spread > 0, spread, 1.0)


def _in_own_units(spread: np.ndarray) -> bool:
    """Whether columns of these spreads can hardly be measured in one unit."""
    varying = spread[spread > 0]
    return len(varying) > 1 and varying.max() > OTHER_UNITS * np.median(varying)


def _units(numbers: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The scale of each column of a matrix: its spread, but for zeros and ones, which stay as they
    are, as in a plan, so that a rare one is no large number; times one scale of all."""
    flags = ((numbers == 0) | (numbers == 1) | ~np.isfinite(numbers)).all(axis=0)
    units = np.where(flags, 1.0, _not_zero(spread))
    return units * np.sqrt(np.mean((spread / units) ** 2))


def _tails(numbers: np.ndarray) -> dict[int, np.ndarray]:
    """Of each column with a long tail values and their normal scores, as the additive model has
    them: else a few rows would decide what the network does with all others.

    >>> price = np.exp(2 * np.random.default_rng(0).normal(size=1000))
    >>> list(_tails(np.column_stack([price, np.log(price)])))  # the first column
    [0]
    """
    tails = {}
    for column, x in enumerate(numbers.T):
        known = x[np.isfinite(x)]
        if len(known) and spread_and_tail(known)[1]:
            tail = _normal_scores(np.sort(known))
            if tail.shape[1] >= FEWEST_KNOTS:
                tails[column] = tail
    return tails


def _normal_scores(ordered: np.ndarray) -> np.ndarray:
    """Values of a number, from its least to its largest, and the normal scores of their ranks."""
    places = special.ndtr(np.linspace(-3, 3, KNOTS)) * (len(ordered) - 1)
    value = np.unique(ordered[[0, *places.round().astype(int), -1]])
    below, up_to = (np.searchsorted(ordered, value, side) for side in ("left", "right"))
    return np.stack([value, special.ndtri((below + up_to) / (2 * len(ordered)))])


def _dense(X: Any) -> np.ndarray:
    if np.prod(X.shape, dtype=float) > MOST_ENTRIES:
        raise broken(
            f"A sparse matrix for a network must have at most {MOST_ENTRIES:,} entries",
            f"{X.shape[0]:,} x {X.shape[1]:,} given",
            "Use the additive model or trees, or give the table itself.",
        )
    return X.toarray()


@dataclass(frozen=True, eq=False, repr=False)
class NetworkModel:
    """Networks that learned from bags: a weighted mean of their scores, and a level.

    Parameters
    ----------
    kind : {"binary", "total", "histogram"}
        What the scores mean.
    columns : NetworkColumns
        How rows are read.
    form : NetworkForm
        Of each network.
    leaves : list of numpy.ndarray
        Parameters, each with a leading axis of networks.
    weights : numpy.ndarray
        Of each network.
    level : numpy.ndarray
        Added to the mean: a number, or one for each class.
    """

    kind: Kind
    columns: NetworkColumns
    form: NetworkForm
    leaves: list[np.ndarray]
    weights: np.ndarray
    level: np.ndarray

    def __repr__(self) -> str:
        return f"NetworkModel({len(self.weights)} networks of {self.form.hidden}; {self.kind})"

    def scores(self, X: Any) -> np.ndarray:
        """Logits, log rates or class scores of rows, in double precision, so that they do not
        depend on which rows come together."""
        matrix = self.columns.matrix(X)
        shape = (len(matrix), *self.level.shape)
        if not len(self.weights) or not len(matrix):
            return np.broadcast_to(self.level, shape).copy()
        return self._mean(matrix) + self.level

    @classmethod
    def of_one(
        cls, kind: Kind, columns: NetworkColumns, form: NetworkForm, network: Any
    ) -> NetworkModel:
        """One network as it is, at its own level.

        Parameters
        ----------
        kind, columns, form : str, NetworkColumns, NetworkForm
            See `NetworkModel`.
        network : pytree
            As `NetworkForm.make` made it and training left it.
        """
        leaves = [np.asarray(leaf)[None] for leaf in jax.tree.leaves(network)]
        level = np.zeros(form.outputs if kind == "histogram" else ())
        return cls(kind, columns, form, leaves, np.ones(1), level)

    def network(self) -> Any:
        """The only network, to go on with or to make a program of."""
        own = [jnp.asarray(leaf[0]) for leaf in self.leaves]
        return jax.tree.unflatten(_structure(self.form), own)

    def _mean(self, matrix: np.ndarray) -> np.ndarray:
        parts = []
        # a power of 2, or each number of rows had its own program
        padded_rows = min(1 << max(len(matrix) - 1, 0).bit_length(), BLOCK)
        with jax.enable_x64(True):
            leaves = [np.asarray(leaf, np.float64) for leaf in self.leaves]
            for start in range(0, len(matrix), BLOCK):
                X = np.asarray(matrix[start : start + BLOCK], np.float64)
                padded = np.resize(X, (padded_rows, X.shape[1]))
                score = np.asarray(_scores(self.form, leaves, padded))[:, : len(X)]
                parts.append(np.tensordot(self.weights, score, axes=1))
        return np.concatenate(parts)

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The model as arrays and settings that JSON can hold."""
        arrays = {f"leaf_{i}": leaf for i, leaf in enumerate(self.leaves)}
        arrays |= {"weights": self.weights, "level": self.level, "mean": self.columns.mean}
        arrays |= {f"tail_{column}": tail for column, tail in self.columns.tails.items()}
        plan = self.columns.plan
        settings = {
            "kind": self.kind,
            "form": asdict(self.form),
            "shape": list(self.columns.shape),
            "scale": np.asarray(self.columns.scale).tolist(),
            "plan": plan and plan.to_json(),
        }
        return arrays, settings

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> NetworkModel:
        """The model that `arrays` described; see `Model.restore`."""
        given = {name: v for name, v in settings["form"].items() if name != "image"}  # older files
        several = ("hidden", "buckets", "dimensions")
        form = NetworkForm(**{**given, **{name: tuple(given[name]) for name in several}})
        text, scale = settings["plan"], np.asarray(settings["scale"], float)
        mean = np.asarray(arrays["mean"], float)
        if scale.shape not in ((), mean.shape):
            raise Misfit("a network has other scales than columns")
        plan = text and FeaturePlan.from_json(text)
        tails = _restored_tails(arrays, len(mean))
        columns = NetworkColumns(plan, tuple(settings["shape"]), mean, scale, tails)
        count = sum(name.startswith("leaf_") for name in arrays)
        leaves = [np.asarray(arrays[f"leaf_{i}"]) for i in range(count)]
        level = np.asarray(arrays["level"], float)
        _check_leaves(form, leaves, len(arrays["weights"]))
        return cls(settings["kind"], columns, form, leaves, np.asarray(arrays["weights"]), level)


def _restored_tails(arrays: Mapping[str, np.ndarray], columns: int) -> dict[int, np.ndarray]:
    """The numbers with long tails of a file, by column."""
    tails = {}
    for name in arrays:
        if name.startswith("tail_"):
            tail = np.asarray(arrays[name], float)
            column = int(name.removeprefix("tail_"))
            fits = tail.ndim == 2 and len(tail) == 2 and tail.size and 0 <= column < columns
            if not fits or (np.diff(tail) < 0).any():
                raise Misfit("a number with a long tail has no scores of its values")
            tails[column] = tail
    return tails


@cache
def _structure(form: NetworkForm) -> Any:
    """Where the parameters of a network of this form stand in it."""
    return jax.tree.structure(jax.eval_shape(partial(form.make, 0, 0.0)))


@partial(jax.jit, static_argnums=0)
def _scores(form: NetworkForm, leaves: list[Any], X: Any) -> Any:
    """Scores of rows by each of several networks of one form."""
    structure = _structure(form)

    def one(own: list[Any]) -> Any:
        return jax.tree.unflatten(structure, own)(X)

    return jax.vmap(one)(leaves)


def _check_leaves(form: NetworkForm, leaves: list[np.ndarray], networks: int) -> None:
    """Refuse parameters of other shapes than the form has, before a network of it is built: a form
    is a few numbers and may ask for any amount of memory."""
    if max(len(form.hidden), len(form.buckets)) > len(leaves):
        raise Misfit("a network has more layers than arrays")
    made = jax.tree.leaves(jax.eval_shape(partial(form.make, 0, 0.0)))
    shapes = [(networks, *leaf.shape) for leaf in made if hasattr(leaf, "shape")]
    if networks and shapes != [leaf.shape for leaf in leaves]:
        raise Misfit("the arrays of a network have other shapes than its form")
