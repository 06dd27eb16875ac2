"""The command line put together: a verb is imported when it is called or its help is asked for."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from unbag import __version__

# in the order of the way of the data; the first sentence of each verb's own help
VERBS = {
    "demo": "Run every step on the shipped Adult data, from two tables to a report page.",
    "plan": "How many bags do I need, and of which size, at this noise?",
    "design": "Assign events to random bags by a hash that any database can repeat.",
    "check": "Are these bags usable and random?",
    "train": "Learn a model of single events from the totals of bags.",
    "explain": "Show what each column does to the predictions, with intervals.",
    "predict": "Predict each event.",
    "evaluate": "Estimate how good a model is, from reports of bags alone.",
    "recalibrate": "Correct the level and slope of a model from reports of newer bags.",
    "select": "Choose among trained models from reports of bags alone.",
    "weights": "Turn reports into a target and a sample weight for each event.",
    "stream": "Learn from event and report files as they arrive in a folder.",
    "reproduce": "Run the paper's batch experiments, and report the results.",
    "benchmark": "Rank every method of the field on the same bags, and your own beside them.",
    "online": "Run the paper's online experiment, and report the results.",
}


class LateVerb(TyperCommand):
    """A verb by its name and summary; the rest is imported when it is needed."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """The context of the verb itself, which then reads the words and does the work."""
        from unbag.cli._console import plain_errors

        with plain_errors([str(self.name)]):  # Ctrl-C while libraries are loaded
            from unbag.cli._options import WORDS, Verb

            module = import_module(f"unbag.cli._{self.name}")
        app = typer.Typer(add_completion=False)
        app.command(cls=getattr(module, "COMMAND", Verb))(getattr(module, str(self.name)))
        parent.meta[WORDS] = [info_name, *args]  # as they were typed, for the hints
        return typer.main.get_command(app).make_context(info_name, args, parent=parent, **extra)


class LateVerbs(TyperGroup):
    """All verbs, none of them imported yet."""

    def __init__(self, **settings: Any) -> None:
        late = {name: LateVerb(name, help=summary) for name, summary in VERBS.items()}
        given: dict[str, Any] = settings | {"commands": late}
        super().__init__(**given)


app = typer.Typer(cls=LateVerbs, no_args_is_help=True, add_completion=False)


def _keep_compiled() -> None:
    """Let JAX keep what it compiles for networks, so that the next start need not do it again: in
    `unbag/compiled` of the user's cache folder, or where $JAX_COMPILATION_CACHE_DIR says."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache / "unbag" / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"unbag {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="print the version"),
    ] = False,
) -> None:
    """Learning from label proportions: a model for each instance from totals of groups."""
    _keep_compiled()
