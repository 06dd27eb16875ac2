"""Marginal tables in the command line: check, train, and which table to ask for next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from unbag._progress import informed
from unbag._rules import Refused, broken, option_spelling
from unbag.cli._console import UNFIT, activity, print_json, tell, tell_warnings
from unbag.cli._page import trained_story, write_story
from unbag.cli._train import keep_model, learned, next_command, tell_judged
from unbag.learners import Identified, RankedTable, identifiable, rank_tables
from unbag.report import Facts, Story
from unbag.tables import Marginals, TablesReport, count, join_marginals

HARDLY = 0.2  # share of the variance of an effect below which a column is hardly told
# settings that marginal tables do not take
BAGS_ONLY = ("prior", "test", "time_limit", "labels", "memory")


def check_cells(
    events: Path, tables: Sequence[Path], said: dict[str, Any], *, as_json: bool
) -> None:
    """Print what these tables hold and can tell; exit code 3 where something is refused.

    Parameters
    ----------
    events : Path
        One row for each event.
    tables : sequence of Path
        Marginal tables.
    said : dict
        Further arguments of `join_marginals`.
    as_json : bool
        Whether machines read it.
    """
    try:
        cells = join_marginals(events, tables, **said)
    except Refused as error:
        if as_json:
            print_json({"usable": False, "refused": error.refusals})
        else:
            for refusal in error.refusals:
                print(f"refused: {refusal.render(option_spelling)}")
        raise typer.Exit(UNFIT) from None
    known = told_columns(cells)
    if as_json:
        sizes = {name: int((cells.of_table == i).sum()) for i, name in enumerate(cells.tables)}
        record = {"usable": True, "tables": sizes, "notes": notes_on(cells), "columns": known}
        print_json(record)
    else:
        print("\n".join([*summary_of_cells(cells), "", *_in_columns(known)]))


def told_columns(cells: Marginals) -> list[Identified]:
    """What these tables can tell of each column; of count totals as if they were labels."""
    if cells.kind == "total":
        rate = min(max(float(cells.prior), 0.01), 0.5)
        return identifiable(cells, rate=rate)
    return identifiable(cells)


def summary_of_cells(cells: Marginals) -> list[str]:
    """What was read, in words."""
    observed = int(cells.observed.sum())
    lines = [
        f"{count(cells.S.shape[1], 'event')} in {count(len(cells), 'cell')} of "
        f"{count(len(cells.tables), 'table')}, {observed:,} with a total."
    ]
    for number, name in enumerate(cells.tables):
        own = cells.of_table == number
        total = cells.total[own & cells.observed].sum()
        lines.append(f"  {name}: {count(int(own.sum()), 'cell')} with a sum of {total:,.6g}")
    return [*lines, *(f"- {note}" for note in notes_on(cells))]


def notes_on(cells: Marginals) -> list[str]:
    """What was left out, and which columns no model will learn from."""
    columns = getattr(cells.plan, "columns", ())
    dropped = [f"Column {c.name} is left out: {c.why}." for c in columns if c.kind == "drop"]
    return [*cells.notes, *dropped]


def _in_columns(known: Sequence[Identified]) -> list[str]:
    """Which columns' effects the tables can tell, as a table to read."""
    lines = [
        "What these tables can tell of the effect of each column (no label needed; known: the",
        "share of the variance of its effect that they take away; width: of its 95% interval)",
        f"{'known':>7} {'width':>7}  column",
    ]
    lines += [f"{one.share:>7.0%} {one.width:>7.2f}  {one.column}" for one in known]
    hardly = [one.column for one in known if one.share < HARDLY]
    if hardly:
        words = ", ".join(hardly)
        lines += [
            "",
            f"These tables hardly tell: {words}. Ask for tables that count by them (unbag plan "
            "--marginals ranks candidates), or expect predictions that ignore them.",
        ]
    return lines


