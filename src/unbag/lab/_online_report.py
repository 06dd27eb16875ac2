"""The report of the online experiment: average and per-chunk log loss and AUC, as in the paper.

The paper's claim is judged as those of the batch experiments are (see `_claims`). Where fewer
than half of the paper's events were streamed, it is not comparable: large bags need many events.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unbag._rules import broken
from unbag.lab._claims import (
    ERRORS,
    LARGE,
    NOT_COMPARABLE,
    NOT_RUN,
    ClaimVerdict,
    Duel,
    duel_of,
    is_best,
    verdict_table,
)
from unbag.lab._figures import GREY, PAPER, name_sizes, save_figure, share_legend
from unbag.lab._methods import LOOKS, OUR_LOOK, Way
from unbag.lab._online import Cell, OnlinePlan, OnlineStore, finals
from unbag.lab._results import Average, mean_and_error
from unbag.lab._tables import as_markdown
from unbag.plots import CurveLook, Level, Series, draw_curves, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_EVENTS = 37_000_000  # as the paper says of Criteo's training data
METRICS = {"log-loss": ("label_log_loss", "log loss"), "auc": ("label_auc", "AUC")}
TITLES = {"criteo": "Criteo", "clicks": "made-up clicks"}
Results = dict[Cell, list[dict[str, Any]]]


def write_online_report(plan: OnlinePlan, store: OnlineStore, folder: str | Path) -> list[Path]:
    """Everything that the finished runs of a plan say.

    Parameters
    ----------
    plan : OnlinePlan
        Which runs.
    store : OnlineStore
        Where they are.
    folder : str or Path
        Where the report goes.
    """
    results = results_of(plan, store)
    if not results:
        raise broken(
            "A report must have runs",
            f"{store.folder} has none of this plan",
            "Make them: unbag online",
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    page = [f"# The online experiment: {plan.source}\n", _about(plan, results)]
    written = []
    for name, (metric, title) in METRICS.items():
        figure = draw_online(plan, results, metric, title)
        written.append(save_figure(figure, folder / f"online-{name}"))
        page += [f"## {title}\n", _table(plan, results, metric), f"![{title}](online-{name}.svg)\n"]
    if np.isfinite(_values(next(iter(results.values())), "true_log_loss")).all():
        page.append("## Regret: log loss above that of the true probability\n")
        page.append(_table(plan, results, "regret"))
    page += ["## The claim\n", verdict_table([judge_online(plan, results)])]
    (folder / "online.md").write_text("\n".join(page))
    return [*written, folder / "online.md"]


def results_of(plan: OnlinePlan, store: OnlineStore) -> Results:
    """The finished runs of a plan at each cell's best rate."""
    return {cell: runs for cell in plan.cells() if (runs := finals(plan, cell, store))}


def _about(plan: OnlinePlan, results: Results) -> str:
    chunks = {len(run["label_log_loss"]) for runs in results.values() for run in runs}
    chosen = "all chunks and repetitions"
    if plan.tuning:
        chosen = f"the first {plan.tuning} chunks of one repetition"
    return (
        f"{max(chunks)} chunks of {plan.rows} ({max(chunks) * plan.rows:,} events; the paper's "
        f"data have {PAPER_EVENTS:,}), batches of {plan.batch}, {plan.repetitions} repetitions, "
        f"network `{plan.model}` with the usual initialisation, no smoothing; each chunk is "
        f"predicted before it is learned. The rate (of {len(plan.rates)}) has the lowest average "
        f"log loss over {chosen}. Mean and standard error over repetitions of the average over "
        "chunks. A star: the rate is at an end of those tried, so that another may do better. The "
        "trivial predictor gives every event the share of clicks in the chunk before.\n"
    )


def _values(runs: Sequence[dict[str, Any]], metric: str) -> np.ndarray:
    """(repetitions, chunks)."""
    if metric == "regret":
        return _values(runs, "label_log_loss") - _values(runs, "true_log_loss")
    return np.array([run[metric] for run in runs], float)


