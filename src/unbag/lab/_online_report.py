"""Online runs in, tables, figures and verdicts out: average and per-chunk log loss and AUC, as in
the paper.

A claim that A is ahead of B is supported when the mean paired difference over repetitions favours A
by more than one standard error. "Over the whole run" means in every chunk after the first. Where
fewer than half of the paper's events were streamed, its claims are not comparable: large bags need
many events.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from unbag._rules import broken
from unbag.lab._claims import (
    LARGE,
    NOT_COMPARABLE,
    NOT_RUN,
    NOT_SUPPORTED,
    SUPPORTED,
    Verdict,
    as_markdown,
)
from unbag.lab._methods import Way
from unbag.lab._online_plan import Cell, OnlinePlan
from unbag.lab._online_run import finals
from unbag.lab._online_store import OnlineStore
from unbag.lab._plots import LOOKS, OURS
from unbag.plots import GREY, PAPER, Look, save_figure

PAPER_EVENTS = 37_000_000  # as the paper says of Criteo's training data
METRICS = {"log-loss": ("label_log_loss", "log loss"), "auc": ("label_auc", "AUC")}
Results = dict[Cell, list[dict[str, Any]]]


def write_online_report(plan: OnlinePlan, store: OnlineStore, folder: str | Path) -> list[Path]:
    """Everything that the finished runs of a plan say."""
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
        page += [
            "## Regret: log loss above that of the true probability\n",
            _table(plan, results, "regret"),
        ]
    page += ["## Claims\n", as_markdown(judge_online(plan, results))]
    (folder / "online.md").write_text("\n".join(page))
    return [*written, folder / "online.md"]


def results_of(plan: OnlinePlan, store: OnlineStore) -> Results:
    """The finished runs of a plan at each cell's best rate."""
    return {cell: runs for cell in plan.cells() if (runs := finals(plan, cell, store))}


def _about(plan: OnlinePlan, results: Results) -> str:
    chunks = {len(run["label_log_loss"]) for runs in results.values() for run in runs}
    chosen = (
        f"the first {plan.tuning} chunks of one repetition"
        if plan.tuning
        else "all chunks and repetitions"
    )
    return (
        f"{max(chunks)} chunks of {plan.rows} ({max(chunks) * plan.rows:,} events; the paper's "
        f"data have {PAPER_EVENTS:,}), batches of {plan.batch}, {plan.repetitions} repetitions, "
        f"network `{plan.model}` with the usual initialisation, no smoothing; each chunk is "
        f"predicted before it is learned. The rate (of {len(plan.rates)}) has the lowest average "
        f"log loss over {chosen}. Mean and standard error over repetitions of the average over "
        "chunks. A star: the rate is at an end of those tried, so that another may do better.\n"
    )


def _values(runs: Sequence[dict[str, Any]], metric: str) -> np.ndarray:
    """(repetitions, chunks)."""
    if metric == "regret":
        return _values(runs, "label_log_loss") - _values(runs, "true_log_loss")
    return np.array([run[metric] for run in runs], float)


