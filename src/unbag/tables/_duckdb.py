"""A block of work with DuckDB in, the same out, with what goes wrong in it as a plain sentence."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DISK = (
    "No space left on device",
    "Disk quota exceeded",
    "max_temp_directory_size",
)  # the last comes as lack of memory


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
    held : what has to fit into the memory.
    limit : how much DuckDB may use, if that was said.
    remedy : what else to do when the memory is too small.
    """
    try:
        yield
    except _errors() as error:
        raise ValueError(_told(error, held, limit, remedy)) from error


def _errors() -> Any:
    """What DuckDB raises; nothing while it is not loaded, because loading it takes time."""
    return getattr(sys.modules.get("duckdb"), "Error", ())


def _told(error: Exception, held: str, limit: str | None, remedy: str) -> str:
    if any(mark in str(error) for mark in DISK):
        file = re.search(
            r'file \\*"([^"\\]+)', str(error)
        )  # the quotes are escaped when another thread wrote
        what = file[1] if file else "its own files"
        return (
            f"The disk must have room for what DuckDB writes: there is none for {what}. Free "
            "some, or set TMPDIR to a folder on a larger disk."
        )
    if type(error).__name__ == "OutOfMemoryException":
        return f"The memory must suffice for {held}: {limit or 'it'} does not. {remedy}, or work on fewer bags at a time."
    first = str(error).splitlines()[0].rstrip(".")
    return (
        f"Tables and settings must be such that DuckDB can work with them: {first}. Mend what it "
        "names, or export the tables again."
    )
