"""`unbag plan --marginals`: which table of totals to ask for next."""

from __future__ import annotations

from pathlib import Path

from unbag._rules import broken
from unbag.learners import RankedTable, rank_tables


def ranked(
    events: Path, tables: list[str], given: list[str], rate: float, noise: float
) -> list[RankedTable]:
    """Candidate tables by what they would tell, the best first.

    Parameters
    ----------
    events : Path
        One row for each event.
    tables, given : list of str
        Candidates, and tables that are there already: keys with commas between them.
    rate : float
        The expected share of label 1.
    noise : float
        Variance of the noise on each total.
    """
    if not tables:
        raise broken(
            "A plan of marginal tables must have candidates",
            "none came",
            "Name the keys of each with {table}, with commas between them.",
        )
    candidates = [keys_of(table) for table in tables]
    known = [keys_of(table) for table in given]
    return rank_tables(events, candidates, rate=rate, noise=noise, given=known, given_noise=noise)


def keys_of(table: str) -> tuple[str, ...]:
    """The keys of a table.

    >>> keys_of("campaign, day")
    ('campaign', 'day')
    """
    return tuple(key.strip() for key in table.split(","))


def in_words(ranking: list[RankedTable]) -> str:
    """The ranking as a table to read."""
    lines = [
        "Tables by how much they would narrow the predictions (no labels needed)",
        f"{'variance less':>13} {'numbers':>9}  table",
    ]
    lines += [f"{one.reduction:>13.1%} {one.cells:>9,}  {one.name}" for one in ranking]
    return "\n".join(lines)
