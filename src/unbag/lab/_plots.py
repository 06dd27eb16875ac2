"""The figures of a store's results: test log loss and AUC over the bag size, as in the paper."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from unbag.lab._figures import experiments_figure
from unbag.lab._methods import LOOKS, OUR_LOOK, Way
from unbag.lab._plan import Experiment
from unbag.lab._results import BestCells, Metric, Runs, cells_of, in_order
from unbag.lab._tasks import TASKS
from unbag.plots import CurveLook, Point, Result

OTHERS = (CurveLook("#444444", "X"), CurveLook("#8C564B", "*"), CurveLook("#B8A800", "h"))


def name_of(metric: Metric, experiment: Experiment) -> str:
    """What the axis shows."""
    if metric == "test_auc":
        return "test AUC"
    if experiment.task in TASKS and TASKS[experiment.task].kind == "total":
        return "test Poisson loss"
    return "test log loss"


def draw(
    everything: Sequence[Runs],
    experiments: Sequence[Experiment],
    metric: Metric,
    *,
    sizes: Sequence[int] | None = None,
) -> Figure:
    """One panel for each experiment.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    experiments : sequence of Experiment
        Those to draw.
    metric : {"test_loss", "test_auc"}
        What to draw.
    sizes : sequence of int, optional
        Zoom: only bags of these sizes, and only as much of the axis as their curves take.
    """
    results = [r for e in experiments if (r := result_of(everything, e, metric)) is not None]
    if sizes is None:
        return experiments_figure(results)
    return experiments_figure([_only(result, sizes) for result in results], zoom=True)


def _only(result: Result, sizes: Sequence[int]) -> Result:
    methods = {
        name: kept
        for name, points in result.methods.items()
        if (kept := [point for point in points if point.size in sizes])
    }
    bags = {size: count for size, count in result.bags.items() if size in sizes}
    return result._replace(methods=methods, bags=bags)


def result_of(everything: Sequence[Runs], experiment: Experiment, metric: Metric) -> Result | None:
    """The best results of an experiment by method and bag size; None when there are none.

    Parameters
    ----------
    everything : sequence of Runs
        All runs of a store.
    experiment : Experiment
        Which of them.
    metric : {"test_loss", "test_auc"}
        What counts.
    """
    cells = cells_of(everything, experiment, metric)
    if not cells.learned:
        return None
    ways = in_order([way for way, _ in cells.learned])
    methods: dict[str, list[Point]] = {way.title: [] for way in ways}
    for (way, size), cell in sorted(cells.learned.items()):
        methods[way.title].append(Point(size, cell.mean, cell.error, cell.edge))
    levels = {"trivial predictor": cells.trivial}
    if cells.labels is not None:
        levels["labels"] = cells.labels.mean
    sizes = {size for _, size in cells.learned}
    return Result(
        data=experiment.data,
        details=details_of(cells),
        metric=name_of(metric, experiment),
        better={"test_loss": "lower", "test_auc": "higher"}[metric],
        bags={size: count for size, count in cells.bags.items() if size in sizes},
        methods=methods,
        levels=levels,
        looks={way.title: _look(way, ways) for way in ways},
    )


def details_of(cells: BestCells) -> str:
    """What belongs into every caption: network, start and epochs, whether the network is the
    paper's, and the rows where they are fewer."""
    experiment = cells.experiment
    task, parts = TASKS.get(experiment.task), [experiment.details]
    if task is None or not task.paper_rows:
        return experiment.details
    if task.model == experiment.model:
        parts.append("the paper's network")
    if cells.rows < 0.9 * task.paper_rows and not experiment.rows:
        parts.append(f"{cells.rows:,} of the paper's {task.paper_rows:,} rows")
    return "; ".join(parts)


def _look(way: Way, ways: Sequence[Way]) -> CurveLook:
    """The look of a method; further curves of a method take one of the others."""
    if way.is_ours:
        return OUR_LOOK
    first = {each.method: each for each in reversed(ways) if not each.is_ours}
    others = [
        each
        for each in ways
        if not each.is_ours and (each.method not in LOOKS or first[each.method] != each)
    ]
    if way in others:
        return OTHERS[others.index(way) % len(OTHERS)]
    return LOOKS[way.method]
