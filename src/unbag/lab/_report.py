"""The report of a store: tables, figures and claims."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from inspect import cleandoc
from itertools import product
from math import ceil
from pathlib import Path

import numpy as np

from unbag._rules import broken
from unbag.lab._catalogue import Way, has_papers_network
from unbag.lab._choice import Chosen, read_choices, read_deviations
from unbag.lab._claims import (
    BATCH_TASKS,
    OURS,
    PAPERS,
    ClaimVerdict,
    judge,
    judge_ours,
    verdict_table,
)
from unbag.lab._figures import details_of, experiments_figure, name_of, save_figure
from unbag.lab._markup import as_latex, floating
from unbag.lab._online import (
    as_tables,
    judge_online,
    online_stores,
    results_of,
    write_online_report,
)
from unbag.lab._plan import Experiment, Plan
from unbag.lab._results import (
    METRICS,
    BestCells,
    Runs,
    best_rows,
    cells_of,
    choice_table,
    experiment_table,
    experiments_of,
    in_order,
    price_rows,
    prices,
    read_runs,
)
from unbag.lab._store import RunStore, write_csv
from unbag.losses import LOSSES

FEW = (*PAPERS, OURS)
ZOOM = tuple(2**i for i in range(4, 11))  # the paper leaves 2^11 and what is below 2^4 out


def write_report(
    store: RunStore, folder: Path, *, latex: bool = False, compare: tuple[Way, Way] | None = None
) -> list[Path]:
    """Tables, figures and claims of everything in a store.

    Parameters
    ----------
    store : RunStore
        The runs.
    folder : Path
        Where the report goes.
    latex : bool
        Whether to write the tables in LaTeX too, as `tables.tex`.
    compare : tuple of Way, optional
        Two methods that a paired test in these tables compares.

    Returns
    -------
    list of Path
        The files that were written.
    """
    everything = read_runs(store)
    if not everything:
        rule = "A report must have runs"
        raise broken(rule, f"{store.folder} has none", "Make some: unbag reproduce adult")
    folder.mkdir(parents=True, exist_ok=True)
    words = ["unbag", "reproduce", "--store", str(store.folder), "--report", str(folder), "--force"]
    words += ["--latex"] * latex
    words += [word for way in compare or () for word in ("--compare", str(way))]
    command = shlex.join(words)
    spreads, choices = read_deviations(store), read_choices(store)
    verdicts, ours, streams = judge(everything), judge_ours(everything, spreads, choices), []
    for plan, runs in online_stores(store.folder / "online"):
        results = results_of(plan, runs)
        if results:
            streams.append((plan, runs))
            # the paper has no made-up clicks
            theirs = verdicts if plan.source == "criteo" else ours
            theirs.append(judge_online(plan, results))
    experiments = experiments_of(everything)
    tables = {
        "best.csv": best_rows(everything),
        "choice.csv": price_rows(prices(everything, choices)),
        "claims.csv": [verdict._asdict() for verdict in (*verdicts, *ours)],
        "variance.csv": [spread._asdict() for spread in spreads],
    }
    written = [write_csv(folder / name, rows) for name, rows in tables.items() if rows]
    figures = _figures(everything, experiments, folder)
    for plan, runs in streams:
        written += write_online_report(plan, runs, folder / f"online-{runs.folder.name}")
    rule = cleandoc(str(ClaimVerdict.__doc__)).partition("\n\n")[2]
    pages = {
        "claims.md": f"# The paper says, we see\n\n{rule}\n\n{verdict_table(verdicts)}\n## Our own "
        f"claims, and the theory\n\n{verdict_table(ours, says='claim')}",
        "report.md": _report_page(command, folder, everything, experiments, choices),
    }
    if latex:
        online = [
            part for plan, runs in streams for part in as_tables(plan, results_of(plan, runs))
        ]
        preamble = PREAMBLE.format(command=command)
        tables = [preamble, latex_page(everything, experiments, compare), *online]
        pages["tables.tex"] = "\n\n".join(tables) + "\n"
    for name, text in pages.items():
        (folder / name).write_text(text)
    return [*written, *figures, *(folder / name for name in pages)]


def plan_table(plan: Plan, store: RunStore) -> str:
    """The test loss of a plan's runs by method and bag size, in Markdown under a title.

    Parameters
    ----------
    plan : Plan
        Whose runs; with a holdout, what held-out bags choose.
    store : RunStore
        Where they are.
    """
    everything, experiment = read_runs(store, task=plan.task), plan.experiment
    title = f"{experiment.title}: {name_of('test_loss', experiment)}"
    if not plan.holdout:
        return f"{title}\n\n{experiment_table(cells_of(everything, experiment, 'test_loss'))}"
    title += f" of what held-out bags choose, a share of {plan.holdout:g}"
    table = choice_table(everything, read_choices(store), experiment, plan.holdout)
    return f"{title}\n\n{table}"


def _figures(
    everything: Sequence[Runs], experiments: Sequence[Experiment], folder: Path
) -> list[Path]:
    """Each experiment alone, and the paper's tasks together: both metrics, all bag sizes and the
    paper's zoom on those from 16 to 1024."""
    pictures = {experiment.name: [experiment] for experiment in experiments}
    # The paper does not say which features of Higgs it takes, so there is a panel for each reading.
    broadest = [_broadest(everything, task) for task in (*BATCH_TASKS, "higgs-all")]
    pictures["paper"] = [experiment for experiment in broadest if experiment]
    written = []
    # As many curves as the paper has, and ours: controls and further methods have own figures.
    few = [runs for runs in everything if runs.way in FEW or runs.way.method == "labels"]
    for (name, shown), (title, metric) in product(pictures.items(), METRICS.items()):
        drawn = {"paper": few}.get(name, everything)
        cells = [cells_of(drawn, experiment, metric) for experiment in shown]
        inside = [each for each in cells if {k for _, k in each.learned} & {*ZOOM}]
        files: dict[str, tuple[list[BestCells], tuple[int, ...] | None]] = {
            f"{name}-{title}": ([each for each in cells if each.learned], None)
        }
        # Where all sizes lie in the zoom it would be the same figure again.
        if any({k for _, k in each.learned} - {*ZOOM} for each in inside):
            files[f"{name}-{title}-zoom"] = (inside, ZOOM)
        for file, (panels, sizes) in files.items():
            if len(panels) >= 1 + (name == "paper"):
                figure = experiments_figure(panels, sizes=sizes)
                written.append(save_figure(figure, folder / file))
    return written


