"""The paper's online experiment: predict each chunk, then learn from its bags, in one pass.

A plan says which runs to make, from a preset or keywords. What is in the store is not made again,
and several processes may share it. The learning rate is chosen by the average log loss of the
predictions, as in the paper, which takes labels: over all chunks and repetitions when `tuning` is
0, else over the first `tuning` chunks of repetition 0. No smoothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

import unbag
from unbag import models
from unbag._io import whole
from unbag._rules import broken, one_of
from unbag.datasets import BUCKETS, CHUNK, DIMENSIONS, Chunk, read_clicks, read_criteo
from unbag.lab._catalogue import LOOKS, OUR_LOOK, WAYS, Way
from unbag.lab._claims import (
    LARGE,
    NOT_COMPARABLE,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    ClaimVerdict,
    Duel,
    duel_of,
    is_best,
    verdict_table,
)
from unbag.lab._figures import GREY, PAPER, curve_of_means, name_sizes, save_figure, share_legend
from unbag.lab._markup import as_latex, as_markdown
from unbag.lab._plan import as_tuple, check_counts, identity_of, shipped
from unbag.lab._results import Average, mean_and_error
from unbag.lab._store import RunFolder, schema_of
from unbag.plots import CurveLook, Level, Series, draw_curves, new_figure
from unbag.stream import StreamLearner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRID = tuple(float(f"{rate:.6g}") for rate in np.logspace(-7, -1, 16))
SOURCES = ("criteo", "clicks")
LEAST: dict[str, int] = {"repetitions": 1, "chunks": 0, "rows": 1, "batch": 1, "tuning": 0}


def _small_network(seed: int) -> models.Mixed:
    """Embeddings of 4 and 16 hidden units, for trying things out; drawn by NumPy, which has nothing
    to compile."""
    rng = np.random.default_rng(seed)
    shapes = [*((buckets, 4) for buckets in BUCKETS), (16, 4 * len(BUCKETS)), (1, 16)]
    drawn = [rng.normal(size=shape) / shape[-1] ** 0.5 for shape in shapes]
    *tables, first, last = (jnp.asarray(array, jnp.float32) for array in drawn)
    layers = (models.Dense(first.T, jnp.zeros(16)), models.Dense(last.T, jnp.zeros(1)))
    return models.Mixed(tuple(tables), models.Network(layers))


NETWORKS: dict[str, Callable[[int], models.Mixed]] = {
    "paper": lambda seed: models.embedding_network(BUCKETS, DIMENSIONS, key=seed),
    "small": _small_network,
}
"""From a seed to a network; `paper` has the usual initialisation."""


class OnlineRun(NamedTuple):
    """Everything that decides how a run ends; its identity.

    Parameters
    ----------
    source, model, method, loss, prior : str
        As in `OnlinePlan`.
    size, repetition, rows, batch : int
        As in `OnlinePlan`.
    rate : float
        Learning rate of Adam.
    chunks : int
        How many; 0 for all there are.
    """

    source: str
    model: str
    method: str
    loss: str
    size: int
    rate: float
    repetition: int
    chunks: int
    rows: int
    batch: int
    prior: str


class Cell(NamedTuple):
    """Runs that share all but rate and repetition: one point of a figure."""

    way: Way
    size: int
    prior: str


@dataclass(frozen=True)
class OnlinePlan:
    """Which runs to make.

    Parameters
    ----------
    source : {"criteo", "clicks"}
        The file in the data folder, or made clicks.
    model : {"paper", "small"}
        The network.
    methods : tuple of str
        "method" or "method:loss".
    sizes : tuple of int
        Of the bags.
    rates : tuple of float
        Learning rates of Adam.
    repetitions : int
        How often each run is made, each time with another initialisation.
    chunks : int
        How many; 0 for all.
    rows : int
        Events in a chunk.
    batch : int
        Events in a step.
    priors : tuple of str
        "chunk" as in the paper, "first" for a prior that stays that of the first chunk (GeneralUPM
        and EasyLLP).
    tuning : int
        Chunks that choose the rate; 0 for all runs at all rates.
    """

    source: str = "criteo"
    model: str = "paper"
    methods: tuple[str, ...] = WAYS["binary"]
    sizes: tuple[int, ...] = tuple(2**i for i in range(12))
    rates: tuple[float, ...] = GRID
    repetitions: int = 5
    chunks: int = 0
    rows: int = CHUNK
    batch: int = 4096
    priors: tuple[str, ...] = ("chunk", "first")
    tuning: int = 0

    def __post_init__(self) -> None:
        for name, kind in (("methods", str), ("sizes", int), ("rates", float)):
            object.__setattr__(self, name, as_tuple(name, getattr(self, name), kind))
        object.__setattr__(self, "methods", tuple(str(Way.named(text)) for text in self.methods))
        for thing, known in (("source", SOURCES), ("model", NETWORKS)):
            one_of(f"An online plan's {thing}", getattr(self, thing), known)
        check_counts(self, LEAST)
        if max(self.sizes) * 2 > self.rows:
            rule = "A bag size must leave at least 2 bags in a chunk"
            remedy = "Make the bags smaller."
            raise broken(rule, f"bags of {max(self.sizes)} given for chunks of {self.rows}", remedy)

    def cells(self) -> Iterator[Cell]:
        """Labels, then the largest bags: that is where methods differ."""
        ways = [Way.named(text) for text in self.methods]
        yield from (Cell(way, 1, "chunk") for way in ways if way.method == "labels")
        others, largest = [way for way in ways if way.method != "labels"], max(self.sizes)
        for size, way in product(sorted(self.sizes, reverse=True), others):
            yield Cell(way, size, "chunk")
            if "first" in self.priors and way.method in ("upm", "easy") and size == largest:
                yield Cell(way, size, "first")

    def run(self, cell: Cell, rate: float, repetition: int, chunks: int) -> OnlineRun:
        """One run of a cell.

        Parameters
        ----------
        cell : Cell
            Method, bag size and prior.
        rate : float
            Learning rate of Adam.
        repetition, chunks : int
            Which repetition, and how many chunks.
        """
        (method, loss), size, prior = cell
        own = (method, loss, size, float(f"{rate:.6g}"), repetition, chunks)
        return OnlineRun(self.source, self.model, *own, self.rows, self.batch, prior)


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "laptop": {
        "source": "clicks", "sizes": (64, 512, 2048), "rates": GRID[6:13], "repetitions": 3,
        "chunks": 30, "tuning": 8,
    },
    "smoke": {
        "source": "clicks", "model": "small", "rows": 1024, "batch": 256, "chunks": 3, "tuning": 2,
        "methods": ("matching", "easy", "upm", "anchored:square", "labels"), "sizes": (16, 128),
        "rates": (1e-3, 1e-2), "repetitions": 2,
    },
}  # fmt: skip


def online_preset(name: str, **changes: Any) -> OnlinePlan:
    """A shipped plan, with changes.

    Parameters
    ----------
    name : {"paper", "laptop", "smoke"}
        Which plan.
    **changes : Any
        Fields of `OnlinePlan`.

    >>> online_preset("laptop").sizes
    (64, 512, 2048)
    """
    return OnlinePlan(**{**shipped(PRESETS, name), **changes})


PLAN, DATA = "plan.json", "data.json"
HISTORY = ("label_log_loss", "label_auc", "log_loss", "auc", "prior_of_chunk", "true_log_loss")


class OnlineStore(RunFolder):
    """A folder of finished online runs.

    Parameters
    ----------
    folder : str or Path
        It is made where it does not exist.
    """

    settings = OnlineRun
    schema = schema_of(
        OnlineRun, {"version": pa.string(), **dict.fromkeys(HISTORY, pa.list_(pa.float64()))}
    )

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._rows: dict[OnlineRun, dict[str, Any]] = {}

    def read(self, run: OnlineRun) -> dict[str, Any] | None:
        """A finished run, or None."""
        if run not in self.finished():
            return None
        if run not in self._rows:
            for row in self.runs().to_pylist():
                self._rows[OnlineRun(*(row[name] for name in OnlineRun._fields))] = row
        return self._rows[run]

    def keep_plan(self, plan: OnlinePlan) -> None:
        """Write which plan these runs belong to, so that a report needs no more than the folder."""
        with whole(self.folder / PLAN) as draft:
            draft.write_text(json.dumps(asdict(plan), indent=1) + "\n")

    def plan(self) -> OnlinePlan | None:
        """The plan that was run last, or None."""
        path, known = self.folder / PLAN, OnlinePlan.__dataclass_fields__
        fields = _read(path)
        if not fields:
            return None
        unknown = sorted(fields.keys() - known.keys())
        if unknown:
            rule = f"A plan of online runs must have the fields {', '.join(known)}"
            remedy = "Use the unbag that wrote it, or another folder."
            raise broken(rule, f"{', '.join(unknown)} given in {path}", remedy)
        fields["priors"] = tuple(fields["priors"])
        return OnlinePlan(**fields)

    def check_data(self, source: str, digest: str) -> None:
        """Refuse data other than those of the runs that are there.

        Parameters
        ----------
        source : str
            Names the data; a run's identity does not say which file it read.
        digest : str
            Anything that differs where the data differ.
        """
        path = self.folder / DATA
        known = _read(path)
        if known.get(source, digest) != digest:
            raise broken(
                "A store's online runs must come from the same data",
                f"the first chunk of {source} that there is now is not the one that "
                f"{self.folder} has runs of",
                "Use another folder.",
            )
        if source not in known:
            with whole(path) as draft:
                draft.write_text(json.dumps(known | {source: digest}, indent=1) + "\n")


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError as error:
        rule = "What a store of online runs keeps must be JSON"
        raise broken(rule, f"{path} is not ({error})", "Delete it.") from error


def online_stores(folder: Path) -> list[tuple[OnlinePlan, OnlineStore]]:
    """The stores in a folder that say which plan they belong to, with the plan."""
    stores = [OnlineStore(path.parent) for path in sorted(folder.glob(f"*/{PLAN}"))]
    return [(plan, store) for store in stores if (plan := store.plan())]


def best_rate(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> float | None:
    """The rate with the lowest average log loss of its predictions; None when a run is missing, or
    all diverged."""
    chunks, seeds = plan.chunks, plan.repetitions
    if plan.tuning:
        chunks, seeds = plan.tuning, 1
    losses = []
    for rate in plan.rates:
        runs = [store.read(plan.run(cell, rate, s, chunks)) for s in range(seeds)]
        if None in runs:
            return None
        losses.append(np.mean([np.mean(run["label_log_loss"]) for run in runs if run]))
    if not np.isfinite(losses).any():
        return None
    return plan.rates[int(np.nanargmin(losses))]


AfterChunk = Callable[[OnlineRun, dict[str, Any]], None]
"""Called after each chunk of a run with what was measured of it."""


def run_online(plan: OnlinePlan, store: OnlineStore, *, progress: AfterChunk | None = None) -> int:
    """Make the runs of a plan that the store lacks; cells that another process works on are its.

    Parameters
    ----------
    plan : OnlinePlan
        Which runs.
    store : OnlineStore
        Where they go.
    progress : callable, optional
        Called after each chunk of a run.

    Returns
    -------
    int
        How many runs this process made.
    """
    source = f"{plan.source} in chunks of {plan.rows}"
    first = _chunk(plan.source, plan.rows, 0)
    parts = () if first is None else (first.X, first.y)
    events = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    store.check_data(source, sha256(events).hexdigest()[:16])
    store.keep_plan(plan)
    made = 0
    with store.in_use():
        for cell in plan.cells():
            with store.claim(identity_of((plan, cell))) as mine:
                if mine:
                    made += sum(_make(run, store, progress) for run in _runs(plan, cell, store))
    store.compact()
    return made


def _runs(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> Iterator[OnlineRun]:
    """With tuning, the rate of the last runs is known when the first are in the store."""
    rates, repetitions = plan.rates, range(plan.repetitions)
    if plan.tuning:
        yield from (plan.run(cell, rate, 0, plan.tuning) for rate in rates)
        best = best_rate(plan, cell, store)
        rates = tuple(rate for rate in (best,) if rate is not None)
    yield from (plan.run(cell, r, s, plan.chunks) for r, s in product(rates, repetitions))


def _make(run: OnlineRun, store: OnlineStore, progress: AfterChunk | None) -> int:
    if store.read(run) is not None:
        return 0
    fields = ("method", "loss", "rate", "size", "batch", "prior")
    options: dict[str, Any] = {name: getattr(run, name) for name in fields}
    learner = StreamLearner(NETWORKS[run.model](run.repetition), seed=run.repetition, **options)
    history: dict[str, list[float]] = {name: [] for name in HISTORY}
    while not run.chunks or learner.chunks < run.chunks:
        chunk = _chunk(run.source, run.rows, learner.position)
        if chunk is None or chunk.y is None or len(chunk.y) < run.rows:
            break  # the rest of a file
        row = learner.learn(chunk)
        measured = {**row, "prior_of_chunk": row.get("prior", np.nan)}  # a run's prior is a rule
        for name in HISTORY:
            history[name].append(float(measured.get(name, np.nan)))
        if progress:
            progress(run, row)
    if not history["label_log_loss"]:
        rule = f"A stream must have at least one chunk of {run.rows} events"
        raise broken(rule, f"{run.source} has fewer", "Make chunks smaller.")
    store.add([{**run._asdict(), "version": unbag.__version__, **history}])
    return 1


@lru_cache(maxsize=32)
def _chunk(source: str, rows: int, position: int) -> Chunk | None:
    """The chunk at a position, the first few kept: every run gets the same ones."""
    read = {"clicks": read_clicks, "criteo": read_criteo}[source]
    return next(read(rows=rows, start=position), None)


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
        rule = "A report must have runs"
        raise broken(rule, f"{store.folder} has none of this plan", "Make them: unbag online")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    page = [f"# The online experiment: {plan.source}\n", _about(plan, results)]
    written = []
    for name, (metric, title) in METRICS.items():
        figure = draw_online(plan, results, metric, title)
        written.append(save_figure(figure, folder / f"online-{name}"))
        table = as_markdown(*metric_rows(plan, results, metric))
        page += [f"## {title}\n", table, f"![{title}](online-{name}.svg)\n"]
    if np.isfinite(_values(next(iter(results.values())), "true_log_loss")).all():
        page.append("## Regret: log loss above that of the true probability\n")
        page.append(as_markdown(*metric_rows(plan, results, "regret")))
    rates = _rows(results, lambda runs: f"{runs[0]['rate']:.3g}")
    page += [
        "## Rates\n",
        as_markdown(*rates),
        "## The claim\n",
        verdict_table([judge_online(plan, results)]),
    ]
    (folder / "online.md").write_text("\n".join(page))
    return [*written, folder / "online.md"]


def results_of(plan: OnlinePlan, store: OnlineStore) -> Results:
    """The finished runs of a plan at each cell's best rate, as far as they are there."""
    results = {}
    for cell in plan.cells():
        rate, seeds = best_rate(plan, cell, store), range(plan.repetitions)
        if rate is not None:
            runs = [store.read(plan.run(cell, rate, s, plan.chunks)) for s in seeds]
            results[cell] = [run for run in runs if run is not None]
    return {cell: runs for cell, runs in results.items() if runs}


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


