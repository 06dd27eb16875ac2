"""Events counted by bag, batch by batch: sizes, strata, last times, and what is wrong with them."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag._io import scratch
from unbag.tables._columns import Columns
from unbag.tables._errors import no_rows, plain_duckdb
from unbag.tables._values import as_ids, as_moments, as_text

# lines of batches between two sums, so that what is held grows with the bags and not with the rows
FOLD = 2**20
SUMS = {"size": "sum", "stratum": "min", "other": "max", "last": "max"}
DOUBLED = """
    create temp table doubled as
    select id, min(bag) as low, max(bag) as high, coalesce(low <> high, false) as apart
    from ids where id is not null group by id having count(*) > 1
"""

Line = dict[str, Any]


def line(check: str, rows: int, first: str | None = None) -> Line:
    """How many break a rule, and words on the first; see `tables_report`."""
    return {"check": check, "rows": rows, "first": first}


class EventCounts(NamedTuple):
    """Of each bag its name (sorted), size, stratum and last moment; and a line for each check."""

    name: pa.Array
    size: np.ndarray
    stratum: pa.Array
    last: np.ndarray
    lines: list[Line]


class BagCounter:
    """Counts the events of each bag; `add` batches, then ask for `counts`."""

    def __init__(self, columns: Columns, *, text: bool) -> None:
        self.columns, self.text = columns, text
        self.parts: list[pa.Table] = []
        self.rows = self.fresh = 0
        self.missing = {"bag": [0, -1], "stratum": [0, -1], "id": [0, -1]}  # how many, and first

    def add(self, batch: pa.Table) -> None:
        """Count a batch that has the columns."""
        names, n = self.columns, batch.num_rows
        bag = as_ids(batch, names.keys, text=self.text)
        self._note("bag", bag)
        part: dict[str, Any] = {"bag": bag, "size": np.ones(n, np.int64)}
        if names.stratum is not None:
            part["stratum"] = part["other"] = as_text(batch[names.stratum])
            self._note("stratum", part["stratum"])
        if names.id is not None:
            self._note("id", as_text(batch[names.id]))
        if names.time is not None:
            moment = as_moments(batch[names.time], name=names.time)
            part["last"] = np.where(np.isnan(moment), np.inf, moment)  # may not lie before a cut
        self.rows += n
        self.parts.append(_sum(pa.table(part)))
        self.fresh += self.parts[-1].num_rows
        # sum up once there are as many new lines as old ones: the work stays linear in the rows
        if self.fresh > max(FOLD, self.parts[0].num_rows):
            self.parts, self.fresh = [_sum(pa.concat_tables(self.parts))], 0

    def _note(self, what: str, values: pa.Array) -> None:
        gaps = np.flatnonzero(np.asarray(values.is_null()))
        if len(gaps):
            how_many, first = self.missing[what]
            self.missing[what] = [how_many + len(gaps), first]
            if how_many == 0:
                self.missing[what][1] = self.rows + int(gaps[0])

    def counts(self) -> EventCounts:
        """One line for each bag."""
        if self.rows == 0:
            raise no_rows("events")
        whole = _sum(pa.concat_tables(self.parts)).filter(pc.field("bag").is_valid())
        whole = whole.sort_by("bag")
        lines = [
            line(f"event_without_{what}", n, f"row {first} of the events has none")
            for what, (n, first) in self.missing.items()
        ]
        stratum, last = pa.repeat("", whole.num_rows), np.full(whole.num_rows, -np.inf)
        lines.append(line("events", self.rows))
        if self.columns.stratum is not None:
            split = whole.filter(pc.not_equal(whole["stratum"], whole["other"]))
            words = [
                f"bag {b['bag']} has {b['stratum']} and {b['other']}" for b in split[:1].to_pylist()
            ]
            lines.append(line("bag_in_two_strata", split.num_rows, *words))
            stratum = whole["stratum"].combine_chunks()
        if self.columns.time is not None:
            last = whole["last"].to_numpy()
        name = whole["bag"].combine_chunks()
        return EventCounts(name, whole["size"].to_numpy(), stratum, last, lines)


def _sum(part: pa.Table) -> pa.Table:
    """One line for each bag."""
    bag, *others = part.column_names
    summed = part.group_by(bag).aggregate([(name, SUMS[name]) for name in others])
    return summed.select([bag, *(f"{name}_{SUMS[name]}" for name in others)]).rename_columns(
        part.column_names
    )


class IdCounter:
    """Finds ids that come twice, in one bag or in several; `add` batches, then ask for `lines`."""

    def __init__(self, columns: Columns, connection: Any) -> None:
        self.columns, self.connection = columns, connection
        connection.execute("create temp table ids (id varchar, bag varchar)")

    def add(self, batch: pa.Table) -> None:
        """Note the ids of a batch."""
        ids = {
            "id": as_text(batch[self.columns.id]),
            "bag": as_ids(batch, self.columns.keys, text=True),
        }
        self.connection.register("batch", pa.table(ids))
        self.connection.execute("insert into ids from batch")

    def lines(self) -> list[Line]:
        """A line for ids in two bags, and one for ids that come twice in a bag."""
        self.connection.execute(DOUBLED)
        return [
            self._line(
                "event_in_two_bags",
                "apart",
                "'event ' || id || ' is in bags ' || low || ' and ' || high",
            ),
            self._line(
                "event_twice", "not apart", "'event ' || id || ' occurs again in the same bag'"
            ),
        ]

    def _line(self, check: str, where: str, words: str) -> Line:
        query = f"select count(*), arg_min({words}, id) from doubled where {where}"
        return line(check, *self.connection.execute(query).fetchone())


@contextmanager
def id_counter(columns: Columns) -> Iterator[IdCounter]:
    """An `IdCounter` in DuckDB, which goes to disk when memory is short."""
    import duckdb

    remedy = "Free some of it, leave {id} out"
    with (
        scratch() as folder,
        plain_duckdb(held="the ids that are checked", remedy=remedy),
        duckdb.connect(config={"temp_directory": folder}) as connection,
    ):
        yield IdCounter(columns, connection)