def _broadest(everything: Sequence[Runs], task: str) -> Experiment | None:
    """The experiment of a task that the paper's figures have: its network where there are three
    repetitions of several bag sizes with it, then the most bag sizes, then the most epochs."""

    def breadth(e: Experiment) -> tuple:
        mine = [runs for runs in everything if runs.experiment == e and not runs.holdout]
        sizes = {runs.size for runs in mine if len(runs.repetitions) >= FEWEST}
        papers = has_papers_network(task, e.model)
        return len(sizes) > 1, papers, e.start == "usual", len(sizes), e.epochs

    mine = [experiment for experiment in experiments_of(everything) if experiment.task == task]
    return max(mine, key=breadth, default=None)


def _report_page(
    command: str,
    folder: Path,
    everything: Sequence[Runs],
    experiments: Sequence[Experiment],
    choices: Sequence[Chosen],
) -> str:
    parts = [
        "# Results\n\nFor each method and bag size the best over learning rate and epoch of the "
        "mean over repetitions, with its standard error; the best is chosen on test data, as in "
        "the paper. A star, or a hollow point: found in the last epoch or at an end of the rates, "
        "so that longer runs or other rates may do better. Details: `best.csv`. What held-out bags "
        "choose, and what that costs: below and in `choice.csv`. Verdicts on what the paper says: "
        f"[claims.md](claims.md). Made by `{command}`.\n"
    ]
    for name, words in TOGETHER.items():
        if (folder / f"{name}.svg").exists():
            parts.append(f"![{words}]({name}.svg)\n")
    streams = sorted(folder.glob("online-*/online.md"))
    if streams:
        links = [f"[{path.parent.name}]({path.relative_to(folder)})" for path in streams]
        parts.append(f"Streams: {', '.join(links)}.\n")
    short = [e for e in experiments if _is_short(everything, e)]
    for experiment in experiments:
        if experiment not in short:
            parts += _section(everything, experiment)
    parts += [
        f"## {experiment.title}: chosen from held-out bags\n\nTest loss of what a share of "
        f"{holdout:g} of the bags chooses among the rates of a method, and among all methods. "
        "Fewer bags are left to learn from.\n\n"
        f"{choice_table(everything, choices, experiment, holdout)}"
        for experiment, holdout in sorted({(c.experiment, c.holdout) for c in choices})
    ]
    parts += ["# Too few repetitions to say anything\n"] * bool(short)
    for experiment in short:
        parts += _section(everything, experiment)
    return "\n".join(parts)


def _section(everything: Sequence[Runs], experiment: Experiment) -> list[str]:
    """The tables and figures of one experiment."""
    cells = {name: cells_of(everything, experiment, m) for name, m in METRICS.items()}
    parts = [f"## {experiment.data} ({details_of(cells['log-loss'])})\n"]
    for name, metric in METRICS.items():
        if cells[name].learned:
            table = experiment_table(cells[name])
            parts.append(f"{name_of(metric, experiment)}\n\n{table}")
            parts.append(f"![{name}]({experiment.name}-{name}.svg)\n")
    return parts


