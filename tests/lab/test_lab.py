"""Plans, the store, resuming, sharing, the report and the claims; small sets of runs on made-up
data."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.stats
from typer.testing import CliRunner

import unbag
from cases.lab import TOY, invent, made_up, toy
from unbag.cli import app
from unbag.datasets import Dataset
from unbag.lab import (
    Plan,
    RunStore,
    Way,
    _catalogue,
    _choice,
    _report,
    _results,
    _run,
    add_method,
    add_task,
    preset,
    read_plan,
    run_plan,
)
from unbag.lab import _claims as judging
from unbag.lab import _online as online_reporting
from unbag.lab._catalogue import MODELS, UNSMOOTHED
from unbag.lab._choice import BagDeviation, bag_spread
from unbag.lab._figures import experiments_figure, network_of
from unbag.lab._online import HISTORY, Cell, OnlineStore, online_preset, online_stores
from unbag.lab._plan import Experiment, RunSettings
from unbag.lab._report import MARKS, _broadest, latex_page, write_report


@pytest.fixture
def untrained(monkeypatch):
    """What is stored is not looked at, so nothing need be trained."""
    monkeypatch.setattr(_run, "train_group", invent)


def test_the_paper_preset_is_the_papers_grid():
    plan = preset("paper", "adult")
    assert plan.sizes == tuple(2**i for i in range(12))
    assert len(plan.rates) == 16
    assert (plan.rates[0], plan.rates[-1]) == (1e-7, 0.1)
    ratio = np.diff(np.log(plan.rates))
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
    assert (plan.repetitions, plan.batch, plan.start, plan.holdout) == (10, 4096, "usual", 0)
    groups = list(plan.groups())
    smoothing = {(g.common.method, g.common.loss): g.common.smoothing for g in groups}
    for method in ("matching", "easy", "upm", "anchored"):
        assert smoothing[method, "log"] == 0.1
    assert (
        smoothing["anchored", "square"]
        == smoothing["likelihood", "log"]
        == smoothing["labels", "log"]
        == 0
    )
    assert {g.common.size for g in groups if g.common.method == "labels"} == {1}
    assert plan.count() == (6 * 12 + 1) * 160


def test_a_plan_is_read_from_toml(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'task = "toy"\npreset = "laptop"\nmethods = ["upm"]\nsizes = [4]\nrates = [1, 0.1]\n'
    )
    plan = read_plan(path, epochs=7)
    assert (plan.task, plan.methods, plan.sizes, plan.rates, plan.epochs) == (
        "toy",
        ("upm:log",),
        (4,),
        (1.0, 0.1),
        7,
    )
    assert plan.repetitions == preset("laptop", "toy").repetitions


def test_a_run_is_identified_by_its_settings_and_nothing_else():
    runs = [run for group in Plan(**TOY).groups() for run in group.runs()]
    assert len({run.identity() for run in runs}) == len(runs) == 2 * 2 * 2 * 3
    cut = Plan(**TOY, rates_together=1, repetitions_together=2)
    assert {run.identity() for group in cut.groups() for run in group.runs()} == {
        run.identity() for run in runs
    }
    held = Plan(**TOY, holdout=0.2)
    assert not {run.identity() for group in held.groups() for run in group.runs()} & {
        run.identity() for run in runs
    }


def test_a_group_is_the_sweep_it_stands_for():
    import unbag
    from unbag.training import sweep

    group = next(Plan(**TOY, holdout=0.2).groups())
    rows = _run.train_group(group)
    data = toy()
    parts = [
        unbag.random_bags(data.X, data.y, size=20, seed=s).split(0.8, seed=s) for s in range(3)
    ]
    runs = sweep(
        lambda seed: unbag.models.linear(3, key=seed), [p[0] for p in parts], "upm", "log",
        learning_rates=(0.01, 0.1), seeds=(0, 1, 2), epochs=3, smoothing=0.1,
        held_out=[p[1] for p in parts], test=(data.X_test, data.y_test),
    )  # fmt: skip
    for row, run in zip(rows, [run for by_rate in runs for run in by_rate], strict=True):
        assert (row["repetition"], row["bags"]) == (run.seed, 40)
        for name in ("train", "test_loss", "test_auc", "choice"):
            np.testing.assert_allclose(row[name], run.history[name], rtol=2e-4, atol=1e-5)


def test_finished_runs_are_not_made_again_and_new_ones_are_added(tmp_path, untrained):
    store, plan = RunStore(tmp_path), Plan(**TOY)
    assert run_plan(plan, store) == plan.count()
    assert run_plan(plan, store) == 0
    wider = Plan(**{**TOY, "rates": (0.01, 0.03, 0.1), "repetitions": 4})
    assert run_plan(wider, store) == wider.count() - plan.count()
    assert store.finished() == {run for group in wider.groups() for run in group.runs()}
    assert [path.name for path in (tmp_path / ".claims").iterdir()] == ["store"]
    assert [path.name for path in tmp_path.glob("*/*.parquet")] == ["runs.parquet"]


WORKER = """
import sys
sys.path.insert(0, {tests!r})
from cases.lab import invent_then_wait
from unbag.lab import Plan, RunStore, run_plan, _run
import unbag.cli._reproduce
_run.train_group = invent_then_wait({most})
print("no ray" if "ray" not in sys.modules else "ray", flush=True)
sys.stdin.readline()
print(run_plan(Plan(**{plan!r}), RunStore({folder!r}), patience=0.1), flush=True)
"""


def worker(folder, plan, most):
    """A process that works on a plan; once it has made so many groups, it waits."""
    tests = str(Path(__file__).parents[1])
    code = WORKER.format(tests=tests, plan=plan, folder=str(folder), most=most)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "no ray\n"  # the usual engine needs none
    return process


def start(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def wait_for_files(folder, count):
    deadline = time.monotonic() + 120
    while len(list(folder.rglob("*.parquet"))) < count and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_killed_sweep_resumes_without_repeating_or_losing_a_run(tmp_path, untrained):
    plan = {**TOY, "repetitions_together": 1}
    process = worker(tmp_path, plan, most=3)
    start(process)
    wait_for_files(tmp_path, 3)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    store = RunStore(tmp_path)
    before = rows_of(store)
    total = Plan(**plan).count()
    done = len(store.finished())
    assert 0 < done < total
    assert run_plan(Plan(**plan), store) == total - done
    after = rows_of(store)
    assert all(repr(after[run]) == repr(row) for run, row in before.items())
    assert len(after) == total


def rows_of(store):
    """Every row that is there, once or more often, by its run."""
    rows = [row for path in store.files() for row in pq.read_table(path).to_pylist()]
    keyed = {which(row): row for row in rows}
    assert len(keyed) == len(rows) == len(store.finished())
    return keyed


def which(row):
    return RunSettings(*(row[name] for name in RunSettings._fields))


def test_merging_keeps_every_row_and_runs_made_later_are_merged_too(tmp_path):
    store, plan = RunStore(tmp_path), Plan(**TOY)
    made_up(plan, store)
    before, small = rows_of(store), len(store.files())
    assert small == 4
    assert store.compact() == small
    assert [path.name for path in store.files()] == ["runs.parquet"]
    assert repr(rows_of(RunStore(tmp_path))) == repr({run: before[run] for run in rows_of(store)})
    assert rows_of(store).keys() == before.keys()
    assert store.compact() == 0
    made_up(Plan(**{**TOY, "epochs": 4}), store)
    assert store.compact() == small
    after = rows_of(store)
    assert len(after) == 2 * len(before)
    assert all(repr(after[run]) == repr(row) for run, row in before.items())


@pytest.mark.parametrize("moment", ["before the one file is there", "before the small ones go"])
def test_a_kill_while_files_are_merged_loses_nothing(tmp_path, monkeypatch, moment):
    store = RunStore(tmp_path)
    made_up(Plan(**TOY), store)
    before = rows_of(store)

    def killed(*words, **options):
        raise KeyboardInterrupt

    step = {"before the one file is there": "replace", "before the small ones go": "unlink"}[moment]
    with monkeypatch.context() as patch:
        patch.setattr(Path, step, killed)
        with pytest.raises(KeyboardInterrupt):
            store.compact()
    left = RunStore(tmp_path)
    assert left.finished() == before.keys()
    rows = {which(row): row for row in left.runs().to_pylist()}
    assert all(repr(rows[run]) == repr(row) for run, row in before.items())
    left.compact()
    assert rows_of(left).keys() == before.keys()
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["runs.parquet"]


def test_a_store_of_the_first_format_is_read_and_goes_on_in_the_second(tmp_path):
    store = RunStore(tmp_path)
    made_up(Plan(**TOY), store)
    store.compact()
    (path,) = store.files()
    table = pq.read_table(path)
    names = [run.identity() for run in map(which, table.to_pylist())]
    old = table.append_column("run", [names]).replace_schema_metadata({"unbag_store": "1"})
    pq.write_table(old, path)
    before = RunStore(tmp_path)
    assert len(before.finished()) == Plan(**TOY).count()
    made_up(Plan(**{**TOY, "epochs": 4}), before)
    assert len(before.runs()) == 2 * len(table)
    assert before.compact() == 4
    after = pq.read_table(path)
    assert after.schema.metadata[b"unbag_store"] == b"2"
    assert "run" not in after.column_names
    assert len(after) == 2 * len(table)


def test_files_are_not_merged_while_another_process_works_on_the_store(tmp_path):
    store = RunStore(tmp_path)
    made_up(Plan(**TOY), store)
    with RunStore(tmp_path).in_use():
        assert store.compact() == 0
    assert store.compact() == 4


def test_two_processes_share_a_store_and_divide_the_work(tmp_path, monkeypatch):
    plan = {**TOY, "repetitions_together": 1, "repetitions": 6}
    total = Plan(**plan).count()
    other, begun = worker(tmp_path, plan, most=total), []

    def invent_beside(group, told=None):
        """The first group is made while the other process stores one of its own."""
        if not begun:
            begun.append(group)
            start(other)
            wait_for_files(tmp_path, 1)
        return invent(group)

    monkeypatch.setattr(_run, "train_group", invent_beside)
    made = [run_plan(Plan(**plan), RunStore(tmp_path), patience=0.1)]
    made.append(int(other.communicate(timeout=240)[0]))
    assert sum(made) == total
    assert min(made) > 0
    assert len(rows_of(RunStore(tmp_path))) == total


def test_what_another_process_works_on_is_left_to_it(tmp_path):
    group = next(Plan(**TOY).groups())
    with (
        RunStore(tmp_path).claim(group.identity()) as first,
        RunStore(tmp_path).claim(group.identity()) as second,
    ):
        assert (first, second) == (True, False)
    with RunStore(tmp_path).claim(group.identity()) as again:
        assert again


def test_runs_that_are_there_twice_count_once(tmp_path):
    store, plan = RunStore(tmp_path), Plan(**TOY)
    made_up(plan, store)
    for path in store.files():
        path.with_name(f"copy-{path.name}").write_bytes(path.read_bytes())
    assert len(RunStore(tmp_path).runs()) == plan.count()


def test_a_cut_file_is_named_and_the_rest_stays_readable(tmp_path, untrained):
    plan = Plan(**TOY)
    made_up(plan, RunStore(tmp_path))
    cut = sorted(tmp_path.rglob("*.parquet"))[0]
    lost = pq.read_metadata(cut).num_rows
    cut.write_bytes(cut.read_bytes()[:-100])
    with pytest.warns(
        UserWarning, match=f"{cut.name} cannot be read and is left out: its runs count as not done"
    ):
        runs = RunStore(tmp_path).runs()
    assert len(runs) == plan.count() - lost
    with pytest.warns(UserWarning, match="cannot be read"):
        assert run_plan(plan, RunStore(tmp_path)) == lost
    assert len(RunStore(tmp_path).finished()) == plan.count()


def test_a_full_disk_leaves_no_partial_file_and_a_readable_store(tmp_path, monkeypatch):
    store, plan = RunStore(tmp_path), Plan(**TOY)
    made_up(plan, store)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OSError, match=r"will be made again \(No space left on device\); the store stays readable"
    ):
        made_up(Plan(**{**TOY, "epochs": 4}), store)
    assert all(path.name.endswith(".parquet") for path in (tmp_path / "toy").iterdir())
    assert len(store.finished()) == plan.count()


def naive_best(rows, metric):
    """The paper's number in plain loops."""
    seeds, rates = sorted({r["repetition"] for r in rows}), sorted({r["rate"] for r in rows})
    best = None
    for rate in rates:
        for epoch in range(len(rows[0][metric])):
            values = [
                next(r for r in rows if (r["repetition"], r["rate"]) == (s, rate))[metric][epoch]
                for s in seeds
            ]
            mean = sum(values) / len(values)
            if best is None or (mean < best[0] if metric == "test_loss" else mean > best[0]):
                error = (
                    sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values)
                ) ** 0.5
                best = (mean, error, rate, epoch + 1)
    return best


