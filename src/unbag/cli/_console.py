"""What people and machines are shown: messages and progress on stderr, JSON on stdout."""

from __future__ import annotations

import json
import math
import re
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from unbag._progress import Progress, terminal_bar
from unbag._rules import OPTION, Refusal, Refused, option_spelling, visible

UNFIT = 3  # exit code of `check` for bags that cannot be used or are not random
QUOTED = re.compile(r"'([^']+)'")
SUGGESTED = re.compile(r"Did you mean '([^']+)'\?")
IN_PLACE = re.compile(r"\{(\w+)\} in place of \{(\w+)\}")
# what stands for the value of an option in a hint; the others take a column
VALUES = {
    "noise": "VARIANCE",
    "cap": "NUMBER",
    "expected": "NUMBER",
    "store": "FOLDER",
    "epsilon": "1",
    "status_map": "WORD=MEANING",
}


@contextmanager
def plain_errors(
    words: Sequence[str],
    *,
    example: str = "",
    stopped: str = "no file is half-written",
    options: Collection[str] | None = None,
) -> Iterator[None]:
    """What went wrong and what to type next, in place of a traceback; exit code 1.

    Parameters
    ----------
    words : sequence of str
        The command as it was typed, from the verb on.
    example : str
        A command that works, for errors that say nothing of what to type.
    stopped : str
        What to know after Ctrl-C.
    options : collection of str, optional
        Those of the verb, as --total: a hint has no others.
    """
    try:
        with _terminated(), _plain_duckdb():
            yield
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise  # whoever read the output has enough of it, or the work is done
    except (ValueError, OSError, MemoryError, ImportError, RuntimeError) as error:
        said = str(error)
        if isinstance(error, MemoryError):
            said = "the memory is too small for this"
        elif isinstance(error, Refused):
            said = error.render(option_spelling)
        tell(f"error: {said}\n\nhint: {hint_of(error, words, options) or example}")
        raise typer.Exit(1) from None
    except KeyboardInterrupt as error:
        tell(f"stopped\n\nhint: {stopped}")
        raise typer.Exit(getattr(error, "code", 130)) from None


@contextmanager
def _plain_duckdb() -> Iterator[None]:
    """Errors of DuckDB where nobody saw to them; the tables take a second to import, so late."""
    try:
        yield
    except Exception as error:
        if "duckdb" not in type(error).__module__:
            raise
        from unbag.tables import plain_duckdb

        with plain_duckdb():
            raise


class Terminated(KeyboardInterrupt):
    """SIGTERM: the work ends as after Ctrl-C, with the exit code that shells know."""

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


def hint_of(error: Exception, words: Sequence[str], options: Collection[str] | None = None) -> str:
    """The command to type next, where the error says what is wrong with this one; else nothing.

    Parameters
    ----------
    error : Exception
        What went wrong.
    words : sequence of str
        The command as it was typed, from the verb on.
    options : collection of str, optional
        Those of the verb; by default any.

    >>> from unbag._rules import broken
    >>> hint_of(broken("A column must exist", "'bga' is none", "Did you mean 'bag'?"),
    ...         ["check", "e.csv", "r.csv", "--on", "bga"])
    'unbag check e.csv r.csv --on bag'
    """
    text, suggested = str(error), SUGGESTED.search(str(error))
    if suggested is not None:
        wrong = next((word for word in QUOTED.findall(text) if word in words), None)
        if wrong is not None:
            return _command([{wrong: suggested[1]}.get(word, word) for word in words])
    if "name each by itself" in text:
        return _command(_one_by_one(words, QUOTED.findall(text)))
    if "Use --force" in text:
        return _command([*words, "--force"])
    if "the other way round" in text:
        return _command(_swapped(words))
    for refusal in getattr(error, "refusals", ()):
        replaced = IN_PLACE.search(refusal.remedy)
        if replaced is not None:
            new, old = (option_spelling(name, None) for name in replaced.groups())
            return _command([{old: new}.get(word, word) for word in words])
        for option in _asked_for(refusal):
            known = options is None or option[0] in options
            if known and option[0] not in words:
                return _command([*words, *option])
    return ""


def _one_by_one(words: Sequence[str], several: Sequence[str]) -> list[str]:
    """The command with an option repeated for each of several columns, as --on day,shop.

    >>> _one_by_one(["check", "--on", "day, shop"], ["day, shop"])
    ['check', '--on', 'day', '--on', 'shop']
    """
    apart: list[str] = []
    for word in words:
        parts = word.split(",") if word in several and apart else [word]
        option = apart[-1] if apart else ""
        apart.append(parts[0].strip())
        apart += [one for part in parts[1:] for one in (option, part.strip())]
    return apart


def _swapped(words: Sequence[str]) -> list[str]:
    """The command with its first two tables the other way round; a model stays where it is."""
    tables = [Path(word).exists() and Path(word).suffix != ".unbag" for word in words]
    files = [i for i, table in enumerate(tables) if table][:2]
    swapped = list(words)
    if len(files) == 2:
        swapped[files[0]], swapped[files[1]] = swapped[files[1]], swapped[files[0]]
    return swapped


def _asked_for(refusal: Refusal) -> Iterator[list[str]]:
    """The options that a remedy asks for, but not those that it asks to leave out."""
    for match in OPTION.finditer(refusal.remedy):
        name, value = match.groups()
        if not refusal.remedy[: match.start()].endswith(("eave ", "check ", "without ")):
            stands_for = [VALUES.get(name, "COLUMN")]
            if value is not None:
                stands_for = [value] * (value != "True")
            yield [option_spelling(name, None), *stands_for]


def _command(words: Sequence[str]) -> str:
    return f"unbag {shlex.join(words)}"


def tell(text: Any) -> None:
    """A message for people, on stderr; what tables contain cannot steer the terminal."""
    print(visible(str(text), keep="\n\t"), file=sys.stderr)


@contextmanager
def tell_warnings() -> Iterator[None]:
    """Warnings as lines of stderr, each once, without the line of code that gave them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(each.message) for each in caught):
        tell(f"warning: {text}")


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


def print_evaluation(evaluation: Any, *, as_json: bool, **further: Any) -> None:
    """An evaluation on stdout; as JSON with further entries."""
    if as_json:
        known = {field.name: getattr(evaluation, field.name) for field in fields(evaluation)}
        print_json(known | further)
    else:
        print(evaluation)


@contextmanager
def activity(words: str) -> Iterator[Progress]:
    """A sign of life on stderr during work that may be long: learning, or reading of tables.

    Parameters
    ----------
    words : str
        What is done first.
    """
    from unbag.tables import watched

    with terminal_bar(words, tell) as shown:

        def rows(thing: str, done: int) -> None:
            shown(done, None, f"reading {thing}: {done:,} rows")

        with watched(rows):
            yield shown
