"""Bad events, bad reports and sources that break off: what is good is learned and lasts, the rest
is counted."""

import json
import os

import numpy as np
import pytest

from cases.stream import (
    SMALL,
    bags_in_order,
    chunk_of,
    everything,
    network,
    on_disk,
    put,
    quiet_buffer,
    same,
    source,
    stopped,
)
from unbag.stream import StreamLearner, _settings, read_metrics, run_stream
from unbag.stream._checkpoint import METRICS, QUARANTINE, StreamStore, _digest

# --- sources that break off ---


def broken(position, learner):
    for chunk in source(position, 3):
        learner.quarantine.add("number", "of the chunk", where=chunk.position)
        yield chunk
    raise EOFError("the file breaks off")


def test_what_was_learned_lasts_when_the_source_breaks_off(tmp_path):
    for _ in range(2):  # the second call stops at the same place, and changes nothing
        learner = StreamLearner(network(), folder=tmp_path / "a", every=100, **SMALL)
        with pytest.raises(EOFError):
            run_stream(lambda position, learner=learner: broken(position, learner), learner)
        learner.close()
    again = StreamLearner(network(), folder=tmp_path / "a", every=100, **SMALL)
    assert (again.chunks, again.position, again.counts) == (3, 3, {"number": 3})
    whole = run_stream(
        lambda p: source(p, 3), StreamLearner(network(), folder=tmp_path / "b", every=100, **SMALL)
    )
    assert same(whole, again)
    assert everything(tmp_path / "a")[0] == everything(tmp_path / "b")[0]
    assert everything(tmp_path / "a")[1].count("\n") == 3


def test_what_was_learned_lasts_when_a_chunk_is_refused(tmp_path):
    wide = chunk_of(1)._replace(X=np.ones((256, 4)))
    for number in (0, 1):  # the shape of the features is remembered when the stream is resumed
        learner = StreamLearner(network(), folder=tmp_path, every=100, **SMALL)
        assert learner.chunks == number
        with pytest.raises(ValueError, match=r"must keep their shape: \(4,\) given after \(3,\)"):
            run_stream(lambda position: iter([chunk_of(0), wide][position:]), learner)
        learner.close()
    assert everything(tmp_path)[0].count("\n") == 1


def test_a_chunk_without_events_only_moves_the_position(tmp_path):
    learner = StreamLearner(network(), folder=tmp_path, **SMALL)
    empty = chunk_of(0, rows=0)._replace(position=7)
    run_stream(lambda position: iter([empty]), learner)
    learner.close()
    again = StreamLearner(network(), folder=tmp_path, **SMALL)
    assert (again.position, again.chunks, again.counts) == (7, 0, {})


# --- events that are not finite ---


def test_a_bad_event_of_a_labelled_chunk_is_set_aside_alone():
    chunk = chunk_of(0, rows=258)
    chunk.X[17, 1], chunk.y[200] = np.nan, np.nan
    kept = np.delete(np.arange(258), [17, 200])
    spoiled, clean = StreamLearner(network(), **SMALL), StreamLearner(network(), **SMALL)
    row = spoiled.learn(chunk)
    whole = clean.learn(
        chunk._replace(X=chunk.X[kept], y=chunk.y[kept], time=None, truth=chunk.truth[kept])
    )
    assert json.dumps(row) == json.dumps(whole)
    assert same(spoiled, clean)
    assert spoiled.counts == {"feature": 1, "label": 1}
    assert spoiled.events_learned == 256


@pytest.mark.parametrize("bad", [np.nan, 3e38])  # the second is finite, and its score is not
def test_a_bag_with_a_bad_event_is_set_aside_whole_and_nothing_else(bad):
    X, names, report = bags_in_order(count=34)
    X[5] = bad
    spoiled, clean = StreamLearner(network(), **SMALL), StreamLearner(network(), **SMALL)
    assert np.flatnonzero(~np.isfinite(spoiled.events(X, names))).tolist() == [5]
    clean.events(X[16:], names[16:])
    assert spoiled.report(np.arange(34), report) == 33
    clean.report(np.arange(1, 34), report[1:])
    assert same(spoiled, clean)
    assert spoiled.events_learned == clean.events_learned > 0
    assert spoiled.waiting == clean.waiting
    assert spoiled.counts == {"broken bag": 1, "feature": 1, "late": 1}


def test_a_bad_event_breaks_the_bag_that_waits_but_not_one_that_is_complete():
    buffer, aside = quiet_buffer()
    put(buffer, ["a", "a", "b", "b"])
    buffer.add_report("a", 0.5)
    one, bad = np.full((2, 2), np.nan), np.array([False, False])
    assert buffer.add_events(["a", "b"], one, one[:, 0], sound=bad) == 0
    assert (buffer.waiting, list(buffer.bags), buffer.ended["b"]) == (2, ["a"], "set aside")
    assert dict(aside.counts) == {"late event": 1, "feature": 1, "broken bag": 1}
    assert "2 good ones are not learned from" in aside.take_lines()[-1]
    assert buffer.take(1)[0].size.tolist() == [2]
    assert buffer.ended["a"] == "learned"