@pytest.mark.parametrize("metric", ["test_loss", "test_auc"])
def test_reported_numbers_are_the_papers_rule_in_plain_loops(tmp_path, metric):
    store, plan = RunStore(tmp_path), Plan(**TOY)
    made_up(plan, store)
    everything = _results.read_runs(store)
    assert len(everything) == 4
    for runs in everything:
        rows = store.runs(method=runs.way.method, size=runs.size).to_pylist()
        found = _results.best_on_test(runs, metric)
        expected = naive_best(rows, metric)
        assert (found.rate, found.epoch) == expected[2:]
        assert (found.mean, found.error) == pytest.approx(expected[:2])


def test_of_a_rate_at_which_a_repetition_diverged_the_epochs_before_count():
    loss = np.array([[[0.5, 0.1], [0.4, 0.45]], [[0.5, np.nan], [0.4, 0.4]]])
    experiment = Experiment("toy", "linear", "usual", 2, 4096, 0)
    runs = _results.Runs(
        experiment, Way("upm", "log"), 5, 0.1, 0, 200, 0.6, (0, 1), (0.1, 0.2), loss, loss, loss
    )
    found = _results.best_on_test(runs)
    assert (found.mean, found.rate, found.epoch) == (0.4, 0.2, 1)
    early = runs._replace(test_loss=np.where(loss == 0.5, 0.3, loss))
    assert _results.best_on_test(early)[4:6] == (0.1, 1)
    assert _results.best_on_test(runs._replace(test_loss=loss * np.nan)) is None


@pytest.mark.parametrize(
    ("rate", "epoch", "told"),
    [
        (1, 1, "0.3000 ± 0.0000"),
        (0, 1, "0.3000 ± 0.0000*"),
        (2, 1, "0.3000 ± 0.0000*"),
        (1, 2, "0.3000 ± 0.0000*"),
    ],
)
def test_a_star_tells_what_was_found_at_an_edge_of_the_grid(rate, epoch, told):
    loss = np.full((2, 3, 2), 0.5)
    loss[:, rate, epoch - 1] = 0.3
    experiment = Experiment("toy", "linear", "usual", 2, 4096, 0)
    rates = (0.1, 0.2, 0.3)
    runs = _results.Runs(
        experiment, Way("upm", "log"), 5, 0.1, 0, 200, 0.6, (0, 1), rates, loss, loss, loss
    )
    assert str(_results.best_on_test(runs)) == told


@pytest.mark.parametrize(
    ("rates", "repetitions", "kept"), [((0.1,), 5, (2, 3)), ((0.3,), 1, (2, 3))]
)
def test_runs_beyond_the_grid_do_not_put_the_grid_out(tmp_path, rates, repetitions, kept):
    """More repetitions of one rate, and one more rate with one repetition; the larger rectangle
    counts."""
    store = RunStore(tmp_path)
    made_up(Plan(**TOY), store)
    before = [_results.best_on_test(runs) for runs in _results.read_runs(store)]
    for group in Plan(**{**TOY, "rates": rates, "repetitions": repetitions}).groups():
        store.add([row for row in invent(group) if which(row) not in store.finished()])
    everything = _results.read_runs(store)
    assert {(len(runs.rates), len(runs.repetitions)) for runs in everything} == {kept}
    after = [_results.best_on_test(runs) for runs in everything]
    assert [(best.mean, best.error) for best in after] == [
        (best.mean, best.error) for best in before
    ]