TOGETHER = {
    "paper-log-loss-zoom": "Test log loss over bag size, 16 to 1,024, one panel per task",
    "paper-log-loss": "Test log loss over all bag sizes, one panel per task",
    "paper-auc-zoom": "Test AUC over bag size, 16 to 1,024, one panel per task",
    "paper-auc": "Test AUC over all bag sizes, one panel per task",
}
FEWEST = 3  # repetitions, of which something may be said


def _is_short(everything: Sequence[Runs], experiment: Experiment) -> bool:
    """Whether no method has enough repetitions, while others of the task have."""
    most = {
        e: max(len(r.repetitions) for r in everything if r.experiment == e and not r.holdout)
        for e in experiments_of(everything)
        if e.task == experiment.task
    }
    return most[experiment] < FEWEST <= max(most.values())


BETTER = {"test_loss": min, "test_auc": max}
PANEL = 6  # methods beside each other; more would be too small to read
MARKS = (
    "Rate and epoch are the best on test. Bold: the best at a bag size; underlined: within one "
    "standard error of it, paired over the repetitions in common; a star: at an end of the rates "
    "or epochs that were run."
)
CONTROLS = " The unsmoothed controls have a best of their own."


PREAMBLE = """\
% Made by {command}. In a paper:
%   \\usepackage{{booktabs,graphicx}}
%   \\input{{tables}}"""


def latex_page(
    everything: Sequence[Runs],
    experiments: Sequence[Experiment],
    compare: tuple[Way, Way] | None = None,
) -> str:
    """All tables, to input into a paper that loads booktabs and graphicx.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    experiments : sequence of Experiment
        Those to show.
    compare : tuple of Way, optional
        Two methods: every table that has both gets a column with a paired t test between them.
    """
    parts = []
    for experiment, (name, metric) in product(experiments, METRICS.items()):
        cells = cells_of(everything, experiment, metric)
        if not cells.learned:
            continue
        caption = f"{experiment.data} ({details_of(cells)})"
        caption += f": {name_of(metric, experiment)}, mean and standard error. {MARKS}"
        ways, pair = in_order([way for way, _ in cells.learned]), None
        if compare and any(all((way, k) in cells.learned for way in compare) for k in cells.bags):
            pair = compare
            caption += f" p: of a paired t test of {pair[0].title} and {pair[1].title}, not "
            caption += "corrected for the number of sizes."
        caption += CONTROLS * any(way.loss not in LOSSES for way in ways)
        # Controls with another smoothing stand in panels of their own; as few panels as can be,
        # each of about as many methods.
        tabulars = []
        for usual in (True, False):
            some = [way for way in ways if (way.loss in LOSSES) == usual]
            width = ceil(len(some) / max(ceil(len(some) / PANEL), 1)) or 1
            for start in range(0, len(some), width):
                own = some[start : start + width]
                if tabulars:
                    tabulars.append(_panel(cells, own, some))
                else:
                    tabulars.append(_panel(cells, own, some, pair, _levels(cells)))
        label = f"tab:{experiment.name}-{name}"
        parts.append(floating(tabulars, caption=caption, label=label))
    return "\n\n".join(parts)


def _panel(
    results: BestCells,
    ways: Sequence[Way],
    rivals: Sequence[Way],
    compare: tuple[Way, Way] | None = None,
    foot: Sequence[Sequence[str]] = (),
) -> str:
    """Some methods by bag sizes, the best among their rivals marked, with a test and levels."""
    cells = results.learned
    sizes = sorted({size for way, size in cells if way in ways})
    header = ["bags of", *(way.title for way in ways)]
    if compare:
        header.append(", ".join(["p", *(way.title for way in compare)]))
    rows, best, level = [], [], []
    for row, k in enumerate(sizes):
        there = {way: average for (way, size), average in cells.items() if size == k}
        able = [way for way in rivals if way in there]
        first = BETTER[results.metric](able, key=lambda way: there[way].mean)
        rows.append([str(k), *(str(there.get(way, "")) for way in ways)])
        for column, way in enumerate(ways, 1):
            if way == first:
                best.append((row, column))
            elif way in there:
                gap, error = there[way].minus(there[first])
                level += [(row, column)] * bool(abs(gap) <= error)
        if compare:  # a paired t test between two methods, where both have runs
            pair = [there[way] for way in compare if way in there]
            text, p = "", np.nan
            if len(pair) == 2:
                p = pair[0].p_value(pair[1])
            if np.isfinite(p):
                text = f"{p:.2g}"
            if p < 0.001:
                text = "< 0.001"
            rows[-1].append(text)
    return as_latex(header, rows, bold=best, underlined=level, foot=foot)


def _levels(results: BestCells) -> list[list[str]]:
    """What labels and the trivial predictor reach."""
    foot = []
    if results.labels is not None:
        foot.append(["labels", str(results.labels)])
    if results.metric == "test_loss":
        foot.append(["trivial", f"{results.trivial:.4f}"])
    return foot