def train_cells(ctx: typer.Context, said: dict[str, Any], settings: dict[str, Any]) -> None:
    """A model file from events and marginal tables, with its verdict and its page.

    Parameters
    ----------
    ctx : typer.Context
        Of the command, with its options.
    said : dict
        Further arguments of `join_marginals`.
    settings : dict
        Of the estimator.
    """
    given = ctx.params
    wrong = [name for name in BAGS_ONLY if given[name] is not None]
    if wrong:
        raise broken(
            "Marginal tables must be learned and judged by their own cells",
            f"{' and '.join(wrong)} given",
            f"Leave out {' and '.join('{' + name + '}' for name in wrong)}.",
        )
    events, tables, out = given["events"], given["marginal"], given["out"]
    cells = join_marginals(events, tables, **said)
    tell("\n".join(summary_of_cells(cells)))
    words = f"learning from {len(cells):,} cells"
    with activity(words) as progress, informed(progress), tell_warnings():
        model = learned(cells, settings)
    keep_model(model, out, count(len(cells), "cell"), force=given["force"], known=cells.notes)
    verdict, rate = model.fitted_.verdict, float(cells.prior)
    tell_judged(model.evaluation_, verdict, as_json=given["as_json"])
    if verdict.step == "more":
        place = shlex.quote(str(events))
        tell(f"  unbag plan --marginals {place} --rate {rate:.3g} --table COLUMN,COLUMN")
    elif verdict.step != "recalibrate":  # which takes bags
        tell(next_command(verdict.step, ctx, model, out, rate))
    if given["page"] is not None:
        story = _story((events, *tables), cells, model)
        write_story(story, given["page"], force=given["force"])


def _story(files: Sequence[Path], cells: Marginals, model: Any) -> Story:
    events, observed = cells.S.shape[1], int(cells.observed.sum())
    size = cells.size[cells.observed]
    sizes = (int(size.min()), float(size.mean()), int(size.max()))
    noise = float(cells.noise[cells.observed].mean())
    return trained_story(
        files,
        model,
        title="A model learned from marginal tables",
        tables=TablesReport(
            events, len(cells), len(cells), observed, events, tuple(notes_on(cells)), ()
        ),
        facts=Facts(observed, events, *sizes, float(cells.prior), noise),
        learned=len(cells),
        predictions=model.fitted_.predict(cells.X),
        columns=told_columns(cells),
        unit="cell",
        verdict=model.fitted_.verdict,
    )


def ranked(
    events: Path, tables: list[str], given: list[str], rate: float, noise: float
) -> list[RankedTable]:
    """Candidate tables by what they would tell, the best first.

    Parameters
    ----------
    events : Path
        One row for each event.
    tables, given : list of str
        Candidates, and tables that are there already: keys with commas between them.
    rate : float
        The expected share of label 1.
    noise : float
        Variance of the noise on each total.
    """
    if not tables:
        raise broken(
            "A plan of marginal tables must have candidates",
            "none given",
            "Name the keys of each with {table}, with commas between them.",
        )
    (candidates, own), (known, there) = (
        zip(*(keys_of(table, noise) for table in some), strict=True) if some else ((), ())
        for some in (tables, given)
    )
    return rank_tables(
        events, candidates, rate=rate, noise=own, given=known, given_noise=there or 0.0
    )


def keys_of(table: str, noise: float) -> tuple[tuple[str, ...], float]:
    """The keys of a table, and the noise on its totals where it has its own.

    Parameters
    ----------
    table : str
        As "campaign,day" or "campaign,day:8".
    noise : float
        Of tables that do not say it.

    >>> keys_of("campaign, day", 2.0), keys_of("publisher:8", 2.0)
    ((('campaign', 'day'), 2.0), (('publisher',), 8.0))
    """
    keys, _, own = table.rpartition(":")
    try:
        variance = float(own)
    except ValueError:  # a column may have a colon in its name
        keys, variance = table, noise
    return tuple(key.strip() for key in (keys or table).split(",")), variance


def in_words(ranking: list[RankedTable]) -> str:
    """The ranking as a table to read."""
    lines = [
        "Tables by how much they would narrow the predictions (no labels needed)",
        f"{'variance less':>13} {'numbers':>9}  table",
    ]
    lines += [f"{one.reduction:>13.1%} {one.cells:>9,}  {one.name}" for one in ranking]
    return "\n".join(lines)
