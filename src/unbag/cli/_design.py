"""A table of events in, the bag of each event out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from unbag._rules import broken
from unbag.bags import design_bags
from unbag.cli._console import plain_errors, tell
from unbag.cli._options import Events, Force, Stratum
from unbag.cli._outputs import check_output, write_tables

if TYPE_CHECKING:
    from unbag.tables import Table


def design(
    events: Events,
    id: Annotated[str, typer.Option(help="column with the event's id, each once (in its stratum)")],
    size: Annotated[int, typer.Option(help="events in a bag, about; unbag plan says which")],
    stratum: Stratum = None,
    salt: Annotated[str, typer.Option(help="any text; another one draws other bags")] = "",
    expected: Annotated[
        list[str] | None,
        typer.Option(
            help="while events still come: how many will, 5000; with strata autumn=5000, repeated for each"
        ),
    ] = None,
    all_columns: Annotated[
        bool, typer.Option("--all-columns", help="write the whole events with their bag")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help=".parquet or .csv; by default CSV to stdout")
    ] = None,
    force: Force = False,
) -> None:
    """Assign events to random bags, within strata, by a hash that any database can repeat.

    Writes the id, the stratum if there is one, and the bag. All ids must fit into memory; the other
    columns need not. With --expected each event has its bag at once, whatever comes later; the
    sizes of the bags then vary.

    Example: unbag design events.parquet --id event --size 64 --stratum campaign --salt autumn --out
    bags.parquet
    """
    with plain_errors("design"):
        check_output(out, force=force)
        table = open_events(events, id, stratum)
        bag = assign(table, id, size, stratum, salt, expected_of(expected))
        columns = table.schema.names if all_columns else table.need([id, stratum])
        write_tables(out, _with_bags(table, columns, bag))
        tell(f"{len(bag):,} events in {len(np.unique(bag)):,} bags: {out or 'stdout'}")


def open_events(events: Path, id: str, stratum: str | None) -> Table:
    """The events, with ids and strata as text where they come from CSV files."""
    from unbag.tables import open_table

    table = open_table(
        events, types={name: pa.string() for name in (id, stratum) if name is not None}
    )
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
    if not words:
        return None
    parts = [word.rpartition("=") for word in words]
    if not all(number.isdigit() for *_, number in parts) or (
        len(words) > 1 and not all(sign for _, sign, _ in parts)
    ):
        raise broken(
            "An expected count must be a whole number, or stratum=number for each stratum",
            f"{' '.join(words)} came",
            "Say --expected 5000, or --expected autumn=5000 --expected spring=300.",
        )
    return {name: int(number) for name, _, number in parts} if parts[0][1] else int(words[0])


def assign(
    table: Table, id: str, size: int, stratum: str | None, salt: str, expected: Any = None
) -> np.ndarray:
    """The bag of each row."""
    from unbag.tables._values import plain

    found = table.read(table.need([id, stratum]))
    values = {
        name: plain(found[name]).to_numpy(zero_copy_only=False) for name in found.column_names
    }
    return design_bags(
        values[id],
        size=size,
        stratum=None if stratum is None else values[stratum],
        salt=salt,
        expected=expected,
    )


def _with_bags(table: Table, columns: list[str], bag: np.ndarray) -> Iterator[pa.Table]:
    start = 0
    for batch in table.batches(columns):
        end = start + batch.num_rows
        yield batch.append_column("bag", pa.array(bag[start:end].tolist(), pa.string()))
        start = end
