"""The words in which claims are judged, batch and online alike, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LARGE = (256, 512, 1024)  # bag sizes; the paper gives no borders
SUPPORTED, NOT_SUPPORTED = "supported", "not supported"
NOT_RUN, NOT_COMPARABLE = "not yet run", "not comparable"
IN_PART, ONCE, UNDECIDED = "supported as far as run", "run once only", "undecided"


class Verdict(NamedTuple):
    """What the runs say of one claim in one experiment."""

    whose: str
    claim: str
    where: str
    verdict: str
    numbers: str


Judgement = tuple[str, str]
"""A verdict and its numbers."""


def as_markdown(verdicts: Sequence[Verdict]) -> str:
    """The claims as a table."""
    lines = ["| whose | claim | where | verdict | numbers |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {' | '.join(verdict)} |" for verdict in verdicts), ""])
