"""Data frames, DuckDB relations, Parquet and CSV files as one `Table`, read in batches of rows; and
tables written to one file, whole or not at all."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

import gzip
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.dataset as ds
from pyarrow import parquet
from pyarrow.fs import LocalFileSystem
from scipy import sparse

from unbag._io import whole
from unbag._rules import Refusal, Refused, broken, nearest
from unbag.tables._errors import no_rows, plain_arrow

ROWS, CELLS = 2**16, 2**22  # of a batch, whichever is reached first
ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv"}


_WATCH: ContextVar[Callable[[str, int], None] | None] = ContextVar("watch", default=None)


@contextmanager
def watched(watch: Callable[[str, int], None]) -> Iterator[None]:
    """Have a function informed of every batch that is read: of what, and how many rows so far.

    Parameters
    ----------
    watch : callable
        Called with "events" or "reports" and the number of rows.
    """
    before = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(before)


@dataclass(frozen=True)
class Table:
    """Rows that can be read again and again, a part at a time.

    Parameters
    ----------
    thing : str
        What the rows are, for messages: "events" or "reports".
    source : pyarrow.Table or pyarrow.dataset.Dataset
        An Arrow table in memory, or a data set of files that is read in batches.
    typed : bool
        Whether the source knows its types; CSV files do not.
    of_folders : tuple of str
        Columns that only the names of folders have, such as day=3: they are read when somebody
        names them.
    """

    thing: str
    source: Any
    typed: bool = True
    of_folders: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.source.schema

    @property
    def columns(self) -> list[str]:
        """The columns that the rows themselves have, without those of folder names."""
        return [name for name in self.schema.names if name not in self.of_folders]

    def naming(self, names: Iterable[str]) -> Table:
        """The same table, in which these columns are those of rows, also where folders have
        them."""
        return replace(self, of_folders=tuple(c for c in self.of_folders if c not in set(names)))

    def need(self, names: Iterable[str | None]) -> list[str]:
        """The names among these that are given, each a column of the table; else an error with the
        nearest name."""
        wanted = list(dict.fromkeys(name for name in names if name is not None))
        missing = self.missing(wanted)
        if missing:
            raise Refused(*missing)
        return wanted

    def missing(self, names: Iterable[str]) -> list[Refusal]:
        """A refusal for each of these names that is no column."""
        columns = self.schema.names
        return [
            Refusal(
                "A column must exist",
                f"{name!r} is not in the {self.thing}",
                f"{_several(name, columns) or nearest(name, columns)}Its columns are "
                f"{', '.join(columns)}.",
            )
            for name in names
            if name not in columns
        ]

    def batches(self, columns: Sequence[str], *, rows: int | None = None) -> Iterator[pa.Table]:
        """These columns, about `rows` rows at a time, in order.

        Parameters
        ----------
        columns : sequence of str
            Their names.
        rows : int, optional
            About how many at a time; by default as many as `rows_within` allows.
        """
        watch, done = _WATCH.get(), 0
        for batch in self._parts(columns, rows or rows_within(len(columns))):
            yield batch
            done += batch.num_rows
            if watch is not None:
                watch(self.thing, done)

    def _parts(self, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        if isinstance(self.source, pa.Table):
            chosen = self.source.select(list(columns))
            yield from (chosen.slice(start, rows) for start in range(0, chosen.num_rows, rows))
            return
        with plain_arrow(self.thing, self.schema.names):
            for batch in self.source.to_batches(columns=list(columns), batch_size=rows):
                yield pa.Table.from_batches([batch])

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns, all rows."""
        none = self.schema.empty_table().select(list(columns))
        return pa.concat_tables(list(self.batches(columns)) or [none])


