"""The tables of a report in LaTeX: the best of a bag size in bold, what is as good underlined.

A method is as good as the best where their mean paired difference is within one standard error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from unbag.lab._methods import Way
from unbag.lab._plan import Experiment
from unbag.lab._plots import details_of, name_of
from unbag.lab._results import METRICS, Average, BestCells, Runs, cells_of, in_order
from unbag.lab._tables import as_latex

BETTER = {"test_loss": min, "test_auc": max}


def latex_page(
    everything: Sequence[Runs],
    experiments: Sequence[Experiment],
    compare: tuple[Way, Way] | None = None,
) -> str:
    """All tables, to input into a paper that loads booktabs.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    experiments : sequence of Experiment
        Those to show.
    compare : tuple of Way, optional
        Two methods: a paired t test at each bag size stands below every table.
    """
    parts = ["% made by unbag reproduce --report ... --latex; needs \\usepackage{booktabs}"]
    for experiment, metric in product(experiments, METRICS.values()):
        cells = cells_of(everything, experiment, metric)
        if cells.learned:
            caption = f"{experiment.data} ({details_of(cells)})"
            caption += f": {name_of(metric, experiment)}, mean and standard error."
            parts.append(_table(cells, caption, compare))
    return "\n\n".join(parts) + "\n"


def _table(results: BestCells, caption: str, compare: tuple[Way, Way] | None) -> str:
    cells = results.learned
    sizes, ways = sorted({size for _, size in cells}), in_order([way for way, _ in cells])
    rows = [[way.title, *(str(cells.get((way, k), "")) for k in sizes)] for way in ways]
    foot = []
    if results.labels is not None:
        foot.append(["labels", *[str(results.labels)] * len(sizes)])
    if results.metric == "test_loss":
        foot.append(["trivial", *[f"{results.trivial:.4f}"] * len(sizes)])
    if compare:
        foot.append(_tests(cells, compare, sizes))
    best, level = [], []
    for column, k in enumerate(sizes, 1):
        there = {row: cells[way, k] for row, way in enumerate(ways) if (way, k) in cells}
        first = BETTER[results.metric](there, key=lambda row: there[row].mean)
        best.append((first, column))
        level += [(row, column) for row in there if row != first and _as_good(there, row, first)]
    header = ["bags of", *map(str, sizes)]
    return as_latex(header, rows, caption=caption, bold=best, underlined=level, foot=foot)


def _as_good(there: Mapping[int, Average], row: int, first: int) -> bool:
    gap, error = there[row].minus(there[first])
    return abs(gap) <= error


def _tests(
    cells: Mapping[tuple[Way, int], Average], compare: tuple[Way, Way], sizes: Sequence[int]
) -> list[str]:
    """p values of a paired t test between two methods."""
    a, b = compare
    both = [k for k in sizes if (a, k) in cells and (b, k) in cells]
    values = {k: f"{cells[a, k].p_value(cells[b, k]):.2g}" for k in both}
    return [f"p, {a.title} and {b.title}", *(values.get(k, "") for k in sizes)]
