"""Files that fall into a folder: in any order, late, restated, half-written, bad, and a kill."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from cases.cli import run
from unbag.cli import _stream
from unbag.stream import FolderInput, StreamSettings, learner_of
from unbag.tables import Columns

COLUMNS = Columns("bag", total="sales", size="events", id="event")
WORDS = ["--on", "bag", "--total", "sales", "--size", "events", "--id", "event"]
QUICK = ["--rows", 160, "--batch", 80, "--every", 1]
SETTINGS = StreamSettings(method="likelihood", rate=0.01, chunk=160, batch=80)


def tables(count=960, size=8, seed=0):
    """Events and reports of clicks with a known truth."""
    rng = np.random.default_rng(seed)
    x, shop = rng.normal(size=count), rng.choice(["north", "south"], count)
    bag = [f"b{i // size:03d}" for i in range(count)]
    frame = pd.DataFrame({"event": np.arange(count), "bag": bag, "x": x, "shop": shop})
    frame["sales"] = rng.random(count) < 1 / (1 + np.exp(1 - 2 * x - (frame["shop"] == "north")))
    reports = frame.groupby("bag", as_index=False).agg(sales=("sales", "sum"), events=("x", "size"))
    return frame.drop(columns="sales"), reports


def fall(folder, parts, *, start=1_000):
    """Write files, each a second younger than the one before."""
    folder.mkdir(exist_ok=True)
    for number, (name, frame) in enumerate(parts.items(), start):
        path = folder / name
        frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)
        os.utime(path, (number, number))


def halves():
    events, reports = tables()
    return {
        "a-events.csv": events[::2], "b-events.parquet": events[1::2],
        "c-reports.csv": reports[::2], "d-reports.parquet": reports[1::2],
    }  # fmt: skip


def taught(inbox, state):
    """A stream of all files that are there."""
    state.mkdir(exist_ok=True)
    files = FolderInput(inbox, state, COLUMNS)
    setup = files.setup()
    learner = learner_of(setup, SETTINGS, state, every=1)
    for arrival in files.arrivals(learner.position):
        files.feed(arrival, learner, setup.plan)
    learner.finish()
    learner.close()
    return learner, files


def leaves(learner):
    return np.concatenate([np.ravel(leaf) for leaf in learner._trainer.save()[0]])


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0)])
def test_every_bag_is_learned_in_whichever_order_the_files_fall(tmp_path, order):
    parts = list(halves().items())
    fall(tmp_path / "in", dict(parts[i] for i in order))
    learner, files = taught(tmp_path / "in", tmp_path / "state")
    assert learner.events_learned == 960
    assert learner.waiting == 0
    assert learner.counts == {}
    assert [arrival.name for arrival in files.taken] == [parts[i][0] for i in order]


def test_late_and_restated_reports_are_used_or_set_aside_with_a_reason(tmp_path):
    events, reports = tables()
    first, last = reports[:60], reports[60:]
    wrong = last.assign(sales=0)
    fall(tmp_path / "in", {"0.csv": events[:480], "1.csv": first, "2.csv": wrong, "3.csv": last})
    learner, _ = taught(tmp_path / "in", tmp_path / "state")
    assert learner.events_learned == 480
    assert learner.counts["replaced"] == (last.sales > 0).sum()  # before its events were there
    fall(tmp_path / "in", {"4.csv": events[480:], "5.csv": first.assign(sales=0)}, start=2_000)
    learner, _ = taught(tmp_path / "in", tmp_path / "state")
    assert learner.events_learned == 960
    assert learner.counts["late"] == 60  # their bags were learned before


def test_files_that_are_bad_or_half_written_wait_and_nothing_is_lost(tmp_path):
    parts = halves()
    inbox = tmp_path / "in"
    fall(inbox, parts)
    whole = {name: (inbox / name).read_bytes() for name in parts}
    (inbox / "a-events.csv").write_bytes(whole["a-events.csv"][:-7])
    (inbox / "b-events.parquet").write_bytes(whole["b-events.parquet"][:-100])
    (inbox / "c-reports.csv").write_bytes(whole["c-reports.csv"].replace(b"events", b"evnts"))
    (inbox / "notes.csv").write_text("to,do\n1,2\n")
    _, files = taught_or_nothing(inbox, tmp_path / "state")
    assert set(files.aside) == {"a-events.csv", "b-events.parquet", "c-reports.csv", "notes.csv"}
    assert "half-written" in files.aside["a-events.csv"]
    assert "'events' is not in the reports" in files.aside["c-reports.csv"]
    assert "'bag' is not in the events" in files.aside["notes.csv"]
    for name, content in whole.items():
        (inbox / name).write_bytes(content)
    learner, files = taught(inbox, tmp_path / "state")
    assert learner.events_learned == 960
    assert set(files.aside) == {"notes.csv"}


def taught_or_nothing(inbox, state):
    state.mkdir(exist_ok=True)
    files = FolderInput(inbox, state, COLUMNS)
    return files.setup(), files


def test_a_bad_first_file_of_reports_does_not_stop_the_stream(tmp_path):
    events, reports = tables()
    bad = reports[:1].assign(sales="abc")
    fall(tmp_path / "in", {"0.csv": bad, "1.csv": events, "2.csv": reports})
    learner, files = taught(tmp_path / "in", tmp_path / "state")
    assert "A column of numbers must hold numbers" in files.aside["0.csv"]
    assert learner.counts["file"] == 1
    assert learner.events_learned == 960


def test_a_fault_in_the_middle_of_a_file_leaves_nothing_of_it(tmp_path):
    events, reports = tables()
    fall(tmp_path / "in", {"0.csv": events[:480], "1.csv": reports})
    bad = events[480:].assign(bag=[*events.bag[480:-1], None])
    fall(tmp_path / "in", {"2.csv": bad}, start=2_000)
    learner, files = taught(tmp_path / "in", tmp_path / "state")
    assert "A bag id must not be missing" in files.aside["2.csv"]
    assert learner.counts["file"] == 1
    assert learner.waiting == 0
    assert learner.events_learned == 480
    fall(tmp_path / "in", {"3.csv": events[480:]}, start=3_000)
    assert taught(tmp_path / "in", tmp_path / "state")[0].events_learned == 960


def test_what_a_crash_cut_off_is_read_again_bit_for_bit(tmp_path):
    inbox = tmp_path / "in"
    fall(inbox, halves())
    whole, _ = taught(inbox, tmp_path / "whole")
    state = tmp_path / "cut"
    state.mkdir()
    files = FolderInput(inbox, state, COLUMNS)
    setup = files.setup()
    learner = learner_of(setup, SETTINGS, state, every=1000)
    for arrival in files.arrivals(0):
        files.feed(arrival, learner, setup.plan)
        if arrival.number == 3:
            break
    learner.close()  # without a checkpoint: all three files count for nothing
    with open(state / "files.jsonl", "a") as file:
        file.write('{"number": 4, "na')  # and a line of the ledger is cut short
    again, files = taught(inbox, state)
    assert [arrival.number for arrival in files.taken] == [1, 2, 3, 4]
    np.testing.assert_array_equal(leaves(again), leaves(whole))
    assert again.events_learned == whole.events_learned


def test_a_file_that_changed_after_a_crash_is_told(tmp_path):
    inbox, state = tmp_path / "in", tmp_path / "state"
    fall(inbox, halves())
    state.mkdir()
    files = FolderInput(inbox, state, COLUMNS)
    files.setup()
    next(files.arrivals(0))  # taken, and never learned
    (inbox / "a-events.csv").write_text("bag,x\n")
    _, files = taught(inbox, state)
    assert "has changed since" in files.aside["a-events.csv"]


def test_the_command_learns_predicts_and_goes_on_with_new_files(tmp_path):
    events, reports = tables(count=1600)
    inbox, state = tmp_path / "in", tmp_path / "run"
    fall(inbox, {"e.csv": events[:800], "r.csv": reports[:100]})
    words = ["stream", inbox, *WORDS, *QUICK, "--rate", 0.05, "--folder", state]
    assert run(*words).stdout.strip() == str(state / "report.html")
    fall(inbox, {"e2.csv": events[800:], "r2.csv": reports[100:]}, start=2_000)
    assert "resumed after chunk 5, 2 files" in run(*words).stderr
    assert "'chunk', 'first' or a number" in run(*words, "--prior", "often", code=1).stderr
    assert "resumed as it was begun" in run(*words, "--seed", 1, code=1).stderr
    out = tmp_path / "s.csv"
    run("predict", state, inbox / "e2.csv", "--id", "event", "--out", out)
    p = pd.read_csv(out).probability
    assert np.corrcoef(np.log(p / (1 - p)), events.x[800:])[0, 1] > 0.8
    said = run(
        "stream", inbox, "--on", "bag", "--total", "sales", "--folder", tmp_path / "o", code=1
    )
    assert said.stderr.rstrip().endswith(f"--folder {tmp_path / 'o'} --size COLUMN")


def test_following_waits_for_files_that_are_still_written(tmp_path, monkeypatch):
    inbox, looks = tmp_path / "in", []
    parts = halves()
    inbox.mkdir()

    def one_more(_):
        """Whatever happens while the command waits: a file falls, at last nothing more."""
        looks.append(1)
        if len(looks) > len(parts) + 3:
            raise KeyboardInterrupt
        if len(looks) <= len(parts):
            name = list(parts)[len(looks) - 1]
            fall(inbox, {name: parts[name]}, start=1_000 + len(looks))

    monkeypatch.setattr(_stream, "sleep", one_more)
    words = ["stream", inbox, *WORDS, *QUICK, "--folder", tmp_path / "run", "--follow"]
    stopped = run(*words, code=130)
    assert "the same words go on from the last checkpoint" in stopped.stderr
    log = (tmp_path / "run" / "metrics.jsonl").read_text()
    rows = [json.loads(line) for line in log.splitlines()]
    assert sum(row["events"] for row in rows) == 960


@pytest.mark.slow
def test_a_kill_at_any_moment_is_resumed_bit_for_bit(tmp_path):
    inbox = tmp_path / "in"
    fall(inbox, halves())
    words = ["stream", inbox, *WORDS, *QUICK, "--folder"]
    run(*words, tmp_path / "whole")
    command = [sys.executable, "-c", "from unbag.cli import app; app()", *map(str, words)]
    killed = subprocess.Popen([*command, str(tmp_path / "cut")], stderr=subprocess.DEVNULL)
    while killed.poll() is None and not (tmp_path / "cut" / "files.jsonl").exists():
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    run(*words, tmp_path / "cut")
    metrics = [(tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "cut")]
    assert metrics[0] == metrics[1]
