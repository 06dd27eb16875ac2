"""Counts and names in, sentences out: what came, what was left out, what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class TablesReport(NamedTuple):
    """What came in, what was left out and why, and what is refused; `print` shows it."""

    events: int
    reports: int
    bags: int
    observed: int
    instances: int
    left_out: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def usable(self) -> bool:
        """Whether nothing is refused."""
        return not self.refused

    def __str__(self) -> str:
        came = f"{count(self.events, 'event')} and {count(self.reports, 'report')} came."
        kept = (
            f"{count(self.bags, 'bag')} with {count(self.instances, 'event')} "
            f"{'is' if self.bags == 1 else 'are'} used, {self.observed} with a report."
        )
        lines = [
            came,
            kept,
            *(f"- {line}" for line in self.left_out),
            *(f"refused: {line}" for line in self.refused),
        ]
        return "\n".join(lines)


def count(n: int, thing: str) -> str:
    """A number with its noun.

    >>> count(1, "bag"), count(12000, "event")
    ('1 bag', '12,000 events')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def some(names: Sequence[Any], total: int | None = None) -> str:
    """The first names, and how many more there are.

    >>> some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    total = len(names) if total is None else total
    return ", ".join(map(str, names[:3])) + (f" and {total - 3:,} more" if total > 3 else "")
