"""Bags that are not random: within which columns they may be, and how they judge a model if not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from unbag._rules import Refused
from unbag.bags import Bags
from unbag.learners._combine import offset_of, trivial_level
from unbag.learners._folds import look_random
from unbag.learners._trees import TreeColumns
from unbag.metrics import Evaluation, ScoredBags, evaluate_counts, evaluate_scored
from unbag.tables import JoinedBags

NOT_RANDOM = "the bags are not random"
BAGS_OF_STRATUM = 4


def as_read(bags: Bags) -> Bags:
    """Joined bags with the columns as they were in place of the matrix made from them."""
    return bags.as_read() if isinstance(bags, JoinedBags) else bags


def is_matrix(X: Any) -> bool:
    """Whether rows come as a matrix or images, not as a table."""
    return isinstance(X, np.ndarray) or sparse.issparse(X)


def within_constants(bags: Bags) -> tuple[Bags, list[str]]:
    """Bags with strata by the categories that no bag mixes, where nobody gave strata.

    Bags of one campaign each may be random within campaigns and never are without: a bag must be
    compared with bags of its own campaign only. Where there are fewer than `BAGS_OF_STRATUM` bags
    for each stratum that would be made, nothing is changed.
    """
    if bags.stratum is not None or is_matrix(bags.X) or bags.size.mean() < 2:
        return bags, []
    constant: dict[str, np.ndarray] = {}
    for name, code in TreeColumns.of(bags.X).codes(bags.X):
        first = np.empty(len(bags), code.dtype)
        first[bags.bag] = code
        if np.array_equal(code, first[bags.bag]) and np.ptp(first) > 0:
            constant[name] = first
    if not constant:
        return bags, []
    together = np.stack(list(constant.values()), axis=1)
    stratum = np.unique(together, axis=0, return_inverse=True)[1].ravel()
    if len(bags) < BAGS_OF_STRATUM * (stratum.max() + 1):
        return bags, []
    words = ", ".join(constant)
    note = f"No bag mixes {words}: bags are compared with those of the same {words} only."
    return replace(bags, stratum=stratum), [note]


def evaluate_further(scored: ScoredBags, *, by_counts: bool = False) -> Evaluation:
    """What bags that had no part in learning say of a model, judged as those of training are: by
    losses where bags are random, maybe within the columns that no bag mixes, else by the likelihood
    of their reports.

    Parameters
    ----------
    scored : ScoredBags
        Bags that the model did not learn from, with its scores.
    by_counts : bool
        Whether the bags of training were judged by their likelihood: then these are too.
    """
    why = NOT_RANDOM
    within, notes = within_constants(as_read(scored.bags))
    known = np.flatnonzero(within.observed)
    bags, score = within.take(known), scored.score[within.rows_of(known)]
    if not by_counts and look_random(score[None], bags, np.zeros(len(bags), int)):
        try:
            evaluation = evaluate_scored(scored._replace(bags=within))
            return replace(evaluation, notes=(*notes, *evaluation.notes))
        except Refused as error:
            why = reason(error)
    trivial = np.broadcast_to(trivial_level(bags) + offset_of(bags), score.shape)
    return evaluate_counts(score, bags, trivial=trivial, why=why)


def reason(error: Refused) -> str:
    """Why bags say nothing of a loss, without a remedy in words of Python."""
    first = error.refusals[0]
    return f"{first.rule}: {first.offender}"