def _rows(
    results: Results, cell_text: Callable[[list[dict[str, Any]]], str]
) -> tuple[list[str], list[list[str]]]:
    """A header, and a row of text for each method and prior."""
    sizes = sorted({cell.size for cell in results if cell.way.method != "labels"})
    texts: dict[str, dict[int, str]] = {}
    for cell, runs in results.items():
        name = cell.way.title + ", prior of the first chunk" * (cell.prior == "first")
        there = sizes if cell.way.method == "labels" else [cell.size]
        texts.setdefault(name, {}).update(dict.fromkeys(there, cell_text(runs)))
    rows = [[name, *(own.get(k, "") for k in sizes)] for name, own in texts.items()]
    return ["bags of", *map(str, sizes)], rows


def metric_rows(plan: OnlinePlan, results: Results, metric: str) -> tuple[list[str], list]:
    """The table of a metric: a header, and rows of means with their standard errors; a star where
    the rate is at an end of those tried.

    Parameters
    ----------
    plan : OnlinePlan
        Which runs.
    results : dict
        The runs of each cell.
    metric : str
        "label_log_loss", "label_auc" or "regret".
    """
    header, rows = _rows(results, lambda runs: str(_average(plan, runs, metric)))
    if metric == "label_log_loss":
        trivial = f"{_trivial(results, metric).mean():.4f}"
        rows.append(["(trivial)", *[trivial] * (len(header) - 1)])
    return header, rows