def _average(plan: OnlinePlan, runs: Sequence[dict[str, Any]], metric: str) -> Average:
    """Over repetitions, of the average over chunks; all runs have the best rate."""
    values, rate = _values(runs, metric).mean(axis=1), runs[0]["rate"]
    seeds = tuple(run["repetition"] for run in runs)
    edge = rate in (min(plan.rates), max(plan.rates))
    return Average(*mean_and_error(values), values, seeds, rate, edge=edge)


def _named(cell: Cell) -> str:
    return cell.way.title + ", prior of the first chunk" * (cell.prior == "first")


def _table(plan: OnlinePlan, results: Results, metric: str) -> str:
    sizes = sorted({cell.size for cell in results if cell.way.method != "labels"})
    rows = []
    for name in dict.fromkeys(_named(cell) for cell in results):
        cells = {cell.size: runs for cell, runs in results.items() if _named(cell) == name}
        if name == "labels":
            cells = dict.fromkeys(sizes, cells[1])
        numbers = [_number(plan, cells.get(k, []), metric) for k in sizes]
        rows.append([name, *numbers])
    if metric == "label_log_loss":
        rows.append(["(trivial)", *[f"{_trivial(results, metric).mean():.4f}"] * len(sizes)])
    return as_markdown(["", *(f"k = {k}" for k in sizes)], rows)


def _number(plan: OnlinePlan, runs: Sequence[dict[str, Any]], metric: str) -> str:
    if not runs:
        return ""
    mean, error, *_, rate, _, edge = _average(plan, runs, metric)
    return f"{mean:.4f} ± {error:.4f} (rate {rate:.2g}{'*' * edge})"


def draw_online(plan: OnlinePlan, results: Results, metric: str, title: str) -> Figure:
    """Left: the average over chunks by bag size. Right: chunk by chunk at the largest size.

    Bars are a standard error.

    Parameters
    ----------
    plan : OnlinePlan
        Which runs.
    results : dict
        The runs of each cell.
    metric, title : str
        What to draw, and its name.
    """
    from matplotlib import rc_context

    shown = {cell: runs for cell, runs in results.items() if cell.prior == "chunk"}
    sizes, chunks, levels = [], [], []
    for way in dict.fromkeys(cell.way for cell in shown):
        mine = {cell.size: runs for cell, runs in sorted(shown.items()) if cell.way == way}
        averages = np.array([_average(plan, runs, metric)[:2] for runs in mine.values()])
        if way.method == "labels":
            levels.append(Level("labels", averages[0, 0]))
        else:
            sizes.append(_series(way, list(mine), averages))
        values = _values(mine[max(mine)], metric)
        points = np.array([mean_and_error(chunk) for chunk in values.T])
        chunks.append(_series(way, range(1, len(points) + 1), points))
    trivial = _trivial(shown, metric)
    levels.append(Level("trivial predictor", trivial.mean(), ":"))
    truth = _values(next(iter(shown.values())), "true_log_loss")[0]
    if metric == "label_log_loss" and np.isfinite(truth).any():
        x = range(1, len(truth) + 1)
        chunks.append(Series("the truth", x, truth, look=CurveLook(GREY, dashes=":")))
    with rc_context(PAPER):  # pyright: ignore[reportArgumentType]
        figure = new_figure(8.4, 3.4)
        left, right = figure.subplots(1, 2)
        by_size, by_chunk = (
            f"average chunk {title}",
            f"{title}, bags of {max(c.size for c in shown)}",
        )
        how: Any = {"bars": True, "outliers": True}
        draw_curves(left, sizes, x="bag size", y=by_size, levels=levels, dots=True, **how)
        name_sizes(left, sorted({cell.size for cell in shown if cell.way.method != "labels"}))
        draw_curves(right, chunks, x=f"chunk of {plan.rows:,}", y=by_chunk, **how)
        right.plot(range(1, len(trivial) + 1), trivial, ":", color=GREY, linewidth=1)
        figure.suptitle(_caption(plan, len(trivial)), fontsize=8, color=GREY)
        share_legend(figure)
    return figure


