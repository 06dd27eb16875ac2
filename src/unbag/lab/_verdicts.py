"""When runs decide a claim, batch and online alike.

A comparison decides when both methods were repeated at least five times, the best of each lies
inside the grid of rates and epochs, their mean paired difference is beyond two standard errors, and
the better one beats the trivial predictor by as much. A claim that a method is the best is
supported where it is decided for it at every bag size, and not supported where it is decided
against it at some and for it at none; otherwise it is undecided, and the reason stands beside it.
Runs with another network than the paper's, with fewer repetitions or with fewer rows are not
comparable with it, whatever they show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from unbag.lab._tables import as_markdown

LARGE = (256, 512, 1024)  # bag sizes; the paper gives no borders
SMALL = (2, 4, 8, 16, 32)
REPETITIONS, ERRORS = 5, 2.0
SUPPORTED, NOT_SUPPORTED, UNDECIDED = "supported", "not supported", "undecided"
NOT_RUN, NOT_COMPARABLE = "not yet run", "not comparable"


class ClaimVerdict(NamedTuple):
    """What the runs say of one claim."""

    whose: str
    claim: str
    where: str
    verdict: str
    numbers: str


Judgement = tuple[str, str]
"""A verdict and its numbers."""


class Duel(NamedTuple):
    """One method against another at a bag size.

    Parameters
    ----------
    size : int
        Of the bags.
    lead : float
        By how much the first is better, with its standard error.
    error : float
        Of the lead.
    repetitions : int
        That both have.
    edge : str
        Whose best lies at an end of the rates or in the last epoch; empty when nobody's.
    useful : bool
        Whether the better one beats the trivial predictor beyond two standard errors.
    """

    size: int
    lead: float
    error: float
    repetitions: int
    edge: str = ""
    useful: bool = True

    @property
    def doubt(self) -> str:
        """Why it decides nothing; empty when it does."""
        if self.repetitions < REPETITIONS:
            return f"{self.repetitions} repetitions"
        if self.edge:
            return EDGE
        if not abs(self.lead) > ERRORS * self.error:
            return "no difference beyond two standard errors"
        if not self.useful:
            return "nobody beats the trivial predictor"
        return ""

    @property
    def winner(self) -> int:
        """1 for the first, -1 for the other, 0 when nothing is decided."""
        if self.doubt:
            return 0
        return 1 if self.lead > 0 else -1


def is_best(duels: Sequence[Duel], sizes: Sequence[int]) -> Judgement:
    """Whether the first method is better than every other at each of the sizes."""
    return _judged(duels, sizes, min)


def is_beaten(duels: Sequence[Duel], sizes: Sequence[int]) -> Judgement:
    """Whether at each of the sizes some other method is better than the first."""
    turned = [duel._replace(lead=-duel.lead) for duel in duels]
    return _judged(turned, sizes, max)


def _judged(duels: Sequence[Duel], sizes: Sequence[int], of_size: Callable[..., int]) -> Judgement:
    if not duels:
        return NOT_RUN, ""
    score = {k: of_size([d.winner for d in duels if d.size == k], default=0) for k in sizes}
    parts = [_at(word, [k for k in sizes if score[k] == value]) for word, value in WORDS.items()]
    doubts = _doubts(duels, [k for k in sizes if score[k] == 0])
    reason = "; ".join(part for part in (*parts, *doubts) if part)
    if set(score.values()) == {1}:
        return SUPPORTED, reason
    if min(score.values()) < 0 and max(score.values()) < 1:
        return NOT_SUPPORTED, reason
    return UNDECIDED, reason


EDGE = "a best at an end of the rates or in the last epoch"
WORDS = {"for it": 1, "against it": -1}


def _at(word: str, sizes: Sequence[int]) -> str:
    return f"{word} at {', '.join(map(str, sizes))}" * bool(sizes)


def _doubts(duels: Sequence[Duel], sizes: Sequence[int]) -> list[str]:
    """Why sizes decide nothing, each reason once."""
    reasons: dict[str, list[str]] = {}
    for k in sizes:
        doubts = [(d.doubt, d.edge) for d in duels if d.size == k and d.doubt]
        reason, edge = (*doubts, ("not run", ""))[0]
        whose = f" ({edge})" * (reason == EDGE)
        reasons.setdefault(reason, []).append(f"{k}{whose}")
    return [f"undecided at {', '.join(there)}: {reason}" for reason, there in reasons.items()]


def verdict_table(verdicts: Sequence[ClaimVerdict], *, says: str = "the paper says") -> str:
    """Verdicts as a numbered table.

    Parameters
    ----------
    verdicts : sequence of ClaimVerdict
        One for each row.
    says : str
        What the column of the claims is called.
    """
    rows = [[str(i), *verdict[1:]] for i, verdict in enumerate(verdicts, 1)]
    return as_markdown(["", says, "where", "verdict", "we see"], rows)
