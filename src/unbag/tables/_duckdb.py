"""Errors of DuckDB as plain sentences."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unbag._rules import Refused, broken

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
    except _errors() as error:
        raise _explained(error, held, limit, remedy) from error


def _errors() -> Any:
    """What DuckDB raises; nothing while it is not loaded, because loading it takes time."""
    return getattr(sys.modules.get("duckdb"), "Error", ())


def _explained(error: Exception, held: str, limit: str | None, remedy: str) -> Refused:
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
