"""`unbag select`: the best of several model files, by bags that none of them learned from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unbag._rules import broken
from unbag.cli._console import activity, print_json, tell
from unbag.cli._evaluate import as_cells, bags_for, open_model, unseen
from unbag.cli._options import AsJson, check_page, check_pair, table_verb

if TYPE_CHECKING:
    from unbag.selection import Choice
    from unbag.tables import Columns

Rule = Literal["paired", "tournament"]
COMMAND = table_verb(without=("kind", "score", "exposure"))  # the model files say them


def select(
    ctx: typer.Context,
    models: Annotated[list[Path], typer.Argument()],
    events: Annotated[Path, typer.Option()],
    reports: Annotated[Path, typer.Option()],
    rule: Rule = "paired",
    beta: float | None = None,
    failure: float | None = None,
    page: Path | None = None,
    force: bool = False,
    as_json: AsJson = False,
) -> None:
    """Choose among trained models from reports of bags alone. Bags that any of them learned from
    are left out.

    Prints the path of the chosen model; the comparison goes to stderr.

    Example: unbag select a.unbag b.unbag --events events.csv --reports reports.csv --on bag --total
    sales

    Parameters
    ----------
    models
        two or more files that unbag train wrote
    rule
        paired differences, or the paper's tournament
    beta
        tournament: the regret to allow; 0.05
    failure
        tournament: the chance of failure; 0.05
    """
    from unbag.cli._page import selection_story, write_story

    check_page(page, force=force)
    check_pair("beta", beta, "rule:tournament", rule == "tournament")
    check_pair("failure", failure, "rule:tournament", rule == "tournament")
    wishes = {"beta": beta, "delta": failure}
    by = {"rule": rule} | {name: value for name, value in wishes.items() if value is not None}
    with activity("reading"):
        choice, bags = selected(models, events, reports, ctx.obj, **by)
    tell(choice)
    if as_json:
        record = {"chosen": choice.name, "reason": choice.reason, "notes": choice.notes}
        print_json(record | {"bags": choice.bags, "table": choice.table})
    else:
        print(choice.name)
    if page is not None:
        write_story(selection_story(models, events, ctx.obj.time, bags, choice), page, force=force)


def selected(
    paths: list[Path], events: Any, reports: Any, columns: Columns, **by: Any
) -> tuple[Choice, Any]:
    """The choice among model files, each with its own features of the same rows; and the bags that
    chose.

    Parameters
    ----------
    paths : list of Path
        Of the models.
    events, reports : table
        What `join` takes.
    columns : Columns
        What is said of them.
    **by : Any
        `rule`, `beta` and `delta` of `unbag.choose`.
    """
    from unbag.learners import within_constants
    from unbag.metrics import scores_on
    from unbag.selection import choose

    if len(set(paths)) < 2:
        raise broken(
            "There must be two models or more to choose among",
            f"{len(set(paths))} was given",
            "Name another.",
        )
    models = {str(path): open_model(path) for path in paths}
    kinds = {model.kind_ for model in models.values()}
    if len(kinds) > 1:
        raise broken(
            "Models to choose among must be of one kind",
            f"{' and '.join(sorted(kinds))} were given",
            "Leave one.",
        )
    learned = [model.learned_ for model in models.values()]
    scores, bags = {}, None
    for name, model in models.items():
        bags = bags_for(model, events, reports, columns)
        bags = unseen(bags, *learned, cells=as_cells(bags, Path(reports), columns))
        scores[name] = scores_on(model, bags)
    if by.get("rule") != "tournament":  # which takes no strata
        bags = replace(bags, stratum=within_constants(bags.as_read())[0].stratum)  # type: ignore[union-attr,type-var]
    return choose(scores, bags, warn=False, **by), bags  # type: ignore[arg-type]