def _caption(plan: OnlinePlan, chunks: int) -> str:
    network = "the paper's network" if plan.model == "paper" else f"network {plan.model}"
    return (
        f"{TITLES.get(plan.source, plan.source)}: {chunks} chunks of {plan.rows:,}; {network}, "
        f"usual start; {plan.repetitions} repetitions"
    )


def _trivial(results: Results, metric: str) -> np.ndarray:
    """What the share of clicks in the chunk before would have, chunk by chunk; a half at first."""
    share = _values(next(iter(results.values())), "prior_of_chunk")[0]
    if metric == "label_auc":
        return np.full(len(share), 0.5)
    before = np.concatenate([[0.5], share[:-1]])
    return -share * np.log(before) - (1 - share) * np.log1p(-before)


def _series(way: Way, x: Sequence[int], points: np.ndarray) -> Series:
    mean, error = points[:, 0], np.nan_to_num(points[:, 1])
    look = LOOKS.get(way.method, CurveLook(GREY, dashes="--"))
    if way.is_ours:
        look = OUR_LOOK
    return Series(way.title, x, mean, mean - error, mean + error, look)


def judge_online(plan: OnlinePlan, results: Results) -> ClaimVerdict:
    """The paper's claim on the online experiment, at the large bag sizes of the plan."""
    large = [k for k in sorted(plan.sizes) if k >= min(LARGE)] or [max(plan.sizes)]
    claim = (
        "on a stream GeneralUPM is much better than PM and EasyLLP at large bag sizes, at the "
        "largest over the entire duration; by AUC EasyLLP is ahead of PM too"
    )
    upm, easy, pm = (Way(method, "log") for method in ("upm", "easy", "matching"))
    duels = [
        duel
        for size in large
        for other in (pm, easy)
        if (duel := _duel(plan, results, Cell(upm, size, "chunk"), Cell(other, size, "chunk")))
    ]
    verdict, reason = is_best(duels, large)
    k = max(large)
    reason += f". At {k}: {_always(results, Cell(upm, k, 'chunk'), Cell(pm, k, 'chunk'))}"
    there = [results.get(Cell(way, k, "chunk")) for way in (pm, easy, upm)]
    aucs = ["not run" if r is None else f"{_average(plan, r, 'label_auc').mean:.4f}" for r in there]
    reason += f"; AUC of PM {aucs[0]}, EasyLLP {aucs[1]}, GeneralUPM {aucs[2]}"
    events = plan.rows * max(_values(runs, "label_log_loss").shape[1] for runs in results.values())
    if verdict != NOT_RUN and events < PAPER_EVENTS / 2:
        verdict, reason = (
            NOT_COMPARABLE,
            f"{events:,} of the paper's {PAPER_EVENTS:,} events; {reason}",
        )
    return ClaimVerdict(
        "paper", claim, f"{TITLES[plan.source]}, chunks of {plan.rows:,}", verdict, reason
    )


def _duel(plan: OnlinePlan, results: Results, a: Cell, b: Cell) -> Duel | None:
    """Two methods over the whole stream, by log loss."""
    if a not in results or b not in results:
        return None
    pair = {cell.way: _average(plan, results[cell], "label_log_loss") for cell in (a, b)}
    duel = duel_of(a.size, pair, -1)
    if duel.repetitions < 2:
        return None
    winner = list(pair.values())[not duel.lead > 0]
    trivial = _trivial(results, "label_log_loss").mean()
    return duel._replace(useful=bool(winner.mean + ERRORS * winner.error < trivial))


def _always(results: Results, a: Cell, b: Cell) -> str:
    if a not in results or b not in results:
        return "not run"
    mine, other = (_values(results[cell], "label_log_loss").mean(axis=0)[1:] for cell in (a, b))
    better = int((mine < other).sum())
    return f"{a.way.title} ahead of {b.way.title} in {better} of {len(mine)} chunks after the first"
