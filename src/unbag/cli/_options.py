"""The options that several verbs share, and how a verb runs: errors in plain words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from unbag._io import check_place
from unbag._rules import broken, one_of, option_spelling, spelled
from unbag.cli._console import plain_errors

SECTION = re.compile(r"^(\w.*)\n-{3,}\n", re.MULTILINE)  # the title of a section in a docstring
WORDS = "unbag.words"  # where the context keeps the command as it was typed
Features = Annotated[list[str] | None, typer.Option("--feature")]
Encoding = Annotated[Path | None, typer.Option("--columns")]
AsJson = Annotated[bool, typer.Option("--json")]
ENDINGS = (".parquet", ".csv")
# the fields of `Columns` that marginal tables have too
OF_CELLS = ("total", "noise", "size", "status", "kind", "id", "cap", "accept_bias")
OF_NOISE = ("epsilon", "mechanism", "delta", "sensitivity")
MECHANISMS = ("laplace", "geometric", "gaussian")


@dataclass
class ColumnOptions:
    """What the verbs that read two tables are told: the fields of `unbag.tables.Columns`, and the
    budget of the noise.

    Columns
    -------
    on
        the column with the bag's id, which both tables have; repeat where several name a bag
    total
        reports: column with each bag's total
    counts
        reports: column with one class's counts; repeat for each
    proportion
        reports: column with proportions, in place of totals
    kind
        binary, or total where an event may count more than once
    size
        reports: column with the number of events, to be checked
    noise
        reports: column with the variance of the noise on a count, or one number
    status
        reports: column with observed, pending, suppressed_by_size ...
    status_map
        what a word of --status means, as suppressed=suppressed_by_size; repeat
    as_of
        reports: column with the time when each report was made; the latest of a bag is used
    stratum
        events: column within whose values the bags are random; it stays a feature
    time
        events: column with the time of the event, for --cut and the page; it stays a feature
    id
        events: column with the event's id; an id that occurs twice is refused
    score
        events: column with an old model's logit or probability, to be corrected by bags
    exposure
        events: column in proportion to which counts grow, as hours; for --kind total
    cut
        use only what was known before this time, e.g. 2026-11-16: later reports (--as-of) and bags
        with later events (--time) are left out
    wrong_sizes
        bags with another size than was reported: refuse (usual) or leave_out
    cap
        the largest count of one event, for --kind total
    accept_bias
        use reports although others were hidden for their value; biased

    Noise of the reports
    --------------------
    epsilon
        privacy budget of the noise on a count, in place of --noise
    mechanism
        of the noise with --epsilon: laplace (usual), geometric or gaussian
    delta
        of --mechanism gaussian, e.g. 1e-6
    sensitivity
        the most that one person adds to the counts, with --epsilon; 1
    """

    on: Annotated[list[str], typer.Option()]
    total: str | None = None
    counts: list[str] | None = None
    proportion: str | None = None
    kind: str | None = None
    size: str | None = None
    noise: str | None = None
    status: str | None = None
    status_map: list[str] | None = None
    as_of: str | None = None
    stratum: str | None = None
    time: str | None = None
    id: str | None = None
    score: str | None = None
    exposure: str | None = None
    cut: str | None = None
    wrong_sizes: str | None = None
    cap: float | None = None
    accept_bias: bool = False
    epsilon: float | None = None
    mechanism: str | None = None
    delta: float | None = None
    sensitivity: float | None = None


def option_help(doc: str | None) -> dict[str, tuple[str, str | None]]:
    """Of each option that a docstring describes, its help and its panel: the title of its section,
    where that is not Parameters."""
    known = {}
    _, *sections = SECTION.split(cleandoc(doc or ""))
    for title, entries in zip(sections[::2], sections[1::2], strict=True):
        for name, words in re.findall(r"^(\w+)\n((?: +.*\n?)+)", entries, re.MULTILINE):
            known[name] = " ".join(words.split()), {"Parameters": None}.get(title, title)
    return known


COLUMN_HELP = option_help(ColumnOptions.__doc__)
COLUMN_NAMES = tuple(field.name for field in fields(ColumnOptions))


class Verb(TyperCommand):
    """A verb that says what went wrong and what to type next, in place of a traceback.

    Its docstring is its help: the paragraphs, and in the sections what each option is for. Options
    that it says nothing of are those of `ColumnOptions`, or these:

    Parameters
    ----------
    events
        one row for each event: a Parquet or CSV file, or a folder of them
    reports
        one row for each bag: a Parquet or CSV file
    model
        a file that unbag train wrote
    features
        events: a column to learn from; repeat; by default all others
    encoding
        TOML file that says how columns become features; see docs/tables.md
    page
        also write a report page to read: one .html file
    out
        .parquet or .csv; by default CSV to stdout
    as_json
        print JSON for machines
    force
        overwrite the output

    Marginal tables
    ---------------
    marginal
        in place of REPORTS: a table of totals by columns of the events; repeat
    below
        hidden or empty totals of cells were below this
    """

    stopped = "no file is half-written"
    columns: tuple[str, ...] = ()
    """The fields of `ColumnOptions` that it takes; the verb finds what they make in `ctx.obj`."""

    def __init__(self, *args: Any, params: list[Any], help: str | None, **further: Any) -> None:
        of_columns = {name: (words, None) for name, (words, _) in COLUMN_HELP.items()}
        known = of_columns | option_help(Verb.__doc__) | option_help(help)
        for option in params:
            _described(option, known)
        text = SECTION.split(help or "")[0]
        # one line each, or Typer breaks lines both where the source does and at the terminal's edge
        paragraphs = [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]
        super().__init__(*args, params=params, help="\n\n".join(paragraphs), **further)
        app = typer.Typer(add_completion=False)
        app.command()(ColumnOptions)
        for option in typer.main.get_command(app).params if self.columns else ():
            if option.name in self.columns:
                self.params.append(_described(option, COLUMN_HELP))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words."""
        words, names = {word.split("=")[0] for word in args}, {one.name for one in self.params}
        # marginal tables have no bags to name, and help is of both
        if words & {"--marginal", "--help"} and "marginal" in names:
            for option in self.params:
                option.required = option.required and option.name not in ("on", "reports")
        with self.plain_errors(ctx):
            check_once(self.params, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        with self.plain_errors(ctx):
            said = {name: ctx.params.pop(name) for name in self.columns}
            if ctx.params.get("marginal"):
                ctx.obj = said_of_cells(said, ctx.params)
            elif said:
                ctx.obj = columns_of(said)
            for name in ("events", "reports"):
                check_is_table(ctx.params.get(name), name)
            return super().invoke(ctx)

    def plain_errors(self, ctx: Any) -> Any:
        """Errors in plain words."""
        words = ctx.meta.get(WORDS, [ctx.info_name])
        # the one that a verb's help ends with
        example = f"{WORKS}: {(self.help or '').partition('Example: ')[2]}"
        cells = any(word.split("=")[0] == "--marginal" for word in words)
        if cells and ctx.info_name in CELL_EXAMPLES:
            example = f"{WORKS}: {CELL_EXAMPLES[ctx.info_name]}"
        options = {name for option in self.params for name in option.opts}
        return plain_errors(words, example=example, stopped=self.stopped, options=options)


def _described(option: Any, known: Mapping[str, tuple[str, str | None]]) -> Any:
    """An option with its help, of which python -OO has none."""
    option.secondary_opts = []  # a flag has no --no form
    if option.name in known and not option.help:
        option.help, option.rich_help_panel = known[option.name]
    return option


def check_once(options: list[Any], words: list[str]) -> None:
    """Refuse an option that is given twice but takes one value: the last would win in silence."""
    given = Counter(word.split("=")[0] for word in words)
    for option in options:
        times = sum(given[name] for name in option.opts if name.startswith("--"))
        if times < 2 or option.multiple:
            continue
        remedy = "Keep one of them."
        if option.name == "total":
            remedy = (
                "Give {counts} in place of {total} for one column per class, or keep one of them."
            )
        raise broken(f"{option.opts[0]} takes one value", f"it is given {times} times", remedy)


def check_is_table(path: Any, thing: str) -> None:
    """Refuse a model file that is given in place of a table."""
    if not isinstance(path, Path) or path.suffix.lower() != ".unbag" or not path.is_file():
        return
    raise broken(
        f"A table of {thing} must be a Parquet or CSV file",
        f"{path.name} is a model",
        "Give the model first where a verb takes one, then the events, then the reports.",
    )


WORKS = "a command that works looks like"
# the examples of the verbs that take marginal tables
CELL_EXAMPLES = {
    "check": "unbag check events.parquet --marginal by_day.csv --marginal by_country.csv --total "
    "sales",
    "train": "unbag train events.parquet --marginal by_day.csv --marginal by_country.csv --total "
    "sales --out model.unbag",
}


def stopped_verb(stopped: str) -> type[Verb]:
    """A verb that says, after Ctrl-C, what becomes of its work."""
    return type("StoppedVerb", (Verb,), {"stopped": stopped})


def table_verb(*, without: tuple[str, ...] = ()) -> type[Verb]:
    """A verb with an option for each field of `Columns`, which it finds in `ctx.obj`.

    Parameters
    ----------
    without : tuple of str
        Fields that the verb does not take.
    """
    columns = tuple(name for name in COLUMN_NAMES if name not in without)
    return type("TableVerb", (Verb,), {"columns": columns})


def said_of_cells(given: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of the columns of marginal tables; noise may be one number for each table.

    Parameters
    ----------
    given : mapping
        The fields of `Columns`, None where nothing was said.
    params : mapping
        The other options of the verb.
    """
    said = as_said(given)
    wrong = [f"--{name.replace('_', '-')}" for name in said if name not in OF_CELLS]
    if params["reports"] is not None:
        wrong.append(f"the reports {params['reports']}")
    if wrong:
        raise broken(
            "Marginal tables must come without what belongs to bags",
            f"{', '.join(wrong)} given too",
            "Leave it out, or {marginal}; the keys of each table are its other columns.",
        )
    if "total" not in said:
        raise broken(
            "Marginal tables must have a column of totals",
            "none was named",
            "Name it with {total}; it has the same name in every table.",
        )
    variances = str(said.get("noise", "")).split(",")
    if len(variances) > 1:
        said["noise"] = [as_said({"noise": one.strip()})["noise"] for one in variances]
    return said | {"below": params.get("below")}


def columns_of(given: Mapping[str, Any]) -> Any:
    """The `Columns` that the options describe.

    >>> columns_of({"on": "bag", "total": "sales", "epsilon": 1.0, "counts": []}).noise
    2.0
    """
    from unbag.tables import Columns

    return Columns(**as_said(given))


def as_said(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Columns` that were said; noise and cut may be numbers, and noise a budget.

    >>> as_said({"on": "bag", "total": "sales", "noise": "4", "counts": []})
    {'on': 'bag', 'total': 'sales', 'noise': 4.0}
    """
    # 0 is a value, so that nothing is compared with False
    said = {k: v for k, v in given.items() if not (v is None or v is False or v in ([], ()))}
    budget = {name: said.pop(name) for name in OF_NOISE if name in said}
    for name in ("noise", "cut"):
        try:
            said[name] = float(said[name])
        except (KeyError, ValueError):  # not said, or a column or a date
            continue
    variance = noise_variance(said.get("noise"), **budget)
    if variance is not None:
        said["noise"] = variance
    if "status_map" in said:
        said["status_map"] = as_mapping(said["status_map"])
    return said


def noise_variance(
    noise: Any,
    epsilon: float | None = None,
    mechanism: str | None = None,
    delta: float | None = None,
    sensitivity: float | None = None,
) -> Any:
    """The variance of the noise on a count, said as such or by a privacy budget.

    Parameters
    ----------
    noise : float, str or None
        The variance, or the column that has it.
    epsilon, mechanism, delta, sensitivity
        The budget and how it is spent; see `unbag.noise`.

    >>> noise_variance(None, 0.5), noise_variance(4.0), noise_variance(None)
    (8.0, 4.0, None)
    """
    spending = {"--mechanism": mechanism, "--delta": delta, "--sensitivity": sensitivity}
    further = [option for option, value in spending.items() if value is not None]
    if epsilon is None and further:
        raise broken(
            "A privacy budget must have an epsilon",
            f"{further[0]} was given without it",
            "Add {epsilon}.",
        )
    if epsilon is None:
        return noise
    if noise is not None:
        raise broken(
            "Noise must be given once",
            f"--noise {noise} and --epsilon {epsilon:g} were given",
            "Leave {noise} out.",
        )
    return _mechanism(epsilon, mechanism or "laplace", delta, sensitivity or 1.0).variance


def _mechanism(epsilon: float, name: str, delta: float | None, sensitivity: float) -> Any:
    from unbag import noise

    remedy = "Choose one of these, or give the variance with {noise}."
    one_of("A mechanism of noise", name, MECHANISMS, remedy)
    if (name == "gaussian") != (delta is not None):
        raise broken(
            "A delta must be given for gaussian noise, and only there",
            f"--mechanism {name} has {delta}",
            "Give {delta:1e-6} with {mechanism:gaussian}, or leave both out for Laplace noise.",
        )
    further = {} if delta is None else {"delta": delta}
    return getattr(noise, name)(epsilon=epsilon, cap=sensitivity, **further)


def as_mapping(words: Sequence[str]) -> dict[str, str]:
    """What the user's own words mean.

    >>> as_mapping(["ok=observed", "too few=suppressed_by_size"])
    {'ok': 'observed', 'too few': 'suppressed_by_size'}
    """
    pairs = [word.rpartition("=") for word in words]
    for (own, _, _), word in zip(pairs, words, strict=True):
        if not own:
            raise broken(
                "A meaning must be written as word=meaning",
                f"{word!r} was given",
                "Write {status_map:suppressed=suppressed_by_size}, and repeat it for each word.",
            )
    return {own: meaning for own, _, meaning in pairs}


def numbers_of(words: Sequence[str] | None, option: str) -> tuple[int, ...] | None:
    """Whole numbers that were given one by one or with commas between them.

    Parameters
    ----------
    words : sequence of str, optional
        As they were typed.
    option : str
        Which option they are of.

    >>> numbers_of(["64,32"], "hidden"), numbers_of(["64", "32"], "hidden"), numbers_of([], "")
    ((64, 32), (64, 32), None)
    """
    parts = [part for word in words or () for part in re.split(r"[,\s]+", word.strip("[]() "))]
    if not parts:
        return None
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        raise broken(
            f"The values of --{option} must be positive whole numbers",
            f"{' '.join(words or ())} was given",
            f"Write --{option} 64,32 for two layers.",
        )
    return tuple(int(part) for part in parts)


def check_output(path: Path | None, *, force: bool, table: bool = True) -> None:
    """Refuse a place that cannot be written, before the work begins; None is stdout."""
    if path is None:
        return
    if table and path.suffix.lower() not in ENDINGS:
        raise broken(
            f"An output must be named {' or '.join(ENDINGS)}",
            f"{path.name} was given",
            "Choose such a name.",
        )
    check_place(path, force=force)


def check_pair(name: str, value: Any, partner: str, given: Any) -> None:
    """Refuse an option that does nothing without another one.

    Parameters
    ----------
    name, value : str, object
        The option, and what it was set to: None where it was not given.
    partner, given : str, object
        The other one, maybe with a value as in "kind:total", and whether it was given.
    """
    if value is not None and not given:
        raise broken(
            f"--{name} must come with {spelled('{' + partner + '}', option_spelling)}",
            "that is missing",
            f"Give {{{partner}}} too, or leave {{{name}}} out.",
        )


def check_page(path: Path | None, *, force: bool) -> None:
    """The same for a report page; None for none."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise broken("A page must be named .html", f"{path.name} was given", "Choose such a name.")
    check_output(path, force=force, table=False)
