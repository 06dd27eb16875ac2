"""Learning while data arrives: replay is batch, a kill changes nothing, reports may come in any
order."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pyarrow.parquet as pq
import pytest
from scipy.special import expit
from typer.testing import CliRunner

import unbag
from cases.stream import (
    PLACE,
    SMALL,
    bags_in_order,
    chunk_of,
    everything,
    feed,
    network,
    on_disk,
    parameters,
    put,
    quiet_buffer,
    same,
    source,
)
from unbag import losses, weights
from unbag.bags import random_bags
from unbag.cli import app
from unbag.cli._stream import in_words
from unbag.datasets import Chunk
from unbag.lab import _online as online
from unbag.lab._online import (
    OnlineStore,
    _runs,
    best_rate,
    online_preset,
    run_online,
    write_online_report,
)
from unbag.metrics import evaluate, evaluate_labels
from unbag.stream import StreamLearner, _checkpoint, run_stream
from unbag.stream._checkpoint import METRICS, StreamStore

METHODS = ("anchored", "upm", "easy", "matching", "likelihood", "labels")


def bags_of(chunk, size, seed):
    return random_bags(chunk.X, chunk.y, size=size, seed=seed)


@pytest.mark.parametrize("method", METHODS)
def test_one_chunk_is_one_epoch_of_batch_training(method):
    rows = (
        64 if method == "anchored" else 256
    )  # the batch trainer's reference moves from one batch to the next
    chunk = chunk_of(0, rows)
    learner = StreamLearner(network(), method=method, **SMALL)
    learner.learn(chunk)
    bags = bags_of(chunk, 1 if method == "labels" else 8, seed=0)
    run = unbag.train(network(), bags, method, learning_rate=0.02, epochs=1, batch=64, seed=0)
    ours, theirs = (
        jax.tree.leaves(eqx.filter(m, eqx.is_array)) for m in (learner.model, run.model)
    )
    assert not np.allclose(ours[0], jax.tree.leaves(eqx.filter(network(), eqx.is_array))[0])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", ["upm", "easy", "anchored"])
def test_a_stream_is_a_plain_loop_over_chunks_batches_and_weights(method):
    learner = StreamLearner(network(), method=method, **SMALL)
    model, adam = network(), optax.adam(0.02)
    loss = losses.square if method == "anchored" else losses.log
    moments = adam.init(eqx.filter(model, eqx.is_array))
    slope_of = eqx.filter_jit(
        eqx.filter_grad(lambda model, W, X: jnp.sum(W * loss.components(model(X))))
    )
    for number in range(3):
        chunk = chunk_of(number)
        learner.learn(chunk)
        bags = bags_of(chunk, 8, seed=number)
        g = expit(np.asarray(model(jnp.asarray(bags.X)), float))
        for numbers in unbag.bags.batch_plan(bags.size, 64, seed=0, epoch=number + 1):
            rows = bags.rows_of(numbers)
            part = bags.take(numbers)
            report, prior = part.components().report, bags.components().prior
            if method == "anchored":
                W = weights.anchored(
                    part.bag, part.size, report, prior, np.stack([np.ones(len(rows)), g[rows]], 1),
                    reference_mean=np.array([1, g.mean()]),
                )  # fmt: skip
            else:
                W = getattr(weights, method)(part.size, report, prior)[part.bag]
            slope = slope_of(model, jnp.asarray(W), jnp.asarray(part.X))
            updates, moments = adam.update(slope, moments)
            model = eqx.apply_updates(model, updates)
    for a, b in zip(
        jax.tree.leaves(learner._trainer.state.params), jax.tree.leaves(model), strict=False
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_given_bags_are_taken_as_they_are():
    chunk = chunk_of(0)
    drawn = bags_of(chunk, 8, seed=0)
    name = np.empty(256, object)
    name[drawn.rows] = [f"bag {number:03d}" for number in drawn.bag]
    shuffled, given = StreamLearner(network(), **SMALL), StreamLearner(network(), **SMALL)
    shuffled.learn(chunk)
    given.learn(chunk._replace(bag=name.astype(str)))
    for a, b in zip(parameters(shuffled), parameters(given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_predictions_come_before_learning_and_metrics_are_those_of_evaluate():
    learner = StreamLearner(network(), method="upm", **SMALL)
    learner.learn(chunk_of(0))
    chunk = chunk_of(1)
    score = learner.predict(chunk.X)
    row = learner.learn(chunk)
    told = evaluate_labels(score, chunk.y)
    assert row["label_log_loss"] == pytest.approx(told["log_loss"].value)
    assert row["label_auc"] == pytest.approx(told["auc"].value)
    bags = bags_of(chunk, 8, seed=1)
    from_bags = evaluate(score[bags.rows], bags)
    assert row["log_loss"] == pytest.approx(from_bags["log_loss"].value)
    assert row["auc_error"] == pytest.approx(from_bags["auc"].error)
    assert row["gap"] == pytest.approx(expit(score[bags.rows]).mean() - row["prior"], abs=1e-6)
    truth = -np.mean(chunk.y * np.log(chunk.truth) + (1 - chunk.y) * np.log1p(-chunk.truth))
    assert row["true_log_loss"] == pytest.approx(truth)
    pair = [(r["log_loss"], r["log_loss_error"]) for r in learner.rows]
    assert row["window_log_loss"] == pytest.approx(np.mean([value for value, _ in pair]))
    assert row["window_log_loss_error"] == pytest.approx(np.hypot(pair[0][1], pair[1][1]) / 2)


def test_drift_is_seen_from_reports_alone():
    rng = np.random.default_rng(0)
    learner = StreamLearner(network(), **SMALL)
    rates = [0.2, 0.2, 0.2, 0.6]
    alarm = [
        learner.learn(Chunk(rng.normal(size=(512, 3)), y=(rng.random(512) < rate).astype(float)))[
            "drift"
        ]
        for rate in rates
    ]
    assert alarm == [False, False, False, True]


@pytest.mark.parametrize("prior, used", [("chunk", None), ("first", None), (0.3, 0.3)])
def test_the_prior_is_of_the_chunk_of_the_first_or_fixed(prior, used, monkeypatch):
    seen = []
    real = unbag.training.ChunkTrainer.learn
    monkeypatch.setattr(
        unbag.training.ChunkTrainer,
        "learn",
        lambda self, bags, *a: seen.append(float(bags.prior)) or real(self, bags, *a),
    )
    learner = StreamLearner(network(), prior=prior, **SMALL)
    mean = [learner.learn(chunk_of(number))["prior"] for number in range(2)]
    assert mean[0] != mean[1]
    assert seen == {"chunk": mean, "first": [mean[0]] * 2, 0.3: [0.3] * 2}[prior]


def test_learning_that_diverges_leaves_no_trace_and_is_counted():
    learner = StreamLearner(network(), method="upm", **SMALL)
    learner.learn(chunk_of(0))
    before = parameters(learner)
    row = learner.learn(chunk_of(1)._replace(X=chunk_of(1).X * np.float32(1e30)))
    assert np.isnan(row["objective"])
    assert all(np.array_equal(a, b) for a, b in zip(before, parameters(learner), strict=True))
    assert learner.counts["diverged"] == 1
    assert learner.events_learned == 256


def test_a_short_last_chunk_is_evaluated_and_not_learned():
    learner = StreamLearner(network(), **SMALL)
    before = parameters(learner)
    row = learner.learn(chunk_of(0, rows=12))
    assert (row["bags"], row["events"]) == (0, 12)
    assert np.isfinite(row["label_log_loss"])
    assert all(np.array_equal(a, b) for a, b in zip(before, parameters(learner), strict=True))


# --- events and reports that come apart ---


def test_late_and_unordered_reports_teach_the_same_as_reports_at_once():
    X, names, report = bags_in_order()
    rng = np.random.default_rng(0)
    at_once = StreamLearner(network(), method="upm", **SMALL)
    at_once.events(X, names)
    at_once.report(np.arange(32), report, size=np.full(32, 16))
    apart = StreamLearner(network(), method="upm", **SMALL)
    apart.report(np.arange(16), report[:16], size=np.full(16, 16))  # before their events
    for part in np.array_split(np.arange(len(X)), 7):
        apart.events(X[part], names[part])
    late = 16 + rng.permutation(16)
    apart.report(late, report[late], size=np.full(16, 16))
    assert at_once.chunks == apart.chunks == 2
    assert at_once.waiting == apart.waiting == 0
    assert at_once.events_learned == apart.events_learned == 512
    first = StreamLearner(network(), method="upm", **SMALL)
    first.events(X[:256], names[:256])
    first.report(np.arange(16), report[:16])
    assert first.chunks == 1
    order = np.concatenate([np.flatnonzero(names == name) for name in late])
    first.events(X[order], names[order])
    first.report(late, report[late])
    assert same(first, apart)


def test_the_reference_is_the_prediction_made_when_the_event_came():
    X, names, report = bags_in_order(count=32)
    learner = StreamLearner(network(), **SMALL)
    old = learner.events(X, names)
    learner.report(np.arange(16), report[:16])
    assert not np.allclose(learner.predict(X), old)
    found = learner._buffer
    learner.report(np.arange(16, 20), report[16:20])
    bags, score = found.take(64)
    assert np.array_equal(score, old[256 : 256 + 64])
    assert np.array_equal(bags.X, X[256 : 256 + 64])


def test_a_repeated_report_is_counted_and_a_restated_one_replaces():
    buffer, aside = quiet_buffer()
    put(buffer, ["a", "a"])
    assert buffer.add_report("a", 0.5)
    assert not buffer.add_report("a", 0.5)
    assert buffer.add_report("a", 1.0)
    assert buffer.take(1)[0].report.tolist() == [1.0]
    assert dict(aside.counts) == {"repeated": 1, "replaced": 1}


def test_a_restated_report_can_be_refused():
    buffer, aside = quiet_buffer(restated="refuse")
    put(buffer, ["a", "a"])
    buffer.add_report("a", 0.5)
    assert not buffer.add_report("a", 1.0)
    assert buffer.take(1)[0].report.tolist() == [0.5]
    assert dict(aside.counts) == {"restated": 1}


def test_a_report_for_events_already_learned_is_refused_and_so_are_late_events():
    buffer, aside = quiet_buffer()
    put(buffer, ["a", "a", "b"])
    buffer.add_report("a", 0.5)
    assert put(buffer, ["a", "b"]) == 1  # the report closed bag a
    buffer.take(1)
    assert not buffer.add_report("a", 0.0)
    assert put(buffer, ["a"]) == 0
    assert dict(aside.counts) == {"late event": 2, "late": 1}
    assert buffer.waiting == 2


def test_a_bag_waits_until_it_has_as_many_events_as_its_report_says():
    buffer, aside = quiet_buffer()
    put(buffer, ["a", "a"])
    buffer.add_report("a", 0.5, size=4)
    assert buffer.ready_events == 0
    assert put(buffer, ["a", "b", "a", "a"]) == 3
    assert buffer.ready_events == 4
    assert dict(aside.counts)["late event"] == 1


def test_a_report_of_fewer_events_than_wait_is_refused():
    buffer, aside = quiet_buffer()
    put(buffer, ["a"] * 3)
    assert not buffer.add_report("a", 0.5, size=2)
    assert dict(aside.counts) == {"size": 1}


def test_a_report_for_an_unknown_bag_waits_and_is_then_set_aside():
    buffer, aside = quiet_buffer()
    buffer.add_report("nobody", 0.5)
    put(buffer, ["a"] * 50)
    buffer.give_up()
    assert not aside.counts
    put(buffer, ["b"])
    buffer.give_up()
    assert dict(aside.counts) == {"unknown bag": 1}
    assert json.loads(aside.take_lines()[0])["where"] == "nobody"


def test_the_buffer_is_bounded_and_gives_up_the_oldest():
    buffer, aside = quiet_buffer()
    for name in range(30):
        put(buffer, [name] * 10)
        buffer.give_up()
        assert buffer.waiting <= 100
    assert sorted(buffer.bags) == list(range(20, 30))
    assert aside.counts["no report"] == 20
    assert len(buffer.ended) == 3  # what is remembered is bounded too
    assert not buffer.add_report(19, 0.5)
    assert aside.counts["late"] == 1


def test_a_report_with_another_noise_is_another_report():
    buffer, aside = quiet_buffer()
    put(buffer, ["a"] * 4)
    given = [("a", 0.5, 9, 1.0), ("a", 0.5, 9, 1.0), ("a", 0.5, 9, 2.0)]
    assert [buffer.add_report(*report) for report in given] == [True, False, True]
    assert (aside.counts["repeated"], aside.counts["replaced"]) == (1, 1)
    assert buffer.bags["a"].noise == 2.0


def test_the_oldest_are_those_whose_first_event_is_the_oldest():
    """And not those whose report came first."""
    buffer, _ = quiet_buffer()
    buffer.add_report("early", 0.5, size=99)
    put(buffer, ["first"] * 60)
    put(buffer, ["early"] * 60)
    buffer.give_up()
    assert list(buffer.bags) == ["early"]


def test_bags_of_many_calls_come_together_and_leave_nothing_behind():
    buffer, _ = quiet_buffer()
    rng = np.random.default_rng(0)
    names, total = rng.integers(0, 6, size=90), 0
    for start in range(0, 90, 9):
        part = names[start : start + 9].tolist()
        buffer.add_events(
            part, np.stack([names[start : start + 9]] * 2, axis=1), np.arange(start, start + 9.0)
        )
    for name in (4, 1, 0):
        buffer.add_report(name, name / 10)
    bags, score = buffer.take(1000)
    assert np.allclose(bags.report[bags.bag], bags.X[:, 0] / 10)
    assert sorted(score) == np.flatnonzero(np.isin(names, (4, 1, 0))).tolist()
    total = len(score)
    assert buffer.waiting == 90 - total
    for name in (2, 3, 5):
        buffer.add_report(name, 0.5)
    assert len(buffer.take(1000)[1]) == 90 - total
    assert on_disk(buffer.store) == 0


def test_reports_that_no_method_may_learn_from_are_set_aside():
    X, names, _ = bags_in_order(count=4)
    learner = StreamLearner(network(), method="upm", **SMALL)
    learner.events(X, names)
    assert (
        learner.report(
            [0, 1, 2, 3], [np.nan, 1.2, 1.2, 0.5], noise=[0, 0, 4, 0], size=[16, 16, 16, 0]
        )
        == 1
    )
    assert learner.counts == {"report": 3}
    strict = StreamLearner(network(), method="matching", **SMALL)
    assert strict.report([0], [1.2], noise=[4]) == 0


def test_a_clock_that_runs_back_is_noted_and_the_stream_goes_on():
    learner = StreamLearner(network(), **SMALL)
    learner.learn(chunk_of(3))
    learner.learn(chunk_of(1))
    learner.events(np.ones((1, 3)), ["x"], time=[np.nan])
    assert learner.counts == {"clock": 2}
    assert learner.chunks == 2
    dates = StreamLearner(network(), **SMALL)
    dates.events(
        np.ones((2, 3)), ["x", "y"], time=np.array(["2024-01-02", "2024-01-03"], "datetime64[D]")
    )
    dates.events(np.ones((1, 3)), ["x"], time=np.array(["2024-01-01"], "datetime64[D]"))
    assert dates.counts == {"clock": 1}


def test_a_full_buffer_learns_what_is_complete_before_it_gives_up():
    X, names, report = bags_in_order(count=32)
    learner = StreamLearner(network(), method="upm", **SMALL, waiting=300)
    learner.events(X[:256], names[:256])
    learner.report(np.arange(4), report[:4])
    assert learner.chunks == 0
    learner.events(X[256:], names[256:])
    assert learner.chunks == 1
    assert learner.events_learned == 64
    assert learner.waiting <= 300


# --- crash safety ---


@pytest.mark.parametrize("method", ["anchored", "likelihood"])
def test_resuming_gives_the_same_bits(tmp_path, method):
    whole = run_stream(
        source, StreamLearner(network(), method=method, folder=tmp_path / "a", every=2, **SMALL)
    )
    part = StreamLearner(network(), method=method, folder=tmp_path / "b", every=2, **SMALL)
    run_stream(lambda p: source(p, 3), part)
    part.learn(chunk_of(3))  # after the checkpoint: will be undone
    part.close()
    again = StreamLearner(network(), method=method, folder=tmp_path / "b", every=2, **SMALL)
    assert (again.position, again.chunks) == (3, 3)
    run_stream(source, again)
    assert same(whole, again)
    assert everything(tmp_path / "a") == everything(tmp_path / "b")
    assert json.dumps(again.rows) == json.dumps(whole.rows)
    assert again.events_learned == 6 * 256


def test_events_that_fill_no_bag_are_counted(tmp_path):
    learner = StreamLearner(network(), **SMALL)
    row = learner.learn(chunk_of(0, rows=261))
    assert (row["events"], learner.counts) == (256, {"leftover": 5})
    learner.learn(chunk_of(1, rows=12))
    assert (learner.events_learned, learner.counts) == (256, {"leftover": 17})


def test_a_report_that_is_refused_replaces_nothing():
    learner = StreamLearner(network(), method="upm", **SMALL)
    X, names, _ = bags_in_order()
    learner.events(X[:8], names[:8])
    name = names[0]
    learner.report([name], [0.25], size=[100])
    learner.report([name], [0.5], size=[1])
    assert learner.counts == {"size": 1}


def test_a_stream_is_not_resumed_from_another_source(tmp_path):
    learner = StreamLearner(network(), folder=tmp_path, source="clicks", **SMALL)
    learner.learn(chunk_of(0))
    learner.finish()
    learner.close()
    with pytest.raises(ValueError, match=r"source was 'clicks' and is 'train\.txt'"):
        StreamLearner(network(), folder=tmp_path, source="train.txt", **SMALL)


def test_what_came_after_the_checkpoint_is_undone(tmp_path):
    X, names, report = bags_in_order()
    learner = StreamLearner(network(), method="upm", folder=tmp_path, **SMALL)
    learner.events(X[:300], names[:300])
    learner.report([3, 99], [report[3], 0.5])
    learner.checkpoint(position=17)
    learner.events(X[300:], names[300:])
    learner.report(np.arange(30), report[:30])
    assert learner.chunks == 1
    learner.close()
    again = StreamLearner(network(), method="upm", folder=tmp_path, **SMALL)
    assert (again.position, again.chunks, again.waiting) == (17, 0, 300)
    assert on_disk(again._store) == 300
    again.events(X[300:], names[300:])
    again.report(np.arange(30), report[:30])
    assert same(learner, again)
    again.finish()
    assert again.counts["repeated"] == 1


def test_a_full_disk_leaves_the_old_checkpoint_and_the_stream_goes_on(tmp_path):
    learner = StreamLearner(network(), folder=tmp_path, every=1, **SMALL)
    learner.learn(chunk_of(0))

    db = learner._store.db
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
    learner.report(np.arange(5000), np.full(5000, 0.5))  # a state that needs more room
    with pytest.warns(
        UserWarning, match=r"The checkpoint after chunk 2 could not be written \(.*disk is full"
    ):
        learner.learn(chunk_of(1))
    assert learner.counts == {"checkpoint": 1}
    learner.close()
    crashed = StreamLearner(network(), folder=tmp_path, every=1, **SMALL)
    assert crashed.chunks == 1
    run_stream(source, crashed)
    assert same(
        crashed,
        run_stream(source, StreamLearner(network(), folder=tmp_path / "whole", every=1, **SMALL)),
    )
    assert everything(tmp_path)[0] == everything(tmp_path / "whole")[0]


def test_a_log_that_cannot_be_written_is_as_before(tmp_path, monkeypatch):
    store = StreamStore(tmp_path)
    store._append(METRICS, ["one\n"])

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_checkpoint.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            store._append(METRICS, ["two\n"])
    assert (tmp_path / METRICS).read_text() == "one\n"
    store.close()


WORKER = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from cases.stream import feed
feed(Path(sys.argv[1]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_a_killed_process_resumes_to_the_same_bits(tmp_path):
    whole = feed(tmp_path / "whole")
    assert whole.events_learned == 15 * 256 + 16 * whole._buffer.numbered - whole.waiting
    assert whole.counts["clock"] > 0
    code = WORKER.format(tests=str(Path(__file__).parents[1]))
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    rng, file = np.random.default_rng(0), tmp_path / "cut" / METRICS
    for _ in range(2):  # let it make a checkpoint, then kill it at any moment after
        stamp = file.stat().st_mtime_ns if file.exists() else 0
        worker = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "cut")], env=environment
        )
        while worker.poll() is None and (file.stat().st_mtime_ns if file.exists() else 0) == stamp:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.1))
        worker.kill()
        assert worker.wait() == -signal.SIGKILL
    again = feed(tmp_path / "cut")
    assert same(whole, again)
    assert everything(tmp_path / "whole") == everything(tmp_path / "cut")
    assert again.events_learned == whole.events_learned


def test_a_line_says_where_a_stream_is():
    learner = StreamLearner(network(), **SMALL)
    assert in_words(learner) == "stream: chunk 0, 0 events wait"
    for chunk in source(0, 3):
        learner.learn(chunk)
    last = learner.rows[-1]
    means = f"log loss {last['window_log_loss']:.4f}, AUC {last['window_auc']:.4f}"
    assert in_words(learner) == f"stream: chunk 3, 0 events wait, {means}"
    learner.rows[-1]["drift"] = True
    assert in_words(learner).endswith(", the prior moved")


def test_the_online_experiment_runs_resumes_and_reports(tmp_path):
    plan = online_preset("smoke", methods=("upm", "matching"), sizes=(128,))
    store = OnlineStore(tmp_path / "store")
    made = run_online(plan, store)
    cells = list(plan.cells())
    assert len(cells) == 2 + 1
    assert made == sum(2 + 2 for _ in cells)
    assert run_online(plan, store) == 0
    rates = [
        np.mean(store.read(plan.run(cells[0], rate, 0, 2))["label_log_loss"]) for rate in plan.rates
    ]
    assert best_rate(plan, cells[0], store) == plan.rates[int(np.argmin(rates))]
    merged = tmp_path / "store" / "runs.parquet"
    assert list((tmp_path / "store").glob("*.parquet")) == [merged]
    pq.write_table(pq.read_table(merged).slice(1), merged)
    assert run_online(plan, store) == 1
    written = write_online_report(plan, store, tmp_path / "report")
    page = (tmp_path / "report" / "online.md").read_text()
    assert "GeneralUPM ahead of PM in" in page
    assert "Regret" in page
    assert "not yet run" not in page
    assert all(path.stat().st_size > 0 for path in written)


def test_online_runs_of_another_file_are_refused_and_the_plan_stays(tmp_path, monkeypatch):
    plan = online_preset("smoke", methods=("upm",), sizes=(128,), rates=(1e-3,), repetitions=1)
    store = OnlineStore(tmp_path)
    assert run_online(plan, store) == 4
    monkeypatch.setattr(
        online, "_chunk", lambda source, rows, position: Chunk(np.ones((4, 2)), y=np.ones(4))
    )
    with pytest.raises(ValueError, match="must come from the same data"):
        run_online(replace(plan, repetitions=2), store)
    assert store.plan() == plan


def test_an_online_experiment_that_is_refused_leaves_nothing_behind(tmp_path):
    told = CliRunner().invoke(
        app, ["online", "--preset", "huge", "--store", str(tmp_path / "store")]
    )
    assert told.exit_code == 1
    assert not (tmp_path / "store").exists()


def test_presets_are_the_papers_grid_and_smaller_ones():
    paper = online_preset("paper")
    assert (paper.source, paper.rows, paper.repetitions, len(paper.rates), paper.tuning) == (
        "criteo",
        2**16,
        5,
        16,
        0,
    )
    laptop = online_preset("laptop")
    assert set(laptop.rates) < set(paper.rates)
    assert (laptop.chunks, laptop.tuning, laptop.sizes) == (30, 8, (64, 512, 2048))
    first = next(cell for cell in paper.cells() if cell.size == 64)
    many = len(list(_runs(paper, first, OnlineStore(PLACE / "empty"))))
    assert many == 16 * 5
