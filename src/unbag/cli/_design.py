"""`unbag design`: the bag of each event."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag._rules import broken
from unbag.cli._console import activity, tell
from unbag.cli._options import check_output

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from unbag.tables import Table


def design(
    events: Path,
    id: Annotated[str, typer.Option()],
    size: Annotated[int, typer.Option()],
    stratum: str | None = None,
    salt: str = "",
    expected: list[str] | None = None,
    all_columns: bool = False,
    out: Path | None = None,
    force: bool = False,
) -> None:
    """Assign events to random bags, within strata, by a hash that any database can repeat.

    Writes the id, the stratum if there is one, and the bag. All ids must fit into memory; the other
    columns need not. With --expected each event has its bag at once, whatever arrives later; the
    sizes of the bags then vary.

    Example: unbag design events.parquet --id event --size 64 --stratum campaign --salt autumn --out
    bags.parquet

    Parameters
    ----------
    id
        column with the event's id, each once (in its stratum)
    size
        events in a bag, about; unbag plan says which
    salt
        any text; another one draws other bags
    expected
        while events still arrive: how many in all, 5000; with strata autumn=5000, repeated for each
    all_columns
        write the whole events with their bag
    """
    from unbag.tables import write_tables

    check_output(out, force=force)
    with activity("reading"):
        table = open_events(events, id, stratum)
        bag = assign(table, id, size, stratum, salt, expected_of(expected))
        columns = table.need([id, stratum])
        if all_columns:
            columns = list(dict.fromkeys([*table.columns, *columns]))
        write_tables(out, _with_bags(table, columns, bag), force=force)
    tell(f"{len(bag):,} events in {len(set(bag.tolist())):,} bags: {out or 'stdout'}")


def open_events(events: Path, id: str, stratum: str | None) -> Table:
    """The events, with ids and strata as text where they come from CSV files."""
    import pyarrow as pa

    from unbag.tables import open_table

    table = open_table(events, types=dict.fromkeys(filter(None, (id, stratum)), pa.string()))
    if "bag" in table.schema.names:
        raise broken(
            "Events to design must have no bag yet",
            "they have a column 'bag'",
            "Rename or drop it.",
        )
    return table


def expected_of(words: list[str] | None) -> int | dict[str, int] | None:
    """How many events will come: in all, or in each stratum.

    >>> expected_of(["5000"]), expected_of(["autumn=300", "a=b=20"]), expected_of([])
    (5000, {'autumn': 300, 'a=b': 20}, None)
    """
    parts = [word.rpartition("=") for word in words or ()]
    named = [sign == "=" for _, sign, _ in parts]
    right = all(number.isdigit() for *_, number in parts)
    if not right or (len(parts) > 1 and not all(named)):
        raise broken(
            "An expected count must be a whole number, or stratum=number for each stratum",
            f"{' '.join(words or ())} was given",
            "Say --expected 5000, or --expected autumn=5000 --expected spring=300.",
        )
    if not parts:
        return None
    if not named[0]:
        return int(parts[0][2])
    return {name: int(number) for name, _, number in parts}


def assign(
    table: Table, id: str, size: int, stratum: str | None, salt: str, expected: Any = None
) -> np.ndarray:
    """The bag of each row."""
    from unbag.bags import design_bags
    from unbag.tables import plain

    columns = table.read(table.need([id, stratum]))
    ids, *strata = (plain(column).to_numpy(zero_copy_only=False) for column in columns.columns)
    within = dict(zip(["stratum"], strata, strict=False))
    return design_bags(ids, size=size, salt=salt, expected=expected, **within)


def _with_bags(table: Table, columns: list[str], bag: np.ndarray) -> Iterator[pa.Table]:
    import pyarrow as pa

    start = 0
    for batch in table.batches(columns):
        end = start + batch.num_rows
        yield batch.append_column("bag", pa.array(bag[start:end].tolist(), pa.string()))
        start = end
