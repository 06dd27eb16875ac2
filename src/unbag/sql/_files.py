"""Targets from file to file by DuckDB, in little memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

import ibis
import pyarrow as pa

from unbag._io import scratch
from unbag.methods import Method
from unbag.sql._checks import confirm
from unbag.sql._relation import Related, as_sql, relate
from unbag.tables import (
    ColumnNames,
    Columns,
    Table,
    TablesReport,
    as_columns,
    open_table,
    plain_arrow,
    plain_duckdb,
    write_tables,
)

ROWS = 2**16  # written at a time
HELD = "one line for each bag, and ids if they are checked"


@contextmanager
def query_files(
    events: str | Path,
    reports: str | Path,
    on: str | Sequence[str] | Columns,
    *,
    memory: str | None = None,
    method: Method | None = None,
    reference: str | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    **columns: Unpack[ColumnNames],
) -> Iterator[tuple[Any, Related]]:
    """A DuckDB connection that sees the files as `events` and `reports`, and the expressions of
    `relate` on these.

    Parameters
    ----------
    events, reports : str or Path
        Parquet or CSV files, or folders of them.
    memory : str, optional
        The most that DuckDB may use, such as "2GB"; what does not fit goes to disk.
    on, method, reference, keep, **columns : optional
        See `relate`.
    """
    import duckdb

    said, remedy = as_columns(on, columns), "Allow more with {memory}, leave {id} out"
    config: dict[str, Any] = {"preserve_insertion_order": False}
    if memory is not None:
        config["memory_limit"] = memory
    with (
        scratch() as folder,
        plain_duckdb(held=HELD, limit=memory, remedy=remedy),
        _plain_streams(),
        duckdb.connect(config=config | {"temp_directory": folder}) as connection,
    ):
        ours, opened = _open(connection, Path(events), "events", said)
        theirs, also = _open(connection, Path(reports), "reports", said)
        kept = opened.naming(said.of_events).columns if keep is None else keep
        further = {"method": method, "reference": reference, "keep": kept}
        yield connection, relate(ours, theirs, said, typed=opened.typed and also.typed, **further)


def write_targets(
    events: str | Path,
    reports: str | Path,
    out: str | Path,
    on: str | Sequence[str] | Columns,
    *,
    force: bool = True,
    **how: Any,
) -> TablesReport:
    """Write every event of a bag with a report, with its target and weights, to a Parquet or CSV
    file.

    The files are read in parts and may be larger than memory. Rows come in any order. What is
    refused raises before anything is written.

    Parameters
    ----------
    events, reports : str or Path
        Parquet or CSV files, or folders of them.
    on, **how : str or Columns
        See `query_files` and `relate`.
    out : str or Path
        The file to write; CSV when its name ends so, else Parquet.
    force : bool
        Whether a file that is there is replaced.

    Returns
    -------
    TablesReport
        What the tables hold and what was left out.
    """
    with query_files(events, reports, on, **how) as (connection, related):
        report = confirm(connection.sql(as_sql(related.checks)).to_arrow_table().to_pylist())
        targets = connection.sql(as_sql(related.targets)).to_arrow_reader(ROWS)
        tables = (pa.Table.from_batches([batch]) for batch in targets)
        write_tables(Path(out), tables, force=force)
        return report


@contextmanager
def _plain_streams() -> Iterator[None]:
    """What Arrow found wrong with a file while DuckDB read it, in the words of `join`."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        stream = re.search(r"stream registered as '(\w+)' failed: (.*)", str(error), re.DOTALL)
        if stream is None:
            raise
        with plain_arrow(stream[1], ()):
            raise pa.ArrowInvalid(stream[2]) from error


def _open(connection: Any, path: Path, thing: str, columns: Columns) -> tuple[Any, Table]:
    """The files as `join` opens them, seen by DuckDB under their thing's name, with the table of
    Ibis that stands for them. One reader for both: what a file holds cannot depend on the way."""
    opened = open_table(path, thing=thing, types=dict.fromkeys(columns.as_text, pa.string()))
    connection.register(thing, opened.source)
    return ibis.table(ibis.Schema.from_pyarrow(opened.schema), name=thing), opened
