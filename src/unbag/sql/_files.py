"""Files of events and reports in, a file of targets or the text of the SQL out, by DuckDB in little
memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unbag._io import whole
from unbag._rules import broken
from unbag.sql._columns import ibis
from unbag.sql._relation import Related, as_sql, relate
from unbag.sql._summary import Told, confirm
from unbag.tables._duckdb import plain_duckdb
from unbag.tables._sources import Table, open_table
from unbag.tables._values import is_number

TEXT = ("on", "stratum", "id", "status")  # read as text from CSV files, so that 007 stays 007
TIMES = ("time", "as_of")  # numbers or text: of 01/05/2026 DuckDB would guess which is the day
HELD = "one line for each bag, and ids if they are checked"


@contextmanager
def query_files(
    events: str | Path, reports: str | Path, *, memory: str | None = None, **columns: Any
) -> Iterator[tuple[Any, Related]]:
    """A DuckDB connection that sees the files as `events` and `reports`, and the expressions of
    `relate` on these.

    Parameters
    ----------
    events, reports : Parquet or CSV files, or folders of them.
    memory : the most that DuckDB may use, such as "2GB"; what does not fit goes to disk.
    columns : see `relate`.
    """
    import duckdb

    with (
        TemporaryDirectory() as folder,
        plain_duckdb(held=HELD, limit=memory, remedy="Allow more with memory=, leave id= out"),
        _plain_csv(),
        duckdb.connect(config=_config(folder, memory)) as connection,
    ):
        ours, typed = _open(connection, Path(events), "events", columns)
        theirs, also = _open(connection, Path(reports), "reports", columns)
        yield connection, relate(ours, theirs, typed=typed and also, **columns)


def write_targets(
    events: str | Path,
    reports: str | Path,
    out: str | Path,
    *,
    memory: str | None = None,
    **columns: Any,
) -> Told:
    """Write every event of a bag with a report, with its target and weights, to a Parquet or CSV
    file.

    The files are read in parts and may be larger than memory. Rows come in any order. What is
    refused raises before anything is written.

    Parameters
    ----------
    out : the file to write; CSV when its name ends so, else Parquet.
    events, reports, memory, columns : see `query_files` and `relate`.

    Returns
    -------
    What came and what was left out.
    """
    with query_files(events, reports, memory=memory, **columns) as (connection, related):
        told = confirm(connection.sql(as_sql(related.checks)).to_arrow_table().to_pylist())
        form = "csv, header" if str(out).lower().endswith(".csv") else "parquet"
        with whole(Path(out)) as temporary:
            connection.execute(
                f"copy ({as_sql(related.targets)}) to {_quoted(temporary)} (format {form})"
            )
        return told


@contextmanager
def _plain_csv() -> Iterator[None]:
    """Say what DuckDB finds wrong with a row of a CSV file far from its beginning, where
    `open_table` did not look."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        found = re.search(r"CSV Error on Line: (\d+)\n(?:Original Line:.*\n)?(.*)", str(error))
        if found is None:
            raise
        file = re.search(r"\n\s*file = (.*)", str(error))
        raise broken(
            "A CSV file must be a table in UTF-8, with values of one type in each column",
            (
                f"line {found[1]} of {(Path(file[1]).name if file else 'a file')} is not "
                f"({found[2].rstrip('.')})"
            ),
            "Mend it.",
        ) from error


def _config(folder: str, memory: str | None) -> dict[str, Any]:
    limit = {} if memory is None else {"memory_limit": memory}
    return {"temp_directory": folder, "preserve_insertion_order": False} | limit


def _open(connection: Any, path: Path, thing: str, columns: dict[str, Any]) -> tuple[Any, bool]:
    """A view of the files with the table of Ibis that stands for it, and whether the files know
    their types.

    They are opened as `join` opens them first, so that what it refuses of files is refused in the
    same words.
    """
    opened = open_table(path, thing=thing)
    names = "[" + ", ".join(_quoted(file) for file in opened.source.files) + "]"
    source = (
        f"read_parquet({names})"
        if opened.typed
        else f"read_csv({names}, {_as_csv(opened, columns)})"
    )
    connection.execute(f"create view {thing} as from {source}")
    schema = connection.sql(f"from {thing} limit 0").to_arrow_table().schema
    return ibis().table(ibis().Schema.from_pyarrow(schema), name=thing), opened.typed


def _as_csv(opened: Table, columns: dict[str, Any]) -> str:
    """How to read CSV files: with the separator that `join` finds, and with its types of ids and
    times."""
    inside = next(
        opened.source.get_fragments()
    ).physical_schema.names  # not those of folders such as day=3
    kind = lambda name: "double" if is_number(opened.schema.field(name).type) else "varchar"
    types = {columns[key]: "varchar" for key in TEXT if columns.get(key) in inside}
    types |= {columns[key]: kind(columns[key]) for key in TIMES if columns.get(key) in inside}
    said = ", ".join(f"{_quoted(name)}: '{kind}'" for name, kind in types.items())
    separator = _quoted(opened.source.format.parse_options.delimiter)
    return f"delim={separator}, quote='\"', escape='\"', header=true{f', types={{{said}}}' if said else ''}"


def _quoted(text: Any) -> str:
    return "'" + str(text).replace("'", "''") + "'"
