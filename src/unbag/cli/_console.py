"""Errors and results in, plain words on stderr, JSON on stdout and an exit code out."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import typer

from unbag.tables._duckdb import plain_duckdb

UNFIT = 3  # exit code of `check` for bags that cannot be used or are not random


@contextmanager
def plain_errors(verb: str, *, stopped: str = "no file is half-written") -> Iterator[None]:
    """What went wrong and what to do, in place of a traceback; exit code 1. stopped : what to know
    after Ctrl-C."""
    try:
        with plain_duckdb():  # of whatever did not see to it itself
            yield
    except BrokenPipeError:
        raise  # whoever read the output has seen enough
    except (ValueError, OSError, MemoryError, ImportError, RuntimeError) as error:
        what = "the memory is too small for this" if isinstance(error, MemoryError) else error
        print(
            f"error: {spoken(what)}\n\nhint: unbag {verb} --help shows an example", file=sys.stderr
        )
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print(f"stopped\n\nhint: {stopped}", file=sys.stderr)
        raise typer.Exit(130) from None


PYTHON = re.compile(
    r"(?<![\w(])(total|counts|proportion|kind|size|noise|status|as_of|stratum|time|id|cut|wrong_sizes|accept_bias|prior|cap"
    r"|memory|features|plan|method|expected)=(?!\.\.\.)(?:'(\w+)'|\"(\w+)\"|True)?(?![\w'\"])"
)


def spoken(text: Any) -> str:
    """A message of the library in words of the command line: options in place of arguments.

    >>> spoken("Say kind='total', or give noise=. Two rows have x='a'. (1 further problem: check_tables tells all.)")
    "Say --kind total, or give --noise. Two rows have x='a'. (1 further problem: unbag check tells
    all.)"
    """
    option = lambda found: " ".join(
        [f"--{found[1].replace('_', '-')}", *filter(None, (found[2], found[3]))]
    )
    return PYTHON.sub(option, str(text)).replace("check_tables tells", "unbag check tells")


def tell(text: Any) -> None:
    """A message for people, on stderr."""
    print(text, file=sys.stderr)


def counted(tables: Iterable[Any]) -> Iterator[Any]:
    """The same tables, with a count of rows on stderr while they pass, if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn()
    with Progress(
        *columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task("", total=None)
        for table in tables:
            yield table
            bar.advance(task, table.num_rows)


@contextmanager
def busy(with_what: str) -> Iterator[None]:
    """A sign of life on stderr during long work, if that is a terminal."""
    from rich.console import Console

    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(with_what):
        yield


def print_json(value: Any) -> None:
    """Data for machines, on stdout."""
    print(json.dumps(as_json(value), indent=1, ensure_ascii=False))


def as_json(value: Any) -> Any:
    """Records, arrays and numbers as what JSON knows; what is not finite becomes null.

    >>> as_json({"a": np.float64(1.5), "b": [math.nan, (1, "x")]})
    {'a': 1.5, 'b': [None, [1, 'x']]}
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    value = value.tolist() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        return as_json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