@pytest.mark.parametrize("losses, edge", [
    ({0.1: 0.4, 0.3: 0.4}, False),
    ({0.1: 0.4}, True),  # nothing above it was tried
    ({0.1: 0.4, 0.3: 0.2}, True),  # what was tried once is better than what was repeated
    ({0.1: 0.4, 0.3: np.nan}, False),  # diverged at once
    (dict.fromkeys((0.01, 0.1, 0.3, 0.4, 0.5, 0.6), 0.4), False),  # more rates than repetitions
])  # fmt: skip
def test_a_rate_that_was_tried_once_and_was_worse_is_an_end_of_the_grid(tmp_path, losses, edge):
    """A search with one repetition, then five of the best: the five count."""
    store = RunStore(tmp_path)
    plan = {**TOY, "methods": ("upm",), "sizes": (20,), "repetitions": 5, "rates": (0.2,)}
    given = [(Plan(**plan), 0.3)]
    given += [(Plan(**{**plan, "rates": (r,), "repetitions": 1}), x) for r, x in losses.items()]
    for one, loss in given:
        for group in one.groups():
            rows = list(invent(group))
            for each in rows:
                history = np.full(one.epochs, loss + 0.1, np.float32)
                history[0] = loss
                each |= {"test_loss": history, "test_auc": 1 - history}
            store.add(rows)
    (runs,) = _results.read_runs(store)
    assert (runs.rates, len(runs.repetitions)) == ((0.2,), 5)
    found = [_results.best_on_test(runs, metric) for metric in ("test_loss", "test_auc")]
    assert [(best.mean, best.edge) for best in found] == [
        (pytest.approx(0.3), edge),
        (pytest.approx(0.7), edge),
    ]


def test_the_price_of_choosing_is_fewer_bags_plus_worse_choice(tmp_path):
    store = RunStore(tmp_path)
    made_up(Plan(**TOY), store)
    held_out = Plan(**{**TOY, "rates": (0.1,), "repetitions": 2}, holdout=0.2)
    made_up(held_out, store)
    chosen = _choice.choose_all(held_out, store)
    found = _results.prices(_results.read_runs(store), chosen)
    assert len(found) == 4
    for price in found:
        which = {"method": price.runs.way.method, "size": price.runs.size, "rate": 0.1}
        both = (store.runs(**which, holdout=h).to_pylist() for h in (0.0, 0.2))
        full, held = ([row for row in rows if row["repetition"] < 2] for rows in both)
        chosen = np.mean([r["test_loss"][int(np.argmin(r["choice"]))] for r in held])
        best, best_held = naive_best(full, "test_loss")[0], naive_best(held, "test_loss")[0]
        assert price.fewer_bags[0] == pytest.approx(best_held - best)
        assert price.worse_choice[0] == pytest.approx(chosen - best_held)
        assert price.chosen.mean - price.best.mean == pytest.approx(
            price.fewer_bags[0] + price.worse_choice[0]
        )


