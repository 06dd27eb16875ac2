"""Several model files and two tables in, the one to use out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unbag._rules import broken
from unbag.cli._console import plain_errors, print_json, tell
from unbag.cli._evaluate import bags_for, open_model, unseen
from unbag.cli._options import AsJson, Force, PageFile, takes_columns
from unbag.cli._outputs import check_page
from unbag.cli._story import made_by, prior_over_time, selection_story, write_story
from unbag.metrics._scores import scores_of
from unbag.selection import Choice, choose_and_note


@takes_columns(without=["kind", "prior"])
def select(
    models: Annotated[list[Path], typer.Argument(help="two or more files that unbag train wrote")],
    events: Annotated[
        Path,
        typer.Option(help="one row for each event: a Parquet or CSV file, or a folder of them"),
    ],
    reports: Annotated[Path, typer.Option(help="one row for each bag: a Parquet or CSV file")],
    said: dict[str, Any],
    page: PageFile = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Choose among trained models from reports of bags alone. Bags that any of them learned from
    are left out.

    Prints the path of the chosen model; the comparison goes to stderr.

    Example: unbag select a.unbag b.unbag --events events.csv --reports reports.csv --on bag --total
    sales
    """
    with plain_errors("select"):
        check_page(page, force=force)
        found, bags = selected(models, events, reports, said)
        tell(found)
        if as_json:
            told = {"chosen": found.name, "reason": found.reason, "notes": found.notes}
            print_json({**told, "bags": found.bags, "table": found.table})
        else:
            print(found.name)
        if page is not None:
            line, over_time = (
                made_by("select", *models),
                prior_over_time(events, said.get("time"), bags),
            )
            write_story(selection_story(line, bags, found, over_time), page, force=force)


def selected(
    paths: list[Path], events: Any, reports: Any, said: dict[str, Any]
) -> tuple[Choice, Any]:
    """The choice among model files, each with its own features of the same rows; and the bags that
    chose."""
    if len(set(paths)) < 2:
        raise broken(
            "There must be two models or more to choose among",
            f"{len(set(paths))} came",
            "Name another.",
        )
    models = {str(path): open_model(path) for path in paths}
    kinds = {model.kind_ for model in models.values()}
    if len(kinds) > 1:
        raise broken(
            "Models to choose among must be of one kind",
            f"{' and '.join(sorted(kinds))} came",
            "Leave one.",
        )
    learned = [model.learned_ for model in models.values()]
    scores, bags = {}, None
    for name, model in models.items():
        bags = unseen(bags_for(model, events, reports, said), *learned)
        scores[name] = scores_of(model, bags.X, bags.kind)
    return choose_and_note(scores, bags), bags  # type: ignore[arg-type]
