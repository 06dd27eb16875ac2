"""Which bags a model learned from, so that nobody evaluates it on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, stable_hash, take_rows

FEW = 20  # so many bags must have a name in common before their agreement is more than chance


def check_apart(model: Any, held_out: Bags, trained_on: Bags | None) -> None:
    """Refuse held-out bags that the model has learned from.

    The same bags are those of the same names, if sizes and reports agree, or agree so often that
    some reports were restated; without names, those that hold the same rows of the table that the
    bags were made from, with the same features. Rows without features are not known again.

    Parameters
    ----------
    model : object
        A model, which may remember the bags it learned from (`bags_`) or their marks (`learned_`).
    held_out : Bags
        The bags to evaluate it on.
    trained_on : Bags or None
        The bags it learned from, if the user says so.
    """
    model, remembered = learner(model), trained_on
    if remembered is None:
        remembered = getattr(model, "bags_", None)
    if remembered is None:
        _refuse_overlap(_marked(held_out, getattr(model, "learned_", None)), "bag")
    elif remembered.names is not None and held_out.names is not None:
        _refuse_overlap(_marked(held_out, marks(remembered.reported())), "bag")
    elif trained_on is not None:
        _refuse_overlap(_shared_rows(trained_on, held_out), "row")


def learner(model: Any) -> Any:
    """The part of a pipeline or of a search that learned from bags; another model is its own."""
    if hasattr(model, "best_estimator_"):
        return learner(model.best_estimator_)
    if hasattr(model, "steps"):
        return learner(model.steps[-1][1])
    return model


def _refuse_overlap(shared: list[Any], thing: str) -> None:
    if shared:
        raise broken(
            "Held-out bags must not overlap the bags that the model learned from",
            f"{thing} {shared[0]} is in both ({len(shared)} such)",
            "Split by bag before training, with bags.split(0.8, seed=0).",
        )


def marks(bags: Bags) -> np.ndarray:
    """Numbers by which a model file knows a bag again: hashes of its name; of name, size and
    report; of name and size.

    >>> marks(Bags(np.array([0, 0, 1]), np.array([0.5, 1.0]), names=np.array(["mon", "tue"]))).shape
    (2, 3)
    """
    names = _names(bags)
    hashes = [
        stable_hash(names, salt="name"),
        _mark(names, bags.size, bags.report),
        _mark(names, bags.size),
    ]
    return np.stack(hashes, axis=1)


def join_marks(*every: np.ndarray | None) -> np.ndarray | None:
    """All these marks, each once."""
    known = [one for one in every if one is not None]
    if not known:
        return None
    return np.unique(np.concatenate(known), axis=0)


def _names(bags: Bags) -> np.ndarray:
    if bags.names is None:
        return np.arange(len(bags))
    return np.asarray(bags.names)


def _mark(names: np.ndarray, size: np.ndarray, report: np.ndarray | None = None) -> np.ndarray:
    """A hash of each bag's name and size, and of its report if that is given."""
    if report is None:
        return stable_hash(names, size.tolist(), salt="size")
    # in single precision: reports that were rounded on their way are the same reports
    rounded = report.astype(np.float32).tolist()
    content = [f"{k}|{a}" for k, a in zip(size.tolist(), rounded, strict=True)]
    return stable_hash(names, content, salt="bag")


class KnownBags(NamedTuple):
    """Which bags a model learned from.

    Parameters
    ----------
    bag : array of bool
        The bags that it learned from.
    restated : array of bool
        Those of them that now come with another size or report.
    """

    bag: np.ndarray
    restated: np.ndarray


def known_bags(bags: Bags, learned: np.ndarray | None) -> KnownBags:
    """The bags that a model learned from, by the marks of its file.

    Where the table is the one that it learned from, all bags of a name that it knows, because a
    report may be restated or not there yet; else those of the same name, size and report.

    Parameters
    ----------
    bags : Bags
        The bags of a table.
    learned : array or None
        The marks of a model file.
    """
    nothing = np.zeros(len(bags), bool)
    if learned is None:
        return KnownBags(nothing, nothing)
    own = marks(bags)
    named, same = (np.isin(own[:, i], learned[:, i]) for i in (0, 1))
    if not _same_table(bags, named & bags.observed, learned):
        return KnownBags(named & same, nothing)
    return KnownBags(named, named & ~same & bags.observed)


def _same_table(bags: Bags, shared: np.ndarray, learned: np.ndarray) -> bool:
    """Whether bags whose names are known are of the table learned from; two tables may merely be
    numbered alike."""
    names, size, report = _names(bags)[shared], bags.size[shared], bags.report[shared]

    def whole(shift: int) -> np.ndarray:
        moved = np.roll(size, -shift), np.roll(report, -shift, axis=0)
        return np.isin(_mark(names, *moved), learned[:, 1])

    def sizes(shift: int) -> np.ndarray:
        return np.isin(_mark(names, np.roll(size, -shift)), learned[:, 2])

    return bool(shared.any()) and _agree(whole, sizes)


def _agree(*ways: Callable[[int], np.ndarray]) -> bool:
    """Whether all shared names agree in size and report; or half of them, or nine of ten in size,
    far beyond chance.

    Parameters
    ----------
    *ways : function from int to array of bool
        Which bags agree in size and report, and which in size, after contents were moved on by
        some places. Moved contents agree by chance only, as do those of bags of one size in two
        tables that are numbered alike.
    """
    if ways[0](0).all():
        return True
    for agree, least in zip(ways, (0.5, 0.9), strict=True):
        there, chance = agree(0), np.mean([agree(shift) for shift in (1, 2, 3)])
        if len(there) >= FEW and there.mean() >= least and there.mean() - chance > 0.25:
            return True
    return False


def _marked(bags: Bags, learned: np.ndarray | None) -> list[Any]:
    """Names of the bags that a model learned from, if their table is the one that it learned from;
    else they are merely numbered alike."""
    if learned is None or bags.names is None:
        return []
    named = np.isin(stable_hash(bags.names, salt="name"), learned[:, 0]) & bags.observed
    if not _same_table(bags, named, learned):
        return []
    return np.asarray(bags.names)[named].tolist()


def _shared_rows(one: Bags, other: Bags) -> list[Any]:
    if one.rows is None or other.rows is None or one.X is None or other.X is None:
        return []
    row, i, j = np.intersect1d(one.rows, other.rows, return_indices=True)
    return row[_same_rows(take_rows(one.X, i), take_rows(other.X, j))].tolist()


def _same_rows(one: Any, other: Any) -> np.ndarray:
    """Which rows have the same features, a gap being like a gap; none do where features cannot be
    compared."""
    none, sparse = np.zeros(one.shape[0], bool), [hasattr(X, "tocsr") for X in (one, other)]
    if tuple(one.shape) != tuple(other.shape) or any(sparse) != all(sparse):
        return none
    if all(sparse):
        return np.diff((one.tocsr() != other.tocsr()).tocsr().indptr) == 0
    a, b = np.asarray(one), np.asarray(other)
    same = (a == b) | ((a != a) & (b != b))
    if np.shape(same) != a.shape:
        return none
    return np.asarray(same.all(axis=tuple(range(1, same.ndim))))