# --- reports ---


def test_a_count_in_place_of_a_proportion_is_set_aside_also_when_it_has_noise(tmp_path):
    learner = StreamLearner(network(), method="upm", folder=tmp_path, **SMALL)
    X, names, _ = bags_in_order(count=4)
    learner.events(X, names)
    # bags of 16, noise of variance 4 on the count: 10 standard deviations of the proportion are
    # 1.25
    assert learner.report([0, 1, 2, 3], [5.0, 2.24, 2.26, -1.26], noise=[4.0] * 4) == 1
    assert learner.counts == {"report": 3}
    learner.finish()
    aside = (tmp_path / QUARANTINE).read_text()
    assert "in [-1.25, 2.25]; if it is a count, divide the count by the size" in aside


def test_labels_are_reports_on_one_event():
    learner = StreamLearner(network(), method="labels", **SMALL)
    X = chunk_of(0, 18).X
    learner.events(X, ["a"] * 16 + ["b", "c"])
    assert learner.report(["a", "d"], [0.5, 0.5], size=[16, 16]) == 0
    assert learner.report(["a", "b", "c"], [0.5, 1.0, 0.0]) == 2
    assert learner.counts == {"report": 2, "size": 1}
    assert learner._buffer.ready_events == 2


# --- what is kept, and for how long ---


def test_without_a_folder_nothing_piles_up():
    X, names, report = bags_in_order()
    learner = StreamLearner(network(), method="upm", **SMALL)
    learner.learn(chunk_of(0, rows=260))
    learner.events(X, names)
    learner.report(np.arange(32), report)
    learner.report([0], [0.5])
    assert learner.counts == {"late": 1, "leftover": 4}
    assert learner.waiting == 0
    assert on_disk(learner._store) == 0
    assert (learner._logs[METRICS], learner.quarantine.take_lines()) == ([], [])


def test_stragglers_do_not_keep_what_arrived_with_them():
    buffer, _ = quiet_buffer(waiting=1000)
    score = np.arange(200.0)
    for start in range(
        0, 200, 20
    ):  # in each call 18 events of a bag that is soon reported, and two stragglers
        own = [f"bag {start}"] * 18
        mine = score[start : start + 20]
        buffer.add_events([*own[:9], "x", *own[9:], "y"], np.stack([mine] * 3, axis=1), mine)
        buffer.add_report(f"bag {start}", 0.5)
        buffer.take(1)
        assert on_disk(buffer.store) == buffer.waiting
    buffer.restore(json.loads(json.dumps(buffer.state())))  # as after a crash
    assert buffer.waiting == on_disk(buffer.store) == 20
    buffer.add_report("x", 0.5)
    bags, score = buffer.take(1)
    assert score.tolist() == bags.X[:, 2].tolist() == list(range(9, 200, 20))
    assert on_disk(buffer.store) == buffer.waiting


def full(store):
    """As if the disk had no room for another page."""
    pages = store.db.execute("PRAGMA page_count").fetchone()[0]
    store.db.execute(f"PRAGMA max_page_count = {pages}")


def test_events_that_a_full_disk_refuses_leave_no_trace(tmp_path):
    learner = StreamLearner(network(), method="upm", folder=tmp_path, **SMALL)
    X, names, report = bags_in_order()
    learner.events(X[:16], names[:16])
    full(learner._store)
    with pytest.raises(OSError, match=r"stream\.db: database or disk is full"):
        learner.events(np.tile(X, (20, 1)), np.tile(names, 20))
    assert (learner.waiting, on_disk(learner._store)) == (16, 16)
    learner._store.db.execute("PRAGMA max_page_count = 1000000")
    learner.events(X[16:], names[16:])
    learner.report(np.arange(32), report)
    assert (learner.events_learned, learner.counts) == (512, {})


def test_events_that_cannot_be_deleted_at_once_go_with_the_next_checkpoint(tmp_path, monkeypatch):
    store = StreamStore(tmp_path)
    store.add(np.ones((4, 2)), np.zeros(4), np.array([1, 1, 2, 1]))

    def refuse():
        raise OSError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_clear_errors", refuse)
        store.drop([1])
    assert on_disk(store) == 4
    store.save({}, [], {})
    assert on_disk(store) == 1
    store.close()


def test_events_stay_while_a_checkpoint_refers_to_them(tmp_path):
    store = StreamStore(tmp_path)
    store.add(np.ones((3, 2)), np.zeros(3), np.array([1, 1, 2]))
    store.save({}, [], {})
    store.add(np.ones((2, 2)), np.zeros(2), np.array([1, 3]))
    store.drop([1, 3])
    assert on_disk(store) == 3
    store.close()
    again = StreamStore(tmp_path)
    again.load()
    assert (on_disk(again), again.read([1])[2].tolist()) == (3, [1, 1])
    again.drop([1])
    again.save({}, [], {})
    assert (on_disk(again), again.ended) == (1, [])
    again.close()


