"""Words in, work out: one verb per station. Data go to stdout, everything else to stderr."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, help="Learning from label proportions.", add_completion=False)


@app.callback()
def main() -> None:
    """Learning from label proportions: a model for each instance from totals of groups."""


@app.command()
def demo() -> None:
    """Learn from bags of the shipped Adult data in every way, and print the test log losses.

    Example: unbag demo
    """
    from rich.console import Console

    from unbag.demo import run

    Console().print(run())
