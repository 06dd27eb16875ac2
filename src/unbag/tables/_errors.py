"""Errors of Arrow and of DuckDB as plain sentences."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from unbag._rules import Refused, broken


@contextmanager
def plain_arrow(thing: str, names: Sequence[str]) -> Iterator[None]:
    """What goes wrong while reading, in plain words.

    Parameters
    ----------
    thing : str
        What is read: "events" or "reports".
    names : sequence of str
        Of the columns, in their order.
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        said = " ".join(map(str, error.args))
        value = BAD_VALUE.search(said)
        if "Empty CSV" in said:
            raise no_rows(thing) from error
        if value and "UTF8" not in said:
            raise _bad_value(value, thing, names) from error
        rule, offender, remedy = next(
            words for marks, *words in FILE_RULES if any(mark in said for mark in marks)
        )
        detail = said.split("\n")[0].removesuffix(".")
        raise broken(rule, offender.format(thing=thing, detail=detail), remedy) from error


# what Arrow says of a file, the rule that it breaks, who breaks it, and what to do
FILE_RULES = (
    (
        ("UTF8", "codec"),
        "A CSV file must be written in UTF-8",
        "a file of {thing} is not",
        "Save it again with that encoding.",
    ),
    (
        ("duplicate field names", "multiple columns named"),
        "A column must appear once",
        "a file of {thing} has one name twice",
        "Rename or drop the others.",
    ),
    (
        ("convert", "Expected bytes", "Conversion failed"),
        "A column must hold values of one type",
        "the {thing} do not ({detail})",
        "Turn all into one type.",
    ),
    (
        ("CSV",),
        "A CSV file must be a table with one line of column names",
        "a file of {thing} is not ({detail})",
        "Correct the file.",
    ),
    (
        ("",),
        "A file must be whole",
        "one of the {thing} is cut short, damaged or something else ({detail})",
        "Export it again.",
    ),
)
BAD_VALUE = re.compile(
    r"column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+).*: invalid value '(.*)'"
)


def _bad_value(match: re.Match[str], thing: str, names: Sequence[str]) -> Refused:
    number, row, kind, value = match.groups()
    name = f"column {int(number) + 1}"
    if int(number) < len(names):
        name = repr(names[int(number)])
    return broken(
        "A column must hold values of one type",
        f"{name} of the {thing} began with {kind} and has {value!r} in line {row}",
        "Correct the file, or plan the column as a category or hash.",
    )


def no_rows(thing: str) -> Refused:
    """The error for a table without rows."""
    rule = f"A table of {thing} must hold at least one row"
    return broken(rule, "none given", "Check the export.")


# the last comes as lack of memory
DISK = ("No space left on device", "Disk quota exceeded", "max_temp_directory_size")


@contextmanager
def plain_duckdb(
    *,
    held: str = "what DuckDB holds of the tables",
    limit: str | None = None,
    remedy: str = "Free some of it",
) -> Iterator[None]:
    """Turn every error of DuckDB, which is no ValueError, into one that says what to do.

    Parameters
    ----------
    held : str
        What has to fit into the memory.
    limit : str, optional
        How much DuckDB may use, if that was said.
    remedy : str
        What else to do when the memory is too small.
    """
    try:
        yield
    except Exception as error:
        # not imported here, because loading DuckDB takes time
        if not isinstance(error, getattr(sys.modules.get("duckdb"), "Error", ())):
            raise
        raise _of_duckdb(error, held, limit, remedy) from error


def _of_duckdb(error: Exception, held: str, limit: str | None, remedy: str) -> Refused:
    text = str(error)
    if any(mark in text for mark in DISK):
        # the quotes are escaped when another thread wrote
        file = re.search(r'file \\*"([^"\\]+)', text) or ("", "its own files")
        return broken(
            "The disk must have room for what DuckDB writes",
            f"there is none for {file[1]}",
            "Free some, or set TMPDIR to a folder on a larger disk.",
        )
    if type(error).__name__ == "OutOfMemoryException":
        return broken(
            f"The memory must suffice for {held}",
            f"{limit or 'it'} does not",
            f"{remedy}, or work on fewer bags at a time.",
        )
    return broken(
        "Tables and settings must be such that DuckDB can work with them",
        text.splitlines()[0].rstrip("."),
        "Correct what it names, or export the tables again.",
    )