def test_a_digest_knows_where_its_parts_end_and_their_types():
    parts = [(b"ab", b"c"), (b"a", b"bc"), (b"abc",), ("abc",), (1, 2), (12,), ("12",)]
    assert len({_digest(*some) for some in parts}) == len(parts)


def resume(folder):
    return StreamLearner(network(), method="upm", folder=folder, **SMALL)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda file: file.write_bytes(b"something else" * 999), "file is not a database"),
        (lambda file: os.truncate(file, os.path.getsize(file) // 2), "malformed|Page|page"),
        (
            lambda file: change(file, b'"settings"', b'"sittings"'),
            "its last checkpoint has changed",
        ),
    ],
)
def test_a_damaged_database_gets_a_clear_error(tmp_path, spoil, fault):
    spoil(stopped(tmp_path))
    rule = r"The database of a stream must be whole: .*stream\.db is damaged \(.*"
    for _ in range(2):  # nothing holds the folder after the first
        with pytest.raises(ValueError, match=rf"(?s){rule}({fault}).*Put a copy of the folder"):
            resume(tmp_path)


def change(file, old, new):
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new))


def test_events_that_changed_on_disk_are_not_learned(tmp_path):
    file = stopped(tmp_path)
    X, _, _ = bags_in_order()
    mine = np.arange(20 * 16, 32 * 16)
    change(file, X[mine[:16]].tobytes(), X[mine[::-1][:16]].tobytes())
    with pytest.raises(ValueError, match="the events of its bag number 20 have changed"):
        resume(tmp_path)


def test_tables_that_got_lost_are_no_new_stream(tmp_path):
    change(stopped(tmp_path), b"TABLE state", b"TABLE stote")
    with pytest.raises(ValueError, match=r"must be whole: .*stream\.db is damaged"):
        resume(tmp_path)


def test_a_stream_whose_last_checkpoint_fails_ends_with_an_error(tmp_path, monkeypatch):
    learner = StreamLearner(network(), folder=tmp_path, every=100, **SMALL)

    def full(*arguments):
        raise OSError("No space left on device")

    monkeypatch.setattr(StreamStore, "save", full)
    with (
        pytest.warns(UserWarning, match="could not be written"),
        pytest.raises(OSError, match=r"The last checkpoint in .* could not be written"),
    ):
        run_stream(lambda p: source(p, 2), learner)
    learner.close()


def test_early_reports_are_bounded_though_no_event_comes():
    buffer, aside = quiet_buffer()
    for name in range(150):
        buffer.add_report(name, 0.5)
    buffer.give_up()
    assert list(buffer.bags) == list(range(50, 150))
    assert dict(aside.counts) == {"unknown bag": 50}


def test_counters_are_what_counting_gives():
    buffer, _ = quiet_buffer(waiting=60)
    rng = np.random.default_rng(0)
    for _ in range(60):
        put(buffer, rng.integers(0, 40, 12).tolist())
        for name in rng.integers(0, 40, 4).tolist():
            buffer.add_report(
                name, rng.random(), size=None if rng.random() < 0.5 else int(rng.integers(1, 9))
            )
        if buffer.ready_events > 20:
            buffer.take(10)
        buffer.give_up()
        assert buffer.ready_events == sum(buffer.bags[name].events for name in buffer.ready)
        assert buffer.waiting == sum(bag.events for bag in buffer.bags.values()) <= 60
        assert list(buffer.early) == [name for name, bag in buffer.bags.items() if bag.events == 0]
        assert on_disk(buffer.store) == buffer.waiting


def test_the_log_is_json_and_is_read_back_with_its_nan(tmp_path):
    learner = StreamLearner(network(), method="labels", folder=tmp_path, **SMALL)
    row = learner.learn(chunk_of(0))
    assert np.isnan(row["log_loss"])
    learner.finish()
    line = (tmp_path / METRICS).read_text()
    assert json.loads(line, parse_constant=pytest.fail)["log_loss"] is None
    assert json.dumps(read_metrics(tmp_path)) == json.dumps([row])


def test_many_bags_that_wait_are_known_again(tmp_path):
    learner = StreamLearner(network(), folder=tmp_path, **SMALL)
    learner.report(np.arange(2000), np.full(2000, 0.5))
    learner.report(["a"], [0.5])
    learner.finish()
    learner.close()
    again = StreamLearner(network(), folder=tmp_path, **SMALL)
    assert again._buffer.state() == learner._buffer.state()
    assert list(again._buffer.bags) == [*range(2000), "a"]


@pytest.mark.parametrize(
    ("method", "taken"), [("likelihood", True), ("upm", True), ("matching", False)]
)
def test_a_noisy_report_below_zero_is_taken_by_the_methods_that_know_noise(method, taken):
    told = _settings.bad_report(-0.3, 8, 4.0, method=method, events=8)
    assert (told is None) == taken
    assert _settings.bad_report(-0.3, 8, 0.0, method=method, events=8) is not None