class SequentialFiles(ds.FileSystemDataset):
    """Files that pass through memory a batch at a time, whoever reads them: also DuckDB, which
    asks for a scanner by itself. With threads Arrow reads on, without end, while a batch is worked
    on."""

    def scanner(self, **options: Any) -> ds.Scanner:
        """A scanner that reads little ahead."""
        slow = {"batch_readahead": 2, "fragment_readahead": 1, "use_threads": False}
        return super().scanner(**({"batch_size": ROWS} | options | slow))


def rows_within(columns: int) -> int:
    """How many rows of so many numbers are a batch: at most 65,536, and 4 million numbers.

    >>> rows_within(10), rows_within(3000)
    (65536, 1398)
    """
    return max(1, min(ROWS, CELLS // max(columns, 1)))


def _several(name: str, columns: Sequence[str]) -> str:
    """A remedy where one name holds several, with commas between them."""
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and set(parts) <= set(columns):
        return f"These are {len(parts)} columns: name each by itself. "
    return ""


def open_table(
    source: Any, *, thing: str = "events", types: Mapping[str, pa.DataType] | None = None
) -> Table:
    """Rows from wherever they are: a frame of pandas or polars, an Arrow table, a DuckDB relation,
    a file or a folder.

    Files and folders of Parquet or of CSV files are read in batches and may be larger than memory;
    what begins with a dot or an underscore inside a folder is no data. Folders inside a folder
    that are named like day=3 make a column `day`, which is read when somebody names it and never
    takes the place of a column in the files. Everything else is turned into an Arrow table once.
    In CSV files whole numbers are read as numbers with a fraction, unless they begin above 2^53 and
    are ids; where some begin with a zero, as 007, they are text. Of text nothing is taken as
    missing but the empty one. Checksums of Parquet pages are
    verified where a file has them.

    Parameters
    ----------
    source : frame, pyarrow.Table, DuckDB relation, str or Path
        The rows.
    thing : str
        What they are, for messages.
    types : mapping, optional
        Types of columns of CSV files; others are guessed from the first megabyte.

    >>> open_table(pa.table({"a": [1, 2]})).read(["a"]).num_rows
    2
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, str | Path):
        return _open_files(Path(source), thing, dict(types or {}))
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not isinstance(source, pa.Table):
        return Table(thing, _from_frame(source, thing))
    if len(set(source.schema.names)) < len(source.schema):
        raise _twice(source.schema.names, thing)
    return Table(thing, source)


def is_matrix(X: Any) -> bool:
    """Whether rows come as a matrix or images, not as a table."""
    return isinstance(X, np.ndarray) or sparse.issparse(X)


def _twice(names: Iterable[str], thing: str) -> Refused:
    name, times = Counter(names).most_common(1)[0]
    offender = f"{name!r} appears {times} times in the {thing}"
    return broken("A column must appear once", offender, "Rename or drop the others.")


def _from_frame(source: Any, thing: str) -> pa.Table:
    """A frame of pandas, polars or DuckDB as an Arrow table; an index is no column."""
    import narwhals as nw

    try:
        frame = nw.from_native(source)
    except TypeError as error:
        raise broken(
            f"A table of {thing} must be a frame of pandas or polars, an Arrow table, a DuckDB "
            "relation or a path",
            f"{type(source).__name__} given",
            "Turn it into one of these.",
        ) from error
    except nw.exceptions.DuplicateError as error:
        raise _twice(source.columns, thing) from error
    names = list(frame.collect_schema().names())
    other = [name for name in names if not isinstance(name, str | int | np.integer)]
    if other:
        raise broken(
            "Names of columns must be text", f"the {thing} have {other[0]!r}", "Rename the columns."
        )
    with plain_arrow(thing, ()):
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect(backend="pyarrow")
        # pandas numbers the columns of a matrix
        return frame.to_arrow().select([str(name) for name in names])


def _open_files(path: Path, thing: str, types: dict[str, pa.DataType]) -> Table:
    files = list_files(path, thing)
    typed = _kind_of(files[0]) == "parquet"
    with plain_arrow(thing, ()):
        form = PARQUET if typed else _csv_format(files[0], types)
        # one by one, as paths of this machine: nothing in a name is a pattern or an address
        fragments = [form.make_fragment(str(file), filesystem=LOCAL) for file in files]
        _same_columns(fragments, thing)
        # one type for all files: a part without rows, or with smaller numbers, does not decide
        own = [fragment.physical_schema.remove_metadata() for fragment in fragments]
        schema = pa.unify_schemas(own, promote_options="permissive")
        keys = _folder_keys(path, files, schema.names)
        for name in keys:
            schema = schema.append(pa.field(name, _key_type(keys[name])))
        if keys:
            parting = ds.partitioning(pa.schema([schema.field(k) for k in keys]), flavor="hive")
            # fragments cannot be given their keys later, so they are made once more
            where = [parting.parse(str(file.relative_to(path))) for file in files]
            fragments = [
                form.make_fragment(str(file), filesystem=LOCAL, partition_expression=keys_of_file)
                for file, keys_of_file in zip(files, where, strict=True)
            ]
        source = SequentialFiles(fragments, schema, form)
    return Table(thing, source, typed=typed, of_folders=tuple(keys))


LOCAL = LocalFileSystem()
PARQUET = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(
        use_buffered_stream=True, pre_buffer=False, page_checksum_verification=True
    )
)


def _folder_keys(path: Path, files: list[Path], own: list[str]) -> dict[str, list[str]]:
    """The columns that only names of folders have, day of day=3, with their values."""
    keys: dict[str, list[str]] = {}
    for file in files:
        for part in file.relative_to(path).parts[:-1]:
            name, equals, value = part.partition("=")
            if equals and name and name not in own:
                keys.setdefault(name, []).append(value)
    return keys


def _key_type(values: list[str]) -> pa.DataType:
    """Whole numbers where all values are written like one; 007 is text."""
    if all(re.fullmatch("0|-?[1-9][0-9]{0,17}", value) for value in values):
        return pa.int64()
    return pa.string()


def _csv_format(first: Path, types: dict[str, pa.DataType]) -> ds.CsvFileFormat:
    """How to read CSV files: types are guessed from the first megabyte, widened to fit the rows to
    come, and then fixed."""
    reading = _csv_options(first, types)
    guessed = ds.CsvFileFormat(**reading).make_fragment(str(first), filesystem=LOCAL)
    schema = guessed.physical_schema
    # Arrow reads text that is no UTF-8 as binary, and lets names pass as they are
    if pa.binary() in schema.types or any("\ufffd" in _shown(name) for name in schema.names):
        raise pa.ArrowInvalid("invalid UTF8 data")
    wide = {field.name: _wider(field.type) for field in schema}
    wide |= _codes(first, reading)
    return ds.CsvFileFormat(**_csv_options(first, wide | types))


def list_files(path: Path, thing: str) -> list[Path]:
    """The files of one kind that a path stands for, sorted."""
    if not path.exists():
        raise FileNotFoundError(f"A file of {thing} must exist: {path} does not. Look at the path.")
    files = [path] if _kind_of(path) else []
    if path.is_dir():
        files = data_files(path)
    kinds = {_kind_of(file) for file in files}
    if len(kinds) != 1:
        raise broken(
            f"A path of {thing} must be Parquet or CSV files, of one kind",
            f"{path} has {' and '.join(sorted(map(str, kinds))) or 'neither'}",
            f"Name them {', '.join(ENDINGS)}.",
        )
    return files


def data_files(folder: Path) -> list[Path]:
    """The Parquet and CSV files inside a folder, sorted. Those that are hidden are no data, as the
    leftover _temporary/0/part.parquet; but a folder named _day=1 is a column."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and _kind_of(file)
        and not any(
            part[0] == "." or (part[0] == "_" and "=" not in part)
            for part in file.relative_to(folder).parts
        )
    ]


def _kind_of(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), None)