def invented(levels, *, task="adult", rows=32_561, model=None, seeds=5, wobble=0.002, edge=()):
    """Runs of five epochs at three rates whose best, a level for each (way, size), lies inside;
    those of the ways in `edge` are best in the last epoch."""
    experiment = Experiment(task, model or _catalogue.TASKS[task].model, "usual", 5, 4096, 0)
    apart = wobble * (np.arange(seeds) - (seeds - 1) / 2)
    for (way, size), level in levels.items():
        loss = np.full((seeds, 3, 5), 0.9)
        loss[:, 1, 4 if way in edge else 2] = level + apart
        facts = (size, 0, 0.0, rows // size, 0.55, tuple(range(seeds)), (0.01, 0.1, 1.0))
        yield _results.Runs(experiment, Way.named(way), *facts, loss, 1 - loss, loss)


def levels(pm, easy, upm, sizes=(*judging.SMALL, *judging.LARGE)):
    """The same losses at all of these sizes."""
    losses = {"matching": pm, "easy": easy, "upm": upm}
    return {(way, k): loss for way, loss in losses.items() for k in sizes}


def row(runs, text, where="Adult", judge=judging.judge):
    """What is seen, the verdict and its reason in the row of a claim."""
    found = [v for v in judge(list(runs)) if text in v.claim and v.where.startswith(where)]
    return judging.Judgement(found[0].sees, found[0].verdict, found[0].why)


SMALL, LARGE = "PM has the lowest loss", "GeneralUPM has a lower loss"


def test_there_are_eleven_claims_on_batches_and_each_is_judged_by_the_numbers():
    runs = list(invented(levels(0.34, 0.37, 0.36)))
    verdicts = judging.judge(runs)
    assert len(verdicts) == 11
    assert row(runs, SMALL).verdict == "supported"
    assert row(runs, LARGE) == (
        "lowest mean: PM at 256, 512, 1024 (at 256 PM 0.340 before GeneralUPM 0.360; at 1024 PM "
        "0.340 before GeneralUPM 0.360; perceptron, usual start, 5 epochs)",
        "not supported",
        "against it at 256, 512, 1024. By AUC: against it at 256, 512, 1024",
    )
    assert row(runs, SMALL, "Higgs") == ("", "not yet run", "")


@pytest.mark.parametrize("changes, verdict, reason", [
    ({"model": "linear"}, "not comparable", "the paper has perceptron"),
    ({"rows": 20_000}, "not comparable", "20,000 of the paper's 32,561 rows"),
    ({"seeds": 4}, "not comparable", "4 repetitions"),
    ({"edge": ("matching",)}, "undecided", "2 (PM), 4 (PM), 8 (PM), 16 (PM), 32 (PM): a best at an end of the rates"),
])  # fmt: skip
def test_runs_that_are_not_the_papers_or_end_at_an_edge_decide_nothing(changes, verdict, reason):
    found = row(invented(levels(0.34, 0.37, 0.36), **changes), SMALL)
    assert found.verdict == verdict
    assert reason in found.why
    assert found.sees.startswith("lowest mean: PM at 2, 4, 8, 16, 32 (at 2 PM 0.340 before ")


@pytest.mark.parametrize("changes, reason", [
    ({"start": "trivial"}, "the paper has the usual start"),
    ({"batch": 8192}, "the paper has batches of 4096"),
    ({"model": "cnn", "start": "trivial"}, "the paper has perceptron and the usual start"),
])  # fmt: skip
def test_another_start_or_a_larger_batch_is_not_the_papers(changes, reason):
    runs = [
        one._replace(experiment=one.experiment._replace(**changes))
        for one in invented(levels(0.34, 0.37, 0.36))
    ]
    sees, verdict, why = row(runs, SMALL)
    assert (verdict, why) == ("not comparable", reason)
    assert f"{runs[0].experiment.details})" in sees


@pytest.mark.parametrize("batch, size, instances", [
    (4096, 16, 4096),
    (4096, 2048, 4096),  # the paper's, with two bags
    (256, 16, 256),
    (256, 128, 512),
    (256, 2048, 4096),  # never more than the paper's
])  # fmt: skip
def test_a_batch_smaller_than_the_papers_grows_to_hold_four_bags(batch, size, instances):
    (group,) = Plan(**{**TOY, "sizes": (size,), "methods": ("upm",), "batch": batch}).groups()
    assert group.common.instances == instances
    words = group.common.experiment.details
    assert (f"batches of {batch} or 4 bags" in words) == (batch < 4096)


def test_training_takes_the_batch_that_has_grown(monkeypatch):
    batches = []

    def no_sweep(*_, batch, **__):
        batches.append(batch)
        raise KeyboardInterrupt

    monkeypatch.setattr(_run, "sweep", no_sweep)
    own = {**TOY, "sizes": (128,), "methods": ("upm",), "batch": 256}
    with pytest.raises(KeyboardInterrupt):
        _run.train_group(next(Plan(**own).groups()))
    assert batches == [512]


@pytest.mark.parametrize("losses, ended", [
    ([0.4, 0.3, 0.5, 0.5], False),
    ([0.4, 0.3, 0.5, 0.5, 0.5], True),
    ([0.4, 0.3, 0.5, 0.37, 0.5], False),
    ([0.3, 0.4, 0.4, 0.4], True),
    ([0.6, 0.4], False),
    ([0.4, 0.3, 0.33, 0.32, 0.33], False),
    ([0.4, 0.3, 0.33, 0.32, 0.33, 0.32], True),  # four epochs without a better one
    ([*np.linspace(0.6, 0.3, 10), 0.31, 0.31, 0.31, 0.31], False),
    ([*np.linspace(0.6, 0.3, 10), 0.31, 0.31, 0.31, 0.31, 0.31], True),  # half as many as it took
    ([0.75, 0.69, *[0.69] * 11], False),  # it has not left its start
    ([0.75, 0.69, *[0.69] * 12], True),
])  # fmt: skip
def test_a_run_ends_when_its_best_loss_has_long_gone_by(losses, ended):
    assert _run.is_past_best([np.array([[loss]]) for loss in losses], np.c_[[0.7]]) == ended
    best = [0.2] * (len(losses) - 1) + [0.1]  # of another, in the last epoch
    both = [np.array([pair]) for pair in zip(losses, best, strict=True)]
    assert not _run.is_past_best(both, np.c_[[0.7]])


def test_only_slow_networks_end_early_and_the_last_epoch_of_all_is_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(_run, "RISE", 0.0)  # any loss has risen
    own = {"sizes": (20,), "methods": ("upm",), "epochs": 6, "rates": (0.1, 0.2, 0.3)}
    plan = Plan(**{**TOY, **own})
    rows = [row for group in plan.groups() for row in _run.train_group(group)]
    assert {len(row["test_loss"]) for row in rows} == {6}
    monkeypatch.setitem(_run.TOGETHER, "linear", (1, 1))
    short = [row for group in plan.groups() for row in _run.train_group(group)]
    assert {len(row["test_loss"]) for row in short} == {_run.RISEN + 1}
    for losses, edge in (([0.4, 0.3, 0.1, 0.2], False), ([0.4, 0.3, 0.2, 0.1], True)):
        for row in short:
            row["test_loss"] = np.array(losses, np.float32) + (row["rate"] != 0.2)
        store = RunStore(tmp_path / str(edge))
        store.add(short)
        (runs,) = _results.read_runs(store)
        assert _results.best_on_test(runs).edge == edge


def of_experiment(runs, **changes):
    return [one._replace(experiment=one.experiment._replace(**changes)) for one in runs]


def test_a_smaller_batch_decides_and_is_named():
    """It has four bags, as many as the paper's batch has at bags of 1,024."""
    runs = of_experiment(invented(levels(0.34, 0.37, 0.36)), batch=64)
    sees, verdict, _ = row(runs, SMALL)
    assert verdict == "supported"
    rough = "perceptron, usual start, 5 epochs, batches of 64 or 4 bags"
    assert sees.endswith(f"; {rough})")
    both = list(invented(levels(0.34, 0.37, 0.36)))  # the paper's own steps go first
    assert row([*runs, *both], SMALL).sees.endswith("; perceptron, usual start, 5 epochs)")
    both = [one for one in both if one.size == 2]
    own = f"; {rough} at 4, 8, 16, 32)"
    assert row([*runs, *both], SMALL).sees.endswith(f"; {rough[:33]} at 2{own}")
    assert row(runs, LARGE).verdict == "not supported"


def test_steps_in_bfloat16_are_of_the_papers_network_and_are_named():
    given = {"task": "mnist", "rows": 60_000}
    rough = [*invented(levels(0.34, 0.37, 0.36), model="cnn-bfloat16", **given)]
    sees, verdict, _ = row(rough, SMALL, "MNIST")
    assert verdict == "supported"
    assert sees.endswith("; cnn-bfloat16, usual start, 5 epochs)")
    assert network_of(rough[0].experiment) == "CNN, steps in bfloat16, the paper's network"
    exact = invented(levels(0.34, 0.37, 0.36), **given)
    assert row([*rough, *exact], SMALL, "MNIST").sees.endswith("; cnn, usual start, 5 epochs)")


def test_the_numbers_beside_a_verdict_are_of_the_runs_that_decided_it():
    """The longer runs are best in their last epoch, so the shorter ones decide."""
    longer = [*invented(levels(0.33, 0.36, 0.35), edge=("matching", "easy", "upm"))]
    shorter = [
        one._replace(experiment=one.experiment._replace(epochs=4))
        for one in invented(levels(0.34, 0.37, 0.36))
    ]
    sees, verdict, _ = row([*longer, *shorter], SMALL)
    assert verdict == "supported"
    assert "at 2 PM 0.340 " in sees


def test_a_difference_within_two_standard_errors_decides_nothing():
    """The losses of EasyLLP are those of PM, but for 0.003 in one repetition of five: 1 error."""
    runs = list(invented(levels(0.34, 0.34, 0.36)))
    for one in runs:
        if one.way.method == "easy":
            one.test_loss[0] += 0.003
    _, verdict, why = row(runs, SMALL)
    assert verdict == "undecided"
    assert ": no difference beyond two standard errors" in why


def test_who_is_not_better_than_the_trivial_predictor_is_not_the_best():
    """On cats every method was worse than trivial, and GeneralUPM came out as the better one."""
    sees, verdict, why = row(invented(levels(0.57, 0.60, 0.56)), LARGE)
    assert verdict == "undecided"
    assert ": nobody beats the trivial predictor" in why
    assert sees.endswith(". Nobody is better than the trivial predictor at 256, 512, 1024")


def test_sizes_that_differ_leave_a_claim_undecided_and_each_is_named():
    both = levels(0.34, 0.37, 0.36, sizes=(2, 4, 8)) | levels(0.37, 0.36, 0.35, sizes=(16,))
    sees, verdict, why = row(invented(both), SMALL)
    assert verdict == "undecided"
    assert why.startswith("for it at 2, 4, 8; against it at 16; undecided at 32: not run")
    assert sees.startswith("lowest mean: PM at 2, 4, 8; GeneralUPM at 16 (at 2 PM 0.340 ")
    assert "; at 16 GeneralUPM 0.350 before EasyLLP 0.360;" in sees


@pytest.mark.parametrize("epochs, repetitions, row_share", [(9, 3, 1.0), (150, 3, 0.5)])
def test_of_runs_that_are_not_comparable_the_nearest_is_shown(epochs, repetitions, row_share):
    """By numbers, not by the letters of their reasons: 9 came after 150."""
    far = invented(levels(0.4, 0.3, 0.5), model="cnn")
    other = [one._replace(experiment=one.experiment._replace(epochs=7, start="trivial"))
             for one in invented(levels(0.4, 0.3, 0.5))]  # fmt: skip
    near = [one._replace(experiment=one.experiment._replace(epochs=epochs)) for one in invented(
        levels(0.34, 0.37, 0.36), seeds=repetitions, rows=int(32_561 * row_share)
    )]  # fmt: skip
    sees, verdict, why = row([*far, *other, *near], SMALL)
    assert verdict == "not comparable"
    assert f"usual start, {epochs} epochs)" in sees
    assert why == (f"{repetitions} repetitions" if row_share == 1 else
                   f"{int(32_561 * row_share):,} of the paper's 32,561 rows")  # fmt: skip


def test_on_mnist_another_must_be_clearly_better_than_upm():
    claim = "GeneralUPM does not have the lowest loss"
    of = lambda upm: invented(levels(0.4, 0.5, upm), task="mnist", rows=60_000)
    found = [row(of(upm), claim, "MNIST").verdict for upm in (0.39, 0.4, 0.41)]
    assert found == ["not supported", "undecided", "supported"]


@pytest.mark.parametrize("best, verdict", [(0.54, "not supported"), (0.549, "undecided")])
def test_one_method_that_beats_the_trivial_predictor_at_2048_speaks_against_the_claim(
    best, verdict
):
    found = row(invented(levels(0.56, 0.57, best, sizes=(2048,))), "bags of 2048", "all data")
    assert found.verdict == verdict
    seen = rf"Adult, \d+ epochs: GeneralUPM {best:.4f} ± 0.0014, trivial 0.5500"
    assert re.match(seen, found.sees)


def test_higgs_is_read_with_either_number_of_features():
    """The paper does not say which it takes; its network is nearer than 21 features."""
    few = invented(levels(0.6, 0.5, 0.4), task="higgs", model="perceptron", rows=46_366)
    all_ = invented(levels(0.3, 0.4, 0.5), task="higgs-all", rows=46_366)
    sees, verdict, why = row([*few, *all_], SMALL, "Higgs, 21 features, or Higgs, 28 features")
    assert sees.startswith("lowest mean: PM at 2, 4, 8, 16, 32 (at 2 PM 0.300 before EasyLLP 0.400")
    assert sees.endswith("; Higgs, 28 features (deep, usual start, 5 epochs))")
    assert (verdict, why) == ("not comparable", "46,366 of the paper's 10,990,000 rows")


def test_the_least_repeated_of_the_compared_methods_counts():
    runs = list(invented(levels(0.34, 0.37, 0.36)))
    runs = [r.part((0, 1, 2), r.rates) if r.way.method == "easy" else r for r in runs]
    assert row(runs, SMALL)[1:] == ("not comparable", "3 repetitions")


def test_rows_that_fill_no_bag_do_not_put_longer_runs_behind():
    given = {"task": "mnist", "model": "perceptron"}
    short = list(invented(levels(0.3, 0.4, 0.5), rows=60_000, **given))
    longer = [r._replace(experiment=r.experiment._replace(epochs=60))
              for r in invented(levels(0.3, 0.4, 0.5, sizes=(64, 256)), rows=59_968, **given)]  # fmt: skip
    sees = row([*short, *longer], "GeneralUPM does not have", "MNIST").sees
    assert "; perceptron, usual start, 60 epochs at 256; perceptron" in sees


def test_means_that_look_alike_have_a_fourth_decimal():
    sees = row(invented(levels(0.3401, 0.37, 0.3403)), SMALL).sees
    assert "at 2 PM 0.3401 before GeneralUPM 0.3403;" in sees


def test_two_repetitions_at_2048_decide_nothing():
    """That other sizes have five does not help."""
    runs = [*invented(levels(0.56, 0.57, 0.4, sizes=(2048,)), seeds=2)]
    runs += invented(levels(0.3, 0.3, 0.3, sizes=(2,)))
    assert row(runs, "bags of 2048", "all data").verdict == "not yet run"
    trivial = row(invented(levels(0.56, 0.57, 0.55, sizes=(2048,))), "bags of 2048", "all data")
    assert trivial.why == "nobody beats the trivial predictor on 1 of 5 data sets"


@pytest.mark.parametrize("against, verdict", [(2, "undecided"), (3, "not supported")])
def test_a_claim_falls_where_half_of_the_sizes_are_against_it(against, verdict):
    """Of one difference among ten, two standard errors say little."""
    sizes = judging.SMALL
    both = levels(0.36, 0.37, 0.34, sizes=sizes[:against])
    both |= levels(0.36, 0.37, 0.36, sizes=sizes[against:])
    assert row(invented(both), SMALL).verdict == verdict


def test_longer_runs_take_the_place_of_those_that_ended_at_an_edge():
    short = list(invented(levels(0.34, 0.37, 0.36), edge=("matching",)))
    long = [
        one._replace(experiment=one.experiment._replace(epochs=9))
        for one in invented(levels(0.33, 0.37, 0.36))
    ]
    assert row([*short, *long], SMALL).verdict == "supported"


OURS, CHOICE = "anchored with the square loss", "what held-out bags choose"


def ours(runs, choices=(), spreads=()):
    return judging.judge_ours(list(runs), spreads, choices)


@pytest.mark.parametrize("level, changes, verdict", [
    (0.33, {}, "supported"),
    (0.34, {}, "supported"),
    (0.35, {}, "not supported"),
    (0.33, {"seeds": 3}, "undecided"),
    (0.33, {"edge": ("matching",)}, "undecided"),
])  # fmt: skip
def test_our_claim_is_judged_by_the_same_rules(level, changes, verdict):
    both = levels(0.34, 0.37, 0.36, sizes=(16,)) | {("anchored:square", 16): level}
    assert row(invented(both, **changes), OURS, judge=ours).verdict == verdict
    more = {("anchored:square", 64): 0.4, ("upm", 64): 0.3}  # not all of the paper's are there
    worse = row(invented(both | more, **changes), OURS, judge=ours).verdict
    assert worse == ("undecided" if "seeds" in changes else "not supported")


@pytest.mark.parametrize("both, why", [
    ({("matching", 16): 0.34, ("anchored:square", 16): 0.33}, "undecided at 16: not run"),
    (
        levels(0.55, 0.62, 0.62, sizes=(16,)) | {("anchored:square", 16): 0.6},
        "undecided at 16: nobody beats the trivial predictor",
    ),
])  # fmt: skip
def test_our_claim_is_not_supported_by_what_is_not_there_or_by_a_loss_to_a_trivial_model(both, why):
    _, verdict, reason = row(invented(both), OURS, judge=ours)
    assert (verdict, reason) == ("undecided", why)


def test_our_claim_is_judged_on_the_longer_of_two_that_compare_as_much():
    both = levels(0.34, 0.37, 0.36, sizes=(16,)) | {("anchored:square", 16): 0.33}
    # shorter, more repetitions and one method more: its bests lie in the last epoch
    wide = both | {("likelihood", 16): 0.34}
    short = list(invented(wide, seeds=10, edge=("matching", "anchored:square")))
    longer = [r._replace(experiment=r.experiment._replace(epochs=9)) for r in invented(both)]
    assert row(short, OURS, judge=ours).verdict == "undecided"
    assert row([*short, *longer], OURS, judge=ours).verdict == "supported"


def test_the_variance_of_all_tasks_is_one_line():
    runs = list(invented(levels(0.34, 0.37, 0.36)))
    found = lambda last: ours(runs, spreads=[
        BagDeviation("adult", 2, 9, 0.8, 1), BagDeviation("adult", 64, 9, last, 6)
    ])[0]  # fmt: skip
    assert (found(0.9).verdict, found(1.9).verdict) == ("supported", "not supported")
    assert found(0.9).sees == "Adult: 0.800 at 2, 0.900 at 64 (EasyLLP 1.000, 6.000)"


def chosen(losses, size=16, seeds=5, epochs=5):
    """What held-out bags chose, by share and among what."""
    experiment = next(invented({("upm", size): 0.39})).experiment._replace(epochs=epochs)
    return [
        _choice.Chosen(
            experiment, size, holdout, s, among, 1, "upm", "log", 0.1, 1, loss + s / 1000, 0.5
        )
        for (holdout, among), loss in losses.items()
        for s in range(seeds)
    ]


def test_the_choice_among_methods_is_compared_with_the_best_single_method():
    full = list(invented({("upm", 16): 0.39}))
    told = lambda losses: row(full, CHOICE, judge=lambda runs: ours(
        runs, chosen({(0.2, among): loss for among, loss in losses.items()})
    )).verdict  # fmt: skip
    alone = {"upm:log": 0.40, "matching:log": 0.36}
    assert told({**alone, "all": 0.36}) == "supported"
    assert told({**alone, "all": 0.37}) == "not supported"
    other = {"all smoothed by 0": 0.1, "upm:log smoothed by 0": 0.1, "method_of_another:log": 0.9}
    assert told({**alone, "all": 0.36} | other) == "supported"
    worthless = {name: loss + 0.2 for name, loss in alone.items()}  # the trivial loss is 0.55
    assert told({**worthless, "all": 0.56}) == "undecided"


def test_two_repetitions_of_a_choice_decide_nothing():
    losses = {(0.2, "all"): 0.37, (0.2, "upm:log"): 0.36}
    choices = chosen(losses, seeds=2)
    full = list(invented({("upm", 16): 0.39}))
    _, verdict, why = row(full, CHOICE, judge=lambda runs: ours(runs, choices))
    assert (verdict, why) == ("undecided", "too few repetitions")
    longer = of_experiment(full, epochs=9)  # two and four are not six
    choices += chosen(losses, seeds=4, epochs=9)
    sees, verdict, _ = row([*full, *longer], CHOICE, judge=lambda runs: ours(runs, choices))
    assert (verdict, sees.count("at 16")) == ("undecided", 2)
    assert sees.endswith("5 epochs; trivial 0.5500; perceptron, usual start, 9 epochs")


def test_shares_of_held_out_bags_are_judged_apart():
    full = list(invented({("upm", 16): 0.39}))
    losses = {(0.2, "all"): 0.3, (0.2, "upm:log"): 0.3, (0.5, "all"): 0.6, (0.5, "upm:log"): 0.5}
    sees, verdict, _ = row(full, CHOICE, judge=lambda runs: ours(runs, chosen(losses)))
    assert (verdict, sees.count("at 16")) == ("not supported", 2)


def test_a_latex_table_has_the_best_in_bold_those_within_an_error_underlined_and_a_paired_test():
    both = levels(0.34, 0.37, 0.3405, sizes=(16,))
    runs = list(invented(both))
    for one in runs:
        one.test_loss[0] += 0.004 * (
            one.way.method == "matching"
        )  # the mean gap is 0.0003 ± 0.0008
    text = latex_page(runs, [runs[0].experiment], (Way.named("matching"), Way.named("easy")))
    loss = text.split("\\begin{table*}")[1].splitlines()
    stacked = "\\begin{tabular}[b]{@{}r@{}}p,\\\\ PM,\\\\ EasyLLP\\end{tabular}"
    assert f"bags of & PM & EasyLLP & GeneralUPM & {stacked} \\\\" in loss
    gap = np.array([0.026, 0.03, 0.03, 0.03, 0.03])
    expected = scipy.stats.ttest_1samp(gap, 0).pvalue
    assert expected < 0.001
    small = "{\\scriptsize$\\pm$ 0.0014}"
    (cells,) = (line for line in loss if line.startswith("16 & "))
    size, pm, easy, upm, p = cells.removesuffix(" \\\\").split(" & ")
    assert pm.startswith("\\underline{0.3408 {\\scriptsize$\\pm$ ")
    assert (size, easy, upm) == ("16", f"0.3700 {small}", f"\\textbf{{0.3405 {small}}}")
    assert p == "$<$ 0.001"
    assert (
        "\\caption{Adult (perceptron, usual start, 5 epochs; 5 repetitions; the paper's network): "
        f"test log loss, mean and standard error. {MARKS} p: of a paired t test of PM and "
        "EasyLLP, not corrected for the number of sizes.}"
    ) in loss
    assert "\\label{tab:adult-perceptron-usual-5-log-loss}" in loss
    assert "trivial & \\multicolumn{4}{c}{0.5500} \\\\" in loss


def test_a_latex_table_without_the_two_methods_has_no_column_for_their_test():
    runs = [*invented(levels(0.34, 0.37, 0.35, sizes=(16,)))]
    text = latex_page(runs, [runs[0].experiment], (Way.named("upm"), Way.named("anchored:square")))
    assert "bags of & PM & EasyLLP & GeneralUPM \\\\" in text
    assert "t test" not in text


def test_controls_without_smoothing_have_a_latex_panel_of_their_own_with_the_sizes_they_have():
    runs = [*invented(levels(0.34, 0.37, 0.35, sizes=(1, 16)))]
    controls = [
        one._replace(way=Way(one.way.method, UNSMOOTHED))
        for one in invented(levels(0.33, 0.36, 0.34, sizes=(1,)))
    ]
    text = latex_page([*runs, *controls], [runs[0].experiment])
    usual, control = text.split("\\begin{table*}")[1].split("\\bottomrule")[:2]
    assert "bags of & PM & EasyLLP & GeneralUPM \\\\" in usual
    assert "\n16 & " in usual
    stacked = [f"{name},\\\\ unsmoothed" for name in ("PM", "EasyLLP", "GeneralUPM")]
    places = [control.index(name) for name in stacked]
    assert places == sorted(places)
    assert "\n1 & \\textbf{0.3300" in control  # the best of each kind
    assert "\n1 & \\textbf{0.3400" in usual
    assert "trivial" in usual
    assert "trivial" not in control
    assert "\n16 & " not in control


def compiled(text: str, folder: Path) -> str:
    """What pdflatex says of it, in a document as docs/reproducing.md has it."""
    (folder / "tables.tex").write_text(text)
    (folder / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n"
        "\\begin{document}\n\\input{tables}\n\\end{document}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:]
    return run.stdout


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_tables_compile_and_none_is_wider_than_the_page(tmp_path):
    hard = [f"wide_{i} 50% <{i}|~^" for i in range(7)]
    runs = [*invented(levels(0.34, 0.37, 0.35, sizes=tuple(2**i for i in range(12))))]
    runs += [
        one._replace(way=Way(name, "log"))
        for name in hard
        for one in runs
        if one.way.method == "upm"
    ]
    text = latex_page(runs, [runs[0].experiment], (Way.named("matching"), Way.named("upm")))
    assert text.count("\\begin{tabular}{l") == 2 * 2  # two panels each of loss and AUC
    assert "Overfull" not in compiled(text, tmp_path)


@pytest.mark.parametrize("seeds, sizes, model", [
    (2, (16, 64), "perceptron"),
    (3, (16, 64), "cnn"),
    (3, (16,), "perceptron"),  # one size is no curve
])  # fmt: skip
def test_the_papers_panel_is_of_its_network_once_three_repetitions_are_there(seeds, sizes, model):
    given = {"task": "mnist", "rows": 60_000}
    small = invented(levels(0.34, 0.37, 0.35, sizes=(4, 16, 64)), model="perceptron", **given)
    own = invented(levels(0.3, 0.3, 0.3, sizes=sizes), seeds=seeds, **given)
    once = invented(levels(0.3, 0.3, 0.3, sizes=(1, 256)), seeds=1, **given)  # is no point
    assert _broadest([*small, *own, *once], "mnist").model == model


def test_rate_and_method_are_chosen_by_unbag_choose_from_the_held_out_bags_of_each_repetition(
    tmp_path,
):
    small = {**TOY, "sizes": (20,), "repetitions": 2}
    store, plan = RunStore(tmp_path), Plan(**small, holdout=0.3)
    run_plan(plan, store)
    found = _choice.read_choices(store)
    assert len(found) == 2 * 3  # repetitions; two methods and all

    @cache
    def bags_of(size, repetition):
        bags = unbag.random_bags(toy().X, toy().y, size=size, seed=repetition)
        return bags.split(0.7, seed=repetition)

    @cache
    def runs_of(size, repetition, way):
        learn, held = bags_of(size, repetition)
        return unbag.sweep(
            lambda seed: MODELS["linear"]((3,), key=seed),
            learn,
            way.method,
            way.loss,
            learning_rates=plan.rates,
            seeds=(repetition,),
            epochs=plan.epochs,
            smoothing=0.1 if way.loss == "log" else 0.0,
            held_out=held,
            test=(toy().X_test, toy().y_test),
        )

    for one in found:
        held = bags_of(one.size, one.repetition)[1]
        ways = [way for way in plan.ways if one.among in ("all", str(way))]
        runs = [runs_of(one.size, one.repetition, way) for way in ways]
        best = unbag.choose(runs, held).model
        assert (one.method, one.rate, one.epoch) == (best.method, best.learning_rate, best.epoch)
        assert one.test_loss == pytest.approx(best.history["test_loss"][best.epoch - 1], abs=1e-5)
    run_plan(Plan(**{**small, "rates": (0.01,)}, holdout=0.3), store)
    assert (
        _choice.read_choices(store) == found
    )  # a choice from fewer candidates does not take the place of one from more
    other = Plan(**{**small, "rates": (*TOY["rates"], 0.3)}, holdout=0.3, smoothing=0.0)
    run_plan(other, store)
    usual = [one for one in _choice.read_choices(store) if one.among in ("all", "upm:log")]
    assert usual == [
        one for one in found if one.among in ("all", "upm:log")
    ]  # nor does one without smoothing
    table = _results.choice_table(
        _results.read_runs(store), _choice.read_choices(store), plan.experiment, 0.3
    )
    rows = [line.split(" | ")[0].strip("| ") for line in table.splitlines()[3:]]
    assert rows == [
        "GeneralUPM",
        "anchored, square",
        "GeneralUPM, unsmoothed",
        "any method",
        "all smoothed by 0",
    ]


def test_a_run_from_the_trivial_predictor_does_not_depend_on_its_company():
    plan = Plan(
        "toy",
        methods=("upm",),
        sizes=(200,),
        rates=(0.01,),
        repetitions=3,
        epochs=1,
        holdout=0.4,
        start="trivial",
    )
    together, alone = (
        [
            row
            for group in Plan(**{**vars(plan), "repetitions_together": n}).groups()
            for row in _run.train_group(group)
        ]
        for n in (3, 1)
    )
    assert (
        len({row["trivial"] for row in together}) > 1
    )  # each repetition holds other bags out, so priors differ
    for a, b in zip(together, alone, strict=True):
        assert (which(a), a["trivial"]) == (which(b), b["trivial"])
        assert a["test_loss"] == pytest.approx(b["test_loss"], rel=1e-6)


def test_zero_and_nought_point_nought_are_one_identity():
    whole, broken = (Plan(**TOY, smoothing=zero, holdout=zero) for zero in (0, 0.0))
    assert [g.identity() for g in whole.groups()] == [g.identity() for g in broken.groups()]


def test_runs_with_another_smoothing_are_a_curve_of_their_own(tmp_path):
    store = RunStore(tmp_path)
    made_up(Plan(**TOY), store)
    made_up(Plan(**TOY, smoothing=0.0), store)
    found = _results.read_runs(store)
    assert {str(runs.way) for runs in found} == {
        "upm:log",
        "upm:log smoothed by 0",
        "anchored:square",
    }
    table = _results.experiment_table(_results.cells_of(found, found[0].experiment, "test_loss"))
    assert table.count("| GeneralUPM, unsmoothed |") == 1


def test_figures_of_two_batch_sizes_have_two_names():
    assert len({Plan(**TOY, batch=batch).experiment.name for batch in (4096, 512)}) == 2


def test_an_exposure_is_an_offset_of_every_model():
    data = unbag.datasets.make_counts(2000, 1000, seed=0, least_exposure=0.1)
    add_task("exposed", lambda: data, model="linear", kind="total")
    plan = Plan(
        "exposed",
        methods=("upm", "labels"),
        sizes=(4,),
        rates=(0.03,),
        repetitions=1,
        epochs=30,
        start="trivial",
    )
    rows = [_run.train_group(group)[0] for group in plan.groups()]
    exposure, y, expected = np.exp(data.offset), data.y_test, np.exp(data.offset_test)
    expected *= data.y.sum() / exposure.sum()
    trivial = np.mean(expected - y * np.log(expected))
    truth = np.mean(data.truth_test - y * np.log(data.truth_test))
    for row in rows:
        assert row["trivial"] == pytest.approx(trivial, rel=1e-5)
        assert row["test_loss"][-1] < truth + 0.5 * (trivial - truth)
    known = _catalogue.data_of("exposed")
    model = _catalogue.build("perceptron", known, outputs=1, key=0, start=None)
    later = known.X_test + np.eye(known.X.shape[1], dtype=np.float32)[-1]
    assert np.allclose(model(later), model(known.X_test) + 1, atol=1e-5)


def test_the_variance_of_upm_stays_while_that_of_easyllp_grows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 1))
    y = (rng.uniform(size=4000) < 1 / (1 + np.exp(2 - X[:, 0]))).astype(float)
    spreads = bag_spread("rare", Dataset(X, y, X, y, ("a",)), [2, 50])
    assert spreads[1].upm < 1.5 * spreads[0].upm
    assert spreads[1].easy > 2 * spreads[0].easy


