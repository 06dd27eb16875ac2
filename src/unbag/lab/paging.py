"""Runs and verdicts in, a page to read in a browser out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unbag.lab import plots
from unbag.lab.claims import Verdict
from unbag.lab.plans import Experiment
from unbag.lab.reporting import Metric, Runs, best_on_test, in_order
from unbag.page.experiments import Claim, Point, Result, experiments_page
from unbag.page.rendering import write_page

METRICS: tuple[Metric, ...] = ("test_loss", "test_auc")


def write_index(
    folder: Path, line: str, everything: Sequence[Runs], experiments: Sequence[Experiment], verdicts: Sequence[Verdict]
) -> Path:
    """Write `index.html` beside the tables."""
    found = [result_of(everything, e, metric) for e in experiments for metric in METRICS]
    claims = [Claim(f"{v.claim} ({v.whose})", *v[2:]) for v in verdicts]
    page = experiments_page(line, [result for result in found if result is not None], claims)
    return write_page(page, folder / "index.html", force=True)


def result_of(everything: Sequence[Runs], experiment: Experiment, metric: Metric) -> Result | None:
    """The best results of an experiment by method and bag size; None when there are none."""
    mine = [runs for runs in everything if runs.experiment == experiment and not runs.holdout]
    cells = {(runs.way, runs.size): found for runs in mine if (found := best_on_test(runs, metric))}
    learned = {pair: found for pair, found in cells.items() if pair[0].method != "labels"}
    if not learned:
        return None
    point = lambda way: [Point(k, f.mean, f.error) for (w, k), f in sorted(learned.items()) if w == way]
    levels = {"trivial predictor": mine[0].trivial} if metric == "test_loss" else {}
    labels = [found.mean for (way, _), found in cells.items() if way.method == "labels"]
    levels |= {"labels": labels[0]} if labels else {}
    bags = dict(sorted((runs.size, runs.bags) for runs in mine if runs.way.method != "labels"))
    methods = {way.title: point(way) for way in in_order([way for way, _ in learned])}
    better = "lower" if metric == "test_loss" else "higher"
    return Result(experiment.title, plots.name_of(metric, experiment), better, bags, methods, levels)