def _csv_options(path: Path, types: dict[str, pa.DataType]) -> dict[str, Any]:
    """How to read a CSV file: the separator is the most frequent of , ; tab and | in its first
    line."""
    opener = {".gz": gzip.open}.get(path.suffix.lower(), open)
    with opener(path, "rb") as file:
        first = re.sub(rb'"[^"]*"', b"", file.readline(CELLS))
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16, as spreadsheets write "Unicode"
        raise pa.ArrowInvalid("invalid UTF8 data")
    separator = max(",;\t|", key=lambda mark: first.count(mark.encode()))
    return {
        "parse_options": csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(column_types=types, strings_can_be_null=False),
    }


def _shown(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _wider(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.float64()
    if pa.types.is_null(kind):
        return pa.string()
    return kind


def _codes(path: Path, options: dict[str, Any]) -> dict[str, pa.DataType]:
    """Types of the columns whose whole numbers are ids, by the first megabyte: text where some
    begin with a zero, as the postcode 01067 does, which as a number would be another one; whole
    numbers where some are above 2^53, which double precision would mix up."""
    with csv.open_csv(path, **options) as reader:
        first = next(iter(reader), None)
    schema = first.schema if first is not None else ()
    whole = [field.name for field in schema if pa.types.is_integer(field.type)]
    if first is None or not whole:
        return {}
    as_text = csv.ConvertOptions(
        column_types=dict.fromkeys(whole, pa.string()), include_columns=whole
    )
    with csv.open_csv(path, **(options | {"convert_options": as_text})) as reader:
        text = next(iter(reader))
    types: dict[str, pa.DataType] = {}
    for name in whole:
        if any(abs(end or 0) > 2**53 for end in pc.min_max(first[name]).as_py().values()):
            types[name] = pa.int64()
        if pc.any(pc.match_substring_regex(text[name], "^0[0-9]")).as_py():
            types[name] = pa.string()
    return types


def _same_columns(fragments: list[Any], thing: str) -> None:
    """Refuse files whose columns differ: those that lack one would be read as missing values,
    silently."""
    first = set(fragments[0].physical_schema.names)
    for fragment in fragments[1:]:
        other = set(fragment.physical_schema.names)
        if other != first:
            raise broken(
                f"Files of {thing} must have the same columns",
                f"{Path(fragment.path).name} differs from {Path(fragments[0].path).name} in "
                f"{', '.join(sorted(other ^ first))}",
                "Export them again.",
            )


def write_tables(path: Path | None, tables: Iterable[pa.Table], *, force: bool = True) -> int:
    """Write tables of one schema one after another; CSV to stdout when there is no path.

    Parameters
    ----------
    path : Path or None
        CSV when its name ends so, else Parquet, whose pages get checksums.
    tables : iterable of pyarrow.Table
        At least one row in all.
    force : bool
        Whether a file that is there is replaced.

    Returns
    -------
    int
        How many rows were written.
    """
    if path is None:
        return _write(sys.stdout.buffer, tables, _csv)
    writer = partial(parquet.ParquetWriter, write_page_checksum=True)
    if path.suffix.lower() == ".csv":
        writer = _csv
    with whole(path, force=force) as temporary:
        return _write(str(temporary), tables, writer)


def _csv(place: Any, schema: pa.Schema) -> Any:
    return csv.CSVWriter(place, schema, write_options=csv.WriteOptions(quoting_style="needed"))


def _write(place: Any, tables: Iterable[pa.Table], writer: Any) -> int:
    """The schema is that of the first table, so that nothing is opened before the first is
    there."""
    rest = (table for table in tables if table.num_rows)
    first = next(rest, None)
    if first is None:
        raise no_rows("events")
    rows = first.num_rows
    with writer(place, first.schema) as file:
        file.write_table(first)
        for table in rest:
            file.write_table(table)
            rows += table.num_rows
    return rows