def as_tables(plan: OnlinePlan, results: Results) -> list[str]:
    """The tables of a stream in LaTeX: bag sizes go down, as in those of batches.

    Parameters
    ----------
    plan : OnlinePlan
        Which runs.
    results : dict
        The runs of each cell.
    """
    parts = []
    for name, (metric, title) in METRICS.items():
        (corner, *sizes), rows = metric_rows(plan, results, metric)
        header = [corner, *(name for name, *_ in rows)]
        turned = [[k, *(row[i] for row in rows)] for i, k in enumerate(sizes, 1)]
        caption = f"{caption_of(plan, results)}: average {title} over the chunks, with its "
        caption += "standard error; a star: at an end of the rates that were tried."
        label = f"tab:online-{plan.source}-{plan.rows}-{name}"
        parts.append(as_latex(header, turned, caption=caption, label=label))
    return parts


def caption_of(plan: OnlinePlan, results: Results) -> str:
    """What belongs below every figure of a stream.

    Parameters
    ----------
    plan : OnlinePlan
        Which runs.
    results : dict
        The runs of each cell.
    """
    chunks = max(len(run["label_log_loss"]) for runs in results.values() for run in runs)
    counts = [len(runs) for runs in results.values()]
    repetitions = " to ".join(str(n) for n in dict.fromkeys([min(counts), max(counts)]))
    network = f"network {plan.model}"
    if plan.model == "paper":
        network = "embeddings and layers of 256, 128 and 64, the paper's network"
    return (
        f"{TITLES.get(plan.source, plan.source)}: {chunks} chunks of {plan.rows:,}, "
        f"{chunks * plan.rows:,} events where the paper has {PAPER_EVENTS:,}; {network}, usual "
        f"start; {repetitions} repetitions"
    )


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

    shown = {cell: runs for cell, runs in sorted(results.items()) if cell.prior == "chunk"}
    sizes, chunks, trivial = [], [], _trivial(results, metric)
    levels = [Level("trivial predictor", trivial.mean(), ":")]
    time = range(1, len(trivial) + 1)
    for way in dict.fromkeys(cell.way for cell in results if cell.prior == "chunk"):
        look = OUR_LOOK if way.is_ours else LOOKS.get(way.method, CurveLook(GREY, dashes="--"))
        mine = {cell.size: runs for cell, runs in shown.items() if cell.way == way}
        averages = np.array([_average(plan, runs, metric)[:2] for runs in mine.values()])
        if way.method == "labels":
            levels.insert(0, Level("labels", averages[0, 0]))
        else:
            sizes.append(curve_of_means(way, list(mine), averages, look))
        points = np.array([mean_and_error(each) for each in _values(mine[max(mine)], metric).T])
        chunks.append(curve_of_means(way, range(1, len(points) + 1), points, look))
    truth = _values(next(iter(results.values())), "true_log_loss")[0]
    if metric == "label_log_loss" and np.isfinite(truth).any():
        look = CurveLook(GREY, dashes="-.")
        levels.append(Level("the truth", truth.mean(), "-."))
        chunks.append(Series("the truth", range(1, len(truth) + 1), truth, look=look))
    with rc_context(PAPER):  # pyright: ignore[reportArgumentType]
        figure = new_figure(8.4, 3.4)
        left, right = figure.subplots(1, 2)
        y = f"average chunk {title}"
        how: Any = {"bars": True, "outliers": True}
        draw_curves(left, sizes, x="bag size", y=y, levels=levels, dots=True, **how)
        name_sizes(left, sorted({cell.size for cell in shown if cell.way.method != "labels"}))
        y = f"{title}, bags of {max(cell.size for cell in shown)}"
        draw_curves(right, chunks, x=f"chunk of {plan.rows:,}", y=y, **how)
        right.plot(time, trivial, ":", color=GREY, linewidth=1)
        figure.suptitle(caption_of(plan, results), fontsize=8, color=GREY)
        share_legend(figure)
    return figure


