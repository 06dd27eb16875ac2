"""Targets from file to file by DuckDB, in little memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

import ibis

from unbag._io import whole
from unbag._rules import broken
from unbag.methods import Method
from unbag.sql._checks import confirm
from unbag.sql._relation import Related, as_sql, relate
from unbag.tables import (
    ColumnNames,
    Columns,
    Table,
    TablesReport,
    as_columns,
    is_number,
    open_table,
    plain_duckdb,
)

HELD = "one line for each bag, and ids if they are checked"


@contextmanager
def query_files(
    events: str | Path,
    reports: str | Path,
    on: str | Columns,
    *,
    memory: str | None = None,
    method: Method = "upm",
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
    further = {"method": method, "reference": reference, "keep": keep}
    with (
        TemporaryDirectory() as folder,
        plain_duckdb(held=HELD, limit=memory, remedy=remedy),
        _plain_csv(),
        duckdb.connect(config=_config(folder, memory)) as connection,
    ):
        ours, typed = _open(connection, Path(events), "events", said)
        theirs, also = _open(connection, Path(reports), "reports", said)
        yield connection, relate(ours, theirs, said, typed=typed and also, **further)


def write_targets(
    events: str | Path, reports: str | Path, out: str | Path, on: str | Columns, **how: Any
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

    Returns
    -------
    TablesReport
        What the tables hold and what was left out.
    """
    form = "parquet"
    if str(out).lower().endswith(".csv"):
        form = "csv, header"
    with query_files(events, reports, on, **how) as (connection, related):
        report = confirm(connection.sql(as_sql(related.checks)).to_arrow_table().to_pylist())
        with whole(Path(out)) as temporary:
            connection.execute(
                f"copy ({as_sql(related.targets)}) to {_quoted(temporary)} (format {form})"
            )
        return report


@contextmanager
def _plain_csv() -> Iterator[None]:
    """Say what DuckDB finds wrong with a row of a CSV file far from its beginning, where
    `open_table` did not look."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        line = re.search(r"CSV Error on Line: (\d+)\n(?:Original Line:.*\n)?(.*)", str(error))
        if line is None:
            raise
        file = re.search(r"\n\s*file = (.*)", str(error)) or ("", "a file")
        raise broken(
            "A CSV file must be a table in UTF-8, with values of one type in each column",
            f"line {line[1]} of {Path(file[1]).name} is not ({line[2].rstrip('.')})",
            "Mend it.",
        ) from error


def _config(folder: str, memory: str | None) -> dict[str, Any]:
    config: dict[str, Any] = {"temp_directory": folder, "preserve_insertion_order": False}
    if memory is not None:
        config["memory_limit"] = memory
    return config


def _open(connection: Any, path: Path, thing: str, columns: Columns) -> tuple[Any, bool]:
    """A view of the files with the table of Ibis that stands for it, and whether the files know
    their types.

    They are opened as `join` opens them first, so that what it refuses of files is refused in the
    same words.
    """
    opened = open_table(path, thing=thing)
    names = "[" + ", ".join(_quoted(file) for file in opened.source.files) + "]"
    source = f"read_parquet({names})"
    if not opened.typed:
        source = f"read_csv({names}, {_as_csv(opened, columns)})"
    connection.execute(f"create view {thing} as from {source}")
    schema = connection.sql(f"from {thing} limit 0").to_arrow_table().schema
    return ibis.table(ibis.Schema.from_pyarrow(schema), name=thing), opened.typed


def _as_csv(opened: Table, columns: Columns) -> str:
    """How to read CSV files: with the separator that `join` finds, and with its types of ids and
    times."""
    # the columns of the files, not those of folders such as day=3
    inside = next(opened.source.get_fragments()).physical_schema.names
    types = {name: "varchar" for name in columns.as_text if name in inside}
    # times are numbers or text: of 01/05/2026 DuckDB would guess which is the day
    for name in filter(None, (columns.time, columns.as_of)):
        if name in inside:
            number = is_number(opened.schema.field(name).type)
            types[name] = {True: "double", False: "varchar"}[number]
    separator = _quoted(opened.source.format.parse_options.delimiter)
    options = f"delim={separator}, quote='\"', escape='\"', header=true"
    if types:
        pairs = ", ".join(f"{_quoted(name)}: '{kind}'" for name, kind in types.items())
        options += f", types={{{pairs}}}"
    return options


def _quoted(text: Any) -> str:
    return "'" + str(text).replace("'", "''") + "'"
