"""What the user says of the columns in, one checked object out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa

from unbag._rules import broken
from unbag.bags import Kind
from unbag.tables._sources import Table
from unbag.tables._values import is_date, is_text

Sizes = Literal["refuse", "leave_out"]


@dataclass(frozen=True)
class Asked:
    """Which column is what; see `join`."""

    on: str
    total: str | None = None
    counts: Sequence[str] | None = None
    proportion: str | None = None
    kind: Kind | None = None
    size: str | None = None
    noise: str | float | None = None
    status: str | None = None
    as_of: str | None = None
    stratum: str | None = None
    time: str | None = None
    id: str | None = None
    cut: Any = None
    wrong_sizes: Sizes = "refuse"

    def __post_init__(self) -> None:
        given = [
            name for name in ("total", "counts", "proportion") if getattr(self, name) is not None
        ]
        if len(given) != 1:
            raise broken(
                "Reports must have one of total=, counts= and proportion=",
                f"{' and '.join(given) or 'none'} came",
                "Name the column of totals, or those of class counts.",
            )
        if self.counts is not None and (isinstance(self.counts, str) or len(self.counts) < 2):
            raise broken(
                "Class counts must be two columns or more",
                f"{self.counts!r} came",
                "Use {total} for one.",
            )
        if self.cut is not None and self.as_of is None and self.time is None:
            raise broken(
                "A cut must have times to compare with",
                "neither as_of= nor time= came",
                "Name one.",
            )
        if self.wrong_sizes not in get_args(Sizes):
            raise broken(
                f"wrong_sizes must be one of {', '.join(get_args(Sizes))}",
                f"{self.wrong_sizes!r} came",
                "Choose one.",
            )
        if (self.counts is not None) != (self.kind == "histogram") and self.kind is not None:
            raise broken(
                "A kind must fit the columns",
                f"{self.kind} came with {given[0]}=",
                (
                    "Class counts are a histogram, totals and proportions are binary or total; "
                    "leave it out."
                ),
            )

    @property
    def reports_are(self) -> Kind:
        """The kind of the reports."""
        return self.kind or ("histogram" if self.counts is not None else "binary")

    @property
    def values(self) -> list[str]:
        """The columns with what the bags reported."""
        return (
            list(self.counts) if self.counts is not None else [self.total or self.proportion or ""]
        )

    def text_columns(self) -> dict[str, pa.DataType]:
        """Columns that hold ids and are read as text from CSV files, so that 007 stays 007."""
        return {
            name: pa.string()
            for name in (self.on, self.stratum, self.id, self.status)
            if name is not None
        }


def ids_are_text(events: Table, reports: Table, on: str) -> bool:
    """Whether the bag ids are compared as text, else as whole numbers; ids of two types are
    refused."""
    kinds = {table.thing: _id_kind(table, on) for table in (events, reports)}
    if len(set(kinds.values())) > 1 and events.typed and reports.typed:
        raise broken(
            "A bag id must be of one type",
            f"{on!r} is {kinds['events']} in the events and {kinds['reports']} in the reports",
            "Turn both into text or both into whole numbers.",
        )
    too_large = any(pa.types.is_uint64(table.schema.field(on).type) for table in (events, reports))
    return too_large or "text" in kinds.values()


def _id_kind(table: Table, on: str) -> str:
    kind = table.schema.field(on).type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_integer(value):
        return "whole numbers"
    if not (is_text(value) or is_date(value) or pa.types.is_null(value)):
        raise broken(
            "A bag id must be text, a whole number or a date",
            f"{on!r} of the {table.thing} has type {kind}",
            "Write it as text, in the same way in both tables.",
        )
    return "text"