def _trivial(results: Results, metric: str) -> np.ndarray:
    """What the share of clicks in the chunk before would have, chunk by chunk; a half at first."""
    share = _values(next(iter(results.values())), "prior_of_chunk")[0]
    if metric == "label_auc":
        return np.full(len(share), 0.5)
    before = np.concatenate([[0.5], share[:-1]])
    return -share * np.log(before) - (1 - share) * np.log1p(-before)


def judge_online(plan: OnlinePlan, results: Results) -> ClaimVerdict:
    """The paper's claim on the online experiment, at the large bag sizes of the plan."""
    large = [k for k in sorted(plan.sizes) if k >= min(LARGE)] or [max(plan.sizes)]
    claim = (
        "on a stream GeneralUPM is much better than PM and EasyLLP at large bag sizes, at the "
        "largest over the entire duration; by AUC EasyLLP is ahead of PM too"
    )
    upm, easy, pm = (Way(method, "log") for method in ("upm", "easy", "matching"))

    def of(way: Way, size: int) -> list[dict[str, Any]]:
        return results.get(Cell(way, size, "chunk"), [])

    duels = []
    for size, other in product(large, (pm, easy)):
        sides = {way: of(way, size) for way in (upm, other)}
        if all(sides.values()):
            averages = {way: _average(plan, runs, "label_log_loss") for way, runs in sides.items()}
            trivial = float(_trivial(results, "label_log_loss").mean())
            duels.append(duel_of(size, averages, -1, trivial))
        else:  # one that was not run is not beaten
            duels.append(Duel(size, np.nan, np.nan, 0))
    if max(duel.repetitions for duel in duels) < 2:
        duels = []
    found, k = is_best(duels, large), max(large)
    there = {way: of(way, k) for way in (pm, easy, upm) if of(way, k)}
    sees, rest = f"at {k} not run", []
    if there:
        means = [f"{way.title} {_average(plan, r, 'label_log_loss')}" for way, r in there.items()]
        aucs = {way: _average(plan, runs, "label_auc").mean for way, runs in there.items()}
        sees = f"at {k} {', '.join(means)}, AUC {', '.join(f'{auc:.4f}' for auc in aucs.values())}"
        if easy in there and pm in there and not aucs[easy] > aucs[pm]:
            rest.append(f"by AUC {easy.title} is not ahead of {pm.title} at {k}")
    if upm in there and pm in there:
        mine, theirs = (_values(there[way], "label_log_loss").mean(axis=0)[1:] for way in (upm, pm))
        ahead = int((mine < theirs).sum())
        sees += (
            f"; {upm.title} ahead of {pm.title} in {ahead} of {len(mine)} chunks after the first"
        )
        if ahead < len(mine):
            rest.append(f"{upm.title} is not ahead of {pm.title} over the entire duration at {k}")
    if found.verdict == SUPPORTED and rest:
        found = found._replace(verdict=UNDECIDED, why="; ".join([found.why, *rest]))
    events = plan.rows * max(_values(runs, "label_log_loss").shape[1] for runs in results.values())
    obstacles = [f"{events:,} of the paper's {PAPER_EVENTS:,} events"] * (events < PAPER_EVENTS / 2)
    obstacles += ["the paper has another network"] * (plan.model != "paper")
    if found.verdict != NOT_RUN and obstacles:
        why = "; ".join([*obstacles, found.why])
        found = found._replace(verdict=NOT_COMPARABLE, why=why)
    where = f"{TITLES[plan.source]}, chunks of {plan.rows:,}"
    return ClaimVerdict("paper", claim, where, *found._replace(sees=sees))
