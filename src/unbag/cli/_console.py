"""What people and machines are shown: messages on stderr, JSON on stdout, and an exit code."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from unbag._rules import Refusal, Refused, visible

UNFIT = 3  # exit code of `check` for bags that cannot be used or are not random


@contextmanager
def plain_errors(verb: str, *, stopped: str = "no file is half-written") -> Iterator[None]:
    """What went wrong and what to do, in place of a traceback; exit code 1.

    Parameters
    ----------
    verb : str
        Whose help is offered.
    stopped : str
        What to know after Ctrl-C.
    """
    try:
        from unbag.tables import plain_duckdb

        with _terminated(), plain_duckdb():  # of whatever did not see to it itself
            yield
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise  # whoever read the output has enough of it, or the work is done
    except (ValueError, OSError, MemoryError, ImportError, RuntimeError) as error:
        tell(f"error: {message_of(error)}\n\nhint: unbag {verb} --help shows an example")
        raise typer.Exit(1) from None
    except KeyboardInterrupt as error:
        tell(f"stopped\n\nhint: {stopped}")
        raise typer.Exit(getattr(error, "code", 130)) from None


class Terminated(KeyboardInterrupt):
    """SIGTERM came: the work ends as after Ctrl-C, with the exit code that shells know."""

    code = 128 + signal.SIGTERM


@contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM as an exception, so that temporary files are removed and a stream is kept."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set a handler
        return

    def stop(*_: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def option_spelling(name: str, value: str | None) -> str:
    """An argument as the command line writes it.

    >>> option_spelling("noise", None), option_spelling("wrong_sizes", "leave_out")
    ('--noise', '--wrong-sizes leave_out')
    """
    if name == "check":
        return "unbag check"
    option = f"--{name.replace('_', '-')}"
    if value in (None, "True"):
        return option
    return f"{option} {value}"


def message_of(error: Exception) -> str:
    """What an error says, in words of the command line."""
    if isinstance(error, MemoryError):
        return "the memory is too small for this"
    if isinstance(error, Refused):
        return error.render(option_spelling)
    return str(error)


def tell(text: Any) -> None:
    """A message for people, on stderr; what came from tables cannot steer the terminal."""
    print(visible(str(text), keep="\n\t"), file=sys.stderr)


@contextmanager
def tell_warnings() -> Iterator[None]:
    """Warnings as lines of stderr, each once, without the line of code that gave them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(each.message) for each in caught):
        tell(f"warning: {text}")


def counted(tables: Iterable[Any]) -> Iterator[Any]:
    """The same tables, with a count of rows on stderr while they pass, if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn()
    quiet = not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as bar:
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
    print(visible(json.dumps(as_json(value), indent=1, ensure_ascii=False), keep="\n"))


def as_json(value: Any) -> Any:
    """Records, arrays and numbers as what JSON knows; what is not finite becomes null.

    >>> as_json({"a": 1.5, "b": [math.nan, (1, "x")]})
    {'a': 1.5, 'b': [None, [1, 'x']]}
    """
    if isinstance(value, Refusal):
        return value.render(option_spelling)
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
