"""Files of events and reports in, a file of targets or the text of the SQL out, by DuckDB in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unbag.outputs import whole
from unbag.tables.querying import plain_duckdb
from unbag.tables.reading import list_files
from unbag.warehouse.asking import ibis
from unbag.warehouse.relating import Related, as_sql, relate
from unbag.warehouse.telling import Told, confirm

TEXT = ("on", "stratum", "id", "status")  # read as text from CSV files, so that 007 stays 007
HELD = "one line for each bag, and ids if they are checked"


@contextmanager
def query_files(
    events: str | Path, reports: str | Path, *, memory: str | None = None, **columns: Any
) -> Iterator[tuple[Any, Related]]:
    """A DuckDB connection that sees the files as `events` and `reports`, and the expressions of `relate` on these.

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
        duckdb.connect(config=_config(folder, memory)) as connection,
    ):
        text = [columns[name] for name in TEXT if columns.get(name) is not None]
        tables = [
            _open(connection, Path(path), thing, text) for path, thing in ((events, "events"), (reports, "reports"))
        ]
        yield connection, relate(*tables, **columns)


def write_targets(
    events: str | Path, reports: str | Path, out: str | Path, *, memory: str | None = None, **columns: Any
) -> Told:
    """Write every event of a bag with a report, with its target and weights, to a Parquet or CSV file.

    The files are read in parts and may be larger than memory. Rows come in any order. What is refused raises before
    anything is written.

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
            connection.execute(f"copy ({as_sql(related.targets)}) to {_quoted(temporary)} (format {form})")
        return told


def _config(folder: str, memory: str | None) -> dict[str, Any]:
    limit = {} if memory is None else {"memory_limit": memory}
    return {"temp_directory": folder, "preserve_insertion_order": False} | limit


def _open(connection: Any, path: Path, thing: str, text: list[str]) -> Any:
    """A view of the files, and the table of Ibis that stands for it."""
    files = list_files(path, thing)
    names = "[" + ", ".join(_quoted(file) for file in files) + "]"
    if files[0].suffix in (".parquet", ".pq"):
        source = f"read_parquet({names})"
    else:
        found = connection.sql(f"from read_csv({names}) limit 0").columns
        types = ", ".join(f"{_quoted(name)}: 'varchar'" for name in found if name in text)
        source = f"read_csv({names}{f', types={{{types}}}' if types else ''})"
    connection.execute(f"create view {thing} as from {source}")
    schema = connection.sql(f"from {thing} limit 0").to_arrow_table().schema
    return ibis().table(ibis().Schema.from_pyarrow(schema), name=thing)


def _quoted(text: Any) -> str:
    return "'" + str(text).replace("'", "''") + "'"
