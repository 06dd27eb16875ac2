"""The settings of a stream, and what is refused or set aside of what comes into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unbag._rules import broken, one_of
from unbag.methods import METHODS, Method

Name = int | str

# standard deviations of its noise that a report may lie outside [0, 1]: beyond them it is a mistake
FAR = 10


@dataclass(frozen=True)
class StreamSettings:
    """What decides how a stream is learned; a stream is resumed with the settings it was begun
    with.

    Parameters
    ----------
    method : str
        As in `unbag.train`.
    loss : str
        As in `unbag.train`; "" is the method's usual one.
    rate : float
        Of Adam.
    size : int
        Of the bags that labelled events are shuffled into.
    chunk : int
        Events learned together when reports come late.
    batch : int
        Events in a step.
    prior : {"chunk", "first"} or float
        "chunk" estimates it for each chunk, "first" keeps that of the first chunk, a number is the
        prior itself.
    seed : int
        Of bags and their order.
    window : int
        Chunks in the moving means and the drift.
    restated : {"replace", "refuse"}
        What is done with a report that changes before its bag was learned.
    waiting : int
        The most events, and the most reports without events, that wait.
    patience : int
        Events that arrive until a report without events is given up.
    remembered : int
        Bags that are remembered after they were learned or given up.
    source : str
        What the events come from, in your words; a stream is not resumed from another one.
    """

    method: Method = "anchored"
    loss: str = ""
    rate: float = 1e-3
    size: int = 512
    chunk: int = 2**16
    batch: int = 4096
    prior: Literal["chunk", "first"] | float = "chunk"
    seed: int = 0
    window: int = 8
    restated: Literal["replace", "refuse"] = "replace"
    waiting: int = 2**20
    patience: int = 2**20
    remembered: int = 2**16
    source: str = ""

    def __post_init__(self) -> None:
        one_of("A method", self.method, METHODS)
        for name in ("size", "chunk", "batch", "window", "waiting", "patience", "remembered"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                rule = f"A stream's {name} must be a whole number of at least 1"
                raise broken(rule, f"{value!r} given", "Change it.")
        if not self.rate > 0:
            raise broken("A learning rate must be positive", f"{self.rate} given", "Try 0.001.")
        number = isinstance(self.prior, float) and 0 < self.prior < 1
        if self.prior not in ("chunk", "first") and not number:
            rule = "A stream's prior must be 'chunk', 'first' or a number between 0 and 1"
            raise broken(rule, f"{self.prior!r} given", "Use 'chunk' when the rate moves.")
        one_of("What is done with restated reports", self.restated, ("replace", "refuse"))


def features(X: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """Features as an array, refused when they are no numbers or not of the shape that they had
    before."""
    X = np.asarray(X)
    if len(X) and X.dtype.kind in "OUSMm":
        rule = "Features must be numbers"
        raise broken(rule, f"X of type {X.dtype} given", "Turn words into whole numbers first.")
    if len(X) and shape is not None and X.shape[1:] != shape:
        rule = "The features of a stream must keep their shape"
        remedy = "Read other columns as another stream, or repair the export."
        raise broken(rule, f"{X.shape[1:]} given after {shape}", remedy)
    return X


def names(bag: Any) -> list[Name]:
    """Ids of bags, refused when a checkpoint could not hold them."""
    ids = np.asarray(bag)
    one_each(ids, "bag ids")
    listed = ids.tolist()
    other = [name for name in listed if ids.dtype.kind in "mM" or not isinstance(name, int | str)]
    if other:
        rule = "A bag id must be a whole number or a string"
        raise broken(rule, f"{other[0]!r} given", "Turn all ids into strings, with str().")
    return listed


def one_each(values: np.ndarray, thing: str) -> None:
    """Refuse a single value where a list is meant, and lists of lists."""
    if values.ndim != 1:
        rule = f"The {thing} of a stream must be a list"
        raise broken(rule, f"an array of shape {values.shape} given", "Give a list, also of one.")


def sizes(size: Any) -> list[int | None]:
    """Sizes of bags as whole numbers; None where a report closes its bag as it stands."""
    given = np.asarray(size, object)
    one_each(given, "sizes")
    for k in given.tolist():
        if k is not None and not (isinstance(k, int | float | np.number) and k == np.floor(k)):
            rule = "A size must be a whole number, or None where it is not known"
            raise broken(rule, f"{k!r} given", "Say how many events the report is about.")
    return [None if k is None else int(k) for k in given.tolist()]


def finite(*columns: np.ndarray) -> np.ndarray:
    """Which events have nothing but finite numbers in all of these."""
    known = [np.isfinite(column).all(axis=tuple(range(1, column.ndim))) for column in columns]
    return np.logical_and.reduce(known)


def bad_report(
    value: float, size: int | None, noise: float, *, method: Method, events: int
) -> str | None:
    """Why no method may learn from a report, or None.

    Parameters
    ----------
    value : float
        A proportion.
    size : int, optional
        Events that it is about.
    noise : float
        Variance of the noise on its count.
    method : str
        That will learn from it.
    events : int
        Of its bag that are there.
    """
    sound = np.isfinite(value) and np.isfinite(noise) and noise >= 0
    if not sound or (size is not None and size < 1):
        return "a report must be finite, its noise not negative, its size positive"
    if method == "labels" and size is not None and size > 1:
        return f"a label is a report on one event, and this one is on {size}; use a method for bags"
    outside = noise > 0 and METHODS[method].takes_noise
    if not outside and not 0 <= value <= 1:
        return f"a proportion must lie in [0, 1] when it has no noise or is learned by {method}"
    # the noise is on the count, the report is a proportion
    far = FAR * np.sqrt(noise) / (size or events or 1)
    if not -far <= value <= 1 + far:
        return (
            f"a proportion must lie within {FAR} standard deviations of its noise from [0, 1], "
            f"here in [{-far:.3g}, {1 + far:.3g}]; if it is a count, divide the count by the size"
        )
    return None


def ticks(time: Any) -> np.ndarray:
    """Times as numbers, NaN where there is none."""
    given = np.asarray(time)
    if given.dtype.kind == "M":
        given = given.astype("datetime64[us]").astype(np.int64)
    return given.astype(float)