def _mean(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error over repetitions."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def _named(cell: Cell) -> str:
    return cell.way.title + (", prior of the first chunk" if cell.prior == "first" else "")


def _table(plan: OnlinePlan, results: Results, metric: str) -> str:
    sizes = sorted({cell.size for cell in results if cell.way.method != "labels"})
    lines = [f"| | {' | '.join(f'k = {k}' for k in sizes)} |", f"|---|{'---|' * len(sizes)}"]
    for name in dict.fromkeys(_named(cell) for cell in results):
        cells = {cell.size: runs for cell, runs in results.items() if _named(cell) == name}
        told = []
        for k in sizes:
            runs = cells.get(k) or cells.get(1 if name == "labels" else -1)
            mean, error = _mean(_values(runs, metric).mean(axis=1)) if runs else (np.nan, np.nan)
            star = "*" if runs and runs[0]["rate"] in (min(plan.rates), max(plan.rates)) else ""
            rate = f" (rate {runs[0]['rate']:.2g}{star})" if runs else ""
            told.append(f"{mean:.4f} ± {error:.4f}{rate}" if runs else "")
        lines.append(f"| {name} | {' | '.join(told)} |")
    return "\n".join([*lines, ""])


def draw_online(plan: OnlinePlan, results: Results, metric: str, title: str) -> Figure:
    """Left: the average over chunks by bag size. Right: chunk by chunk at the largest size. Bands:
    a standard error."""
    with rc_context(PAPER):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        shown = {cell: runs for cell, runs in results.items() if cell.prior == "chunk"}
        for way in dict.fromkeys(cell.way for cell in shown):
            mine = {cell.size: runs for cell, runs in sorted(shown.items()) if cell.way == way}
            colour, marker, _ = _look(way)
            if way.method == "labels":
                left.axhline(
                    _mean(_values(mine[1], metric).mean(axis=1))[0],
                    color=GREY,
                    linestyle="--",
                    linewidth=0.9,
                )
            else:
                points = np.array(
                    [_mean(_values(runs, metric).mean(axis=1)) for runs in mine.values()]
                )
                _band(
                    left,
                    np.array(list(mine)),
                    points,
                    colour,
                    marker=marker,
                    markersize=3.5,
                    label=way.title,
                )
            values = _values(mine[max(mine)], metric)
            error = (
                values.std(axis=0, ddof=1) / np.sqrt(len(values))
                if len(values) > 1
                else 0 * values[0]
            )
            style = {"linestyle": "--"} if way.method == "labels" else {}
            chunks = np.arange(1, values.shape[1] + 1)
            _band(
                right,
                chunks,
                np.stack([values.mean(axis=0), error], axis=1),
                colour,
                label=way.title,
                **style,
            )
        truth = _values(next(iter(shown.values())), "true_log_loss")[0]
        if metric == "label_log_loss" and np.isfinite(truth).any():
            right.plot(
                np.arange(1, len(truth) + 1),
                truth,
                color=GREY,
                linewidth=0.9,
                linestyle=":",
                label="the truth",
            )
        left.set(xlabel="bag size", ylabel=f"average chunk {title}")
        left.set_xscale("log", base=2)
        right.set(
            xlabel=f"chunk of {plan.rows}", ylabel=f"{title}, bags of {max(c.size for c in shown)}"
        )
        for panel in (left, right):
            panel.spines[["top", "right"]].set_visible(False)
            panel.grid(axis="y", color="#e6e6e6", linewidth=0.7)
        lines = [
            panel.get_legend_handles_labels() for panel in (right, left)
        ]  # the left ones have markers
        named = {name: line for pair in lines for line, name in zip(*pair, strict=True)}
        figure.legend(
            list(named.values()), list(named), loc="outside lower center", ncols=4, frameon=False
        )
    return figure


def _look(way: Way) -> Look:
    if way.method == "anchored" and way.loss == "square":
        return OURS
    return LOOKS.get(way.method, Look(GREY, "x"))


def _band(panel: Any, x: np.ndarray, points: np.ndarray, colour: str, **style: Any) -> None:
    mean, error = points[:, 0], np.nan_to_num(points[:, 1])
    panel.plot(x, mean, color=colour, linewidth=1.3, **style)
    panel.fill_between(x, mean - error, mean + error, color=colour, alpha=0.18, linewidth=0)


def judge_online(plan: OnlinePlan, results: Results) -> list[Verdict]:
    """The paper's claims on the online experiment, at the large bag sizes of the plan."""
    large = [k for k in sorted(plan.sizes) if k >= min(LARGE)] or [max(plan.sizes)]
    told = [verdict for size in large for verdict in _of_size(plan, results, size)]
    events = plan.rows * max(
        (len(run["label_log_loss"]) for runs in results.values() for run in runs), default=0
    )
    if events >= PAPER_EVENTS / 2:
        return told
    return [v if v.verdict == NOT_RUN else v._replace(verdict=NOT_COMPARABLE) for v in told]


def _of_size(plan: OnlinePlan, results: Results, size: int) -> list[Verdict]:
    where = f"{plan.source}, k = {size}"
    cell = lambda method, prior="chunk": Cell(Way(method, "log"), size, prior)
    upm, easy, pm = cell("upm"), cell("easy"), cell("matching")
    moving = "needs the prior of each chunk: lower log loss than with that of the first"
    claims = [
        ("GeneralUPM has a lower average log loss than PM", upm, pm, "label_log_loss"),
        ("GeneralUPM has a lower average log loss than EasyLLP", upm, easy, "label_log_loss"),
        ("EasyLLP has a higher average AUC than PM", easy, pm, "label_auc"),
    ]
    if size == max(plan.sizes):  # only these were run with the prior of the first chunk
        claims.append((f"GeneralUPM {moving}", upm, cell("upm", "first"), "label_log_loss"))
        claims.append((f"EasyLLP {moving}", easy, cell("easy", "first"), "label_log_loss"))
    told = [
        Verdict("paper", claim, where, *_ahead(results, a, b, metric))
        for claim, a, b, metric in claims
    ]
    return [
        *told,
        Verdict(
            "paper",
            "GeneralUPM is better than PM in every chunk",
            where,
            *_always(results, upm, pm),
        ),
    ]


def _ahead(results: Results, a: Cell, b: Cell, metric: str) -> tuple[str, str]:
    if a not in results or b not in results:
        return NOT_RUN, ""
    of = lambda cell: {
        run["repetition"]: float(_values([run], metric).mean()) for run in results[cell]
    }
    both = sorted(of(a).keys() & of(b).keys())
    if len(both) < 2:
        return NOT_RUN, ""
    mine, other = (np.array([of(cell)[s] for s in both]) for cell in (a, b))
    gap, error = _mean((mine - other) * (1 if metric == "label_log_loss" else -1))
    verdict = SUPPORTED if gap < -error else NOT_SUPPORTED
    return (
        verdict,
        (
            f"{_named(a)} {mine.mean():.4f}, {_named(b)} {other.mean():.4f}, error of the "
            f"difference {error:.4f}"
        ),
    )


def _always(results: Results, a: Cell, b: Cell) -> tuple[str, str]:
    if a not in results or b not in results:
        return NOT_RUN, ""
    mine, other = (_values(results[cell], "label_log_loss").mean(axis=0)[1:] for cell in (a, b))
    better = int((mine < other).sum())
    return SUPPORTED if better == len(
        mine
    ) else NOT_SUPPORTED, f"in {better} of {len(mine)} chunks after the first"