def test_what_a_report_inside_the_store_says_of_the_variance_is_not_read_again(tmp_path):
    store = RunStore(tmp_path)
    for folder in ("adult", "report"):
        row = {"task": "adult", "size": 2, "bags": 9, "upm": 0.5, "easy": 1.0}
        store.write_table(folder, "variance", [row])
    assert _choice.read_deviations(store) == [BagDeviation("adult", 2, 9, 0.5, 1.0)]


def test_a_report_has_tables_claims_and_figures(tmp_path):
    store = RunStore(tmp_path / "store")
    plan = preset("paper", "adult", rates=(0.1,), repetitions=2, epochs=2, sizes=(1, 16, 64))
    made_up(plan, store)
    written = write_report(store, tmp_path / "report")
    for path in written:
        assert path.stat().st_size > 200
    pictures = {path.name for path in written if path.suffix == ".svg"}
    assert len(pictures) == 2 * 2
    with (tmp_path / "report" / "best.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * (6 * 3 + 1)
    text = (tmp_path / "report" / "report.md").read_text()
    assert "| number of bags | 1000 | 62 | 15 |" in text
    claims = (tmp_path / "report" / "claims.md").read_text()
    first = next(line for line in claims.splitlines() if line.startswith("| 1 | "))
    assert first.startswith(
        "| 1 | PM has the lowest loss at small bag sizes | Adult | lowest mean: "
    )
    assert first.endswith(" | not comparable | 1,000 of the paper's 32,561 rows |")
    pair = (Way("upm", "log"), Way("anchored", "square"))
    again = write_report(store, tmp_path / "my report", latex=True, compare=pair)
    tables = (tmp_path / "my report" / "tables.tex").read_text()
    assert "\\begin{tabular}{lrrrrrrr}" in tables
    words = "my report' --force --latex --compare upm:log --compare anchored:square. In a paper:"
    assert tables.splitlines()[0].endswith(words)
    assert len(again) == len(written) + 1


def test_what_has_too_few_repetitions_ends_the_report(tmp_path):
    runs = [*invented({("upm", 16): 0.39})]
    runs += of_experiment(invented({("upm", 16): 0.39}, seeds=2), epochs=3)
    runs += [runs[0]._replace(holdout=0.2)]
    experiments = _results.experiments_of(runs)
    page = _report._report_page("x", tmp_path, runs, experiments, chosen({(0.2, "all"): 0.4}))
    own = [line for line in page.splitlines() if line.startswith("#")]
    assert own == [
        "# Results",
        "## Adult (perceptron, usual start, 5 epochs; 5 repetitions; the paper's network)",
        "## Adult (perceptron, usual start, 5 epochs): chosen from held-out bags",
        "# Too few repetitions to say anything",
        "## Adult (perceptron, usual start, 3 epochs; 2 repetitions; the paper's network)",
    ]


def test_a_zoom_has_bars_inside_and_hollow_points_at_an_end_of_the_grid():
    runs = [*invented({("upm", 16): 0.40, ("matching", 16): 0.41}, wobble=0.1, edge=("upm",))]
    cells = _results.cells_of(runs, runs[0].experiment, "test_loss")
    panel = experiments_figure([cells], sizes=(16,)).axes[0]
    hollow = [line.get_ydata()[0] for line in panel.lines if line.get_markerfacecolor() == "white"]
    assert hollow == pytest.approx([0.40])
    low, high = panel.get_ylim()
    error = cells.best[Way("upm", "log"), 16].error
    assert error > 0.05
    assert low < 0.40 - error < 0.41 + error < high


def test_the_figures_of_the_papers_tasks_have_its_methods_and_ours_only(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(_report, "experiments_figure", lambda cells, sizes: cells)
    monkeypatch.setattr(
        _report, "save_figure", lambda cells, path: drawn.update({path.name: cells})
    )
    every = {(way, k): 0.4 for way in ("upm", "anchored:log", "labels") for k in (2, 16)}
    runs = [*invented(every), *invented(every, task="mnist", rows=60_000)]
    _report._figures(runs, _results.experiments_of(runs), tmp_path)
    of = lambda name: {way.method for cells in drawn[name] for way, _ in cells.best}
    assert of("paper-log-loss") == {"upm", "labels"}
    assert of("adult-perceptron-usual-5-log-loss") == {"upm", "anchored", "labels"}


def test_levels_that_lie_outside_of_a_zoom_are_named_one_below_the_other():
    """Where nobody learns, both lie below: their names stood on one another."""
    runs = [*invented({("upm", 16): 0.70, ("upm", 32): 0.72, ("labels", 1): 0.4})]
    cells = _results.cells_of(runs, runs[0].experiment, "test_loss")
    panel = experiments_figure([cells], sizes=(16, 32)).axes[0]
    words = [text.get_text() for text in panel.texts if "\N{DOWNWARDS ARROW}" in text.get_text()]
    assert [line.split()[0] for line in words[0].splitlines()] == ["trivial", "labels"]
    assert len(words) == 1


def test_a_report_judges_online_runs_beside_the_batch_ones(tmp_path, monkeypatch):
    store = RunStore(tmp_path / "store")
    made_up(preset("paper", "adult", rates=(0.1,), repetitions=2, epochs=2, sizes=(16,)), store)
    online = OnlineStore(tmp_path / "store" / "online" / "clicks")
    plan = online_preset("smoke", methods=("upm", "matching"), sizes=(128,))
    online.keep_plan(plan)
    assert online_stores(tmp_path / "store" / "online")[0][0] == plan
    for cell in plan.cells():
        loss = 0.5 if cell.way.method == "upm" else 0.6
        runs = [plan.run(cell, rate, 0, plan.tuning) for rate in plan.rates]
        for run in [
            *runs,
            *(plan.run(cell, plan.rates[0], s, plan.chunks) for s in range(plan.repetitions)),
        ]:
            history = {name: [loss + run.rate] * run.chunks for name in HISTORY}
            online.add([{**run._asdict(), **history}])
    OnlineStore(tmp_path / "store" / "online" / "begun").keep_plan(plan)  # nothing to report of yet
    write_report(store, tmp_path / "report", latex=True)
    tables = (tmp_path / "report" / "tables.tex").read_text()
    assert tables.count(f"\\label{{tab:online-clicks-{plan.rows}-") == 2
    text = (tmp_path / "report" / "claims.md").read_text()
    few = "not comparable | 3,072 of the paper's 37,000,000 events; the paper has another network; "
    assert few in text
    monkeypatch.setattr(online_reporting, "PAPER_EVENTS", 6144)
    results = online_reporting.results_of(plan, online)
    found = online_reporting.judge_online(replace(plan, model="paper"), results)
    assert found[3:] == (
        "at 128 PM 0.6010 ± 0.0000*, GeneralUPM 0.5010 ± 0.0000*, AUC 0.6010, 0.5010; "
        "GeneralUPM ahead of PM in 2 of 2 chunks after the first",
        "undecided",
        "undecided at 128: 2 repetitions",
    )
    assert "The claim" in (tmp_path / "report" / "online-clicks" / "online.md").read_text()


@pytest.mark.parametrize("share, verdict, reason", [
    (0.5, "supported", "for it at 256"),  # the trivial predictor has log 2
    (0.1, "undecided", "undecided at 256: nobody beats the trivial predictor"),
])  # fmt: skip
def test_a_stream_decides_nothing_where_nobody_beats_the_trivial_predictor(
    share, verdict, reason, monkeypatch
):
    monkeypatch.setattr(online_reporting, "PAPER_EVENTS", 0)
    own = {"sizes": (256,), "rates": (0.1, 0.2, 0.3), "repetitions": 5, "model": "paper"}
    plan = online_preset("smoke", **own)

    def run(method, seed):
        auc = 0.7 + 0.1 * (method == "easy")
        loss = losses[method] + 0.001 * seed
        levels = {"label_log_loss": loss, "label_auc": auc, "prior_of_chunk": share}
        values = {name: [level] * 9 for name, level in levels.items()}
        return {"rate": 0.2, "repetition": seed, **values}

    losses = {"upm": 0.5, "matching": 0.6, "easy": 0.65}
    results = {
        Cell(Way(method, "log"), 256, "chunk"): [run(method, seed) for seed in range(5)]
        for method in losses
    }
    found = online_reporting.judge_online(plan, results)
    assert found.verdict == verdict
    assert found.why == reason


def test_both_panels_of_a_stream_have_the_true_loss():
    plan = online_preset("smoke", sizes=(256,), repetitions=1)
    names = ("label_log_loss", "label_auc", "prior_of_chunk", "true_log_loss")
    run = {"rate": plan.rates[0], "repetition": 0, **{name: [0.5, 0.4] for name in names}}
    figure = online_reporting.draw_online(
        plan, {Cell(Way("upm", "log"), 256, "chunk"): [run]}, "label_log_loss", "log loss"
    )
    for panel in figure.axes:
        assert "the truth" in panel.get_legend_handles_labels()[1]


def test_the_trivial_predictor_of_a_stream_knows_the_chunk_before():
    runs = {"any": [{"prior_of_chunk": [0.25, 0.5]}]}
    expected = [np.log(2), -0.5 * np.log(0.25) - 0.5 * np.log(0.75)]
    assert online_reporting._trivial(runs, "label_log_loss") == pytest.approx(expected)
    assert online_reporting._trivial(runs, "label_auc").tolist() == [0.5, 0.5]


def test_an_online_run_that_cannot_be_read_counts_as_not_done(tmp_path):
    store, plan = OnlineStore(tmp_path), online_preset("smoke")
    run = plan.run(next(plan.cells()), 0.1, 0, 3)
    path = store.add([{**run._asdict(), **{name: [0.5] * 3 for name in HISTORY}}])
    assert store.read(run)["rate"] == 0.1
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match=r"cannot be read and is left out: its runs count as not"):
        assert store.read(run) is None


def test_the_files_of_a_task_are_fetched_when_asked_for(monkeypatch):
    asked_for = []
    load = lambda *, download=False: asked_for.append(download) or toy()
    monkeypatch.setitem(_catalogue.TASKS, "far", _catalogue.Task("far", load))
    _catalogue.download("far")
    _catalogue.download("toy")  # it is here: nothing to fetch
    assert asked_for == [True]


@pytest.mark.slow
def test_the_smoke_preset_runs_on_adult(tmp_path):
    words = [
        "reproduce",
        "adult",
        "--preset",
        "smoke",
        "--size",
        "256",
        "--store",
        str(tmp_path / "runs"),
        "--report",
        str(tmp_path / "r"),
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "| GeneralUPM | " in result.output
    assert (
        len(RunStore(tmp_path / "runs").finished())
        == preset("smoke", "adult", sizes=(256,)).count()
    )
    assert (tmp_path / "r" / "claims.md").exists()


def test_the_command_runs_a_plan_prints_a_table_and_reports(tmp_path):
    words = [
        "reproduce",
        "toy",
        "--preset",
        "smoke",
        "--method",
        "upm",
        "--size",
        "20",
        "--store",
        str(tmp_path / "s"),
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "| number of bags | 50 |" in result.stdout
    assert "4 runs made, 0 were there already" in result.stderr
    words = ["reproduce", "--store", str(tmp_path / "s"), "--report", str(tmp_path / "r")]
    assert CliRunner().invoke(app, words).exit_code == 0
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 1
    assert "is not empty. Use --force to overwrite." in again.stderr
    assert again.stdout == ""


def test_a_method_of_your_own_runs_beside_ours(tmp_path):
    import jax.numpy as jnp

    def pulled(score, batch, loss):
        f = loss.components(score)
        return jnp.sum(batch.real * (f[:, 0] + batch.report[batch.bag, 1] * f[:, 1])) / jnp.sum(
            batch.real
        )

    add_method("pulled", pulled)
    plan = Plan(**{**TOY, "methods": ("pulled",), "sizes": (1,), "smoothing": 0.0})
    labels = Plan(**{**TOY, "methods": ("labels",), "sizes": (1,), "smoothing": 0.0})
    mine, theirs = (_run.train_group(next(p.groups())) for p in (plan, labels))
    for a, b in zip(mine, theirs, strict=True):  # bags of one are labels
        np.testing.assert_allclose(a["test_loss"], b["test_loss"], rtol=1e-4)
        assert which(a) != which(b)


def test_the_example_of_adding_a_method_and_data_is_one_short_file(tmp_path, untrained):
    page = (Path(__file__).parents[2] / "docs" / "adding.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    assert len(code.splitlines()) < 40
    (tmp_path / "mine.py").write_text(code)
    words = [
        "reproduce",
        "rings",
        "--extra",
        str(tmp_path / "mine.py"),
        "--method",
        "squared_matching",
    ]
    result = CliRunner().invoke(app, [*words, "--store", str(tmp_path / "store")])
    assert result.exit_code == 0, result.output
    assert "squared PM" in result.stdout


def test_a_loss_that_does_not_fit_the_task_is_refused():
    with pytest.raises(
        ValueError,
        match="A loss for histogram reports must give one component per class: log does not",
    ):
        Plan("mnist-digits", methods=("upm:log",))


def test_every_run_in_results_is_part_of_a_plan():
    """So that what was run can be run again, and what is missing can go on."""
    results = Path(__file__).parents[2] / "results"
    plans = [read_plan(path) for path in (results / "plans").glob("*.toml")]
    planned = {
        run
        for plan in [*plans, preset("paper", "adult")]
        for group in plan.groups()
        for run in group.runs()
    }
    assert RunStore(results).finished() <= planned


def test_the_page_on_experiments_has_the_twelve_rows_of_the_report():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "experiments.md").read_text()
    claims = (root / "results" / "report" / "claims.md").read_text()
    rows = [line for line in claims.partition("## Our own")[0].splitlines() if line[:1] == "|"]
    assert len(rows) == 2 + 12
    assert "\n".join(rows) in page


@pytest.mark.parametrize("heading, experiment, count, digits", [
    ("### Adult", ("adult", "perceptron", "usual", "150"), 12, 3),
    ("### Higgs with 28 features", ("higgs-all", "deep", "usual", "12"), 12, 4),
    ("### MNIST with the paper's CNN", ("mnist", "cnn-bfloat16", "usual", "8"), 1, 4),
    ("### MNIST with the paper's CNN until", ("mnist", "cnn", "usual", "60"), 1, 3),
])  # fmt: skip
def test_the_tables_of_the_page_on_experiments_are_of_the_runs_in_results(
    heading, experiment, count, digits
):
    root = Path(__file__).parents[2]
    page = (root / "docs" / "experiments.md").read_text()
    sizes, rows = read_table(page.partition(heading)[2])
    with (root / "results" / "report" / "best.csv").open() as file:
        best = {
            (Way(row["method"], row["loss"]).title, row["size"]): float(row["mean"])
            for row in csv.DictReader(file)
            if (row["task"], row["model"], row["start"], row["epochs"]) == experiment
            and (row["metric"], row["holdout"]) == ("test_loss", "0.0")
        }
    assert len(sizes) == count
    for title, numbers in rows.items():
        assert numbers == [f"{best[title, size]:.{digits}f}" for size in sizes]


def test_the_stream_of_the_page_on_experiments_is_that_of_the_report():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "experiments.md").read_text().partition("### Criteo's stream")[2]
    report = (root / "results" / "report" / "online-criteo" / "online.md").read_text()
    sizes, rows = read_table(page)
    known, numbers = read_table(report)
    assert sizes == [size.removeprefix("k = ") for size in known]
    for title in ("PM", "EasyLLP", "GeneralUPM", "anchored, square"):
        assert rows[title] == [
            number.split()[0] + "*" * ("*" in number) for number in numbers[title]
        ]


def read_table(text):
    """The bag sizes and the rows of the first table in a text."""
    table = text[text.index("|") :].partition("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    sizes = [size.replace(",", "") for size in cells[0][1:]]
    return sizes, {title: numbers for title, *numbers in cells[2:]}
