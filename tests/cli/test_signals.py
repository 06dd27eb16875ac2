"""Ctrl-C, SIGTERM and names that would steer a terminal: a sentence, the usual exit code, no trace."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cases.cli import SALES, run, world

SRC = str(Path(__file__).resolve().parents[2] / "src")
ENVIRONMENT = os.environ | {"PYTHONPATH": SRC}
INTERRUPTED = """
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from unbag.cli import app
app()
"""
# a shell lets what it starts in the background ignore Ctrl-C, and the tests may run there
ENDED = """
import atexit, sys, threading
from unbag.cli import run
class Object:
    def __del__(self): print("taken apart")
kept = Object()
atexit.register(print, "exit function")
threading.Timer(0.1, print, ["thread"]).start()
run()
"""
COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from unbag.cli import app
app()
"""


@pytest.mark.parametrize("module", ["typer", "unbag.cli._check", "pyarrow"])
def test_ctrl_c_while_libraries_are_imported_ends_with_130_and_no_traceback(module, tmp_path):
    events, reports, _ = world(tmp_path, count=40)
    words = [sys.executable, "-c", INTERRUPTED.format(module=module), "check", events, reports]
    ended = subprocess.run([*words, *SALES], env=ENVIRONMENT, capture_output=True, text=True)
    assert (ended.returncode, "Traceback" in ended.stderr) == (130, False)
    assert "stopped" in ended.stderr


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stream_that_waits_is_stopped_by_a_signal(sent, code, tmp_path):
    (tmp_path / "bad.parquet").write_text("no table")
    words = ["stream", tmp_path, *SALES, "--size", "n", "--follow", "--folder", tmp_path / "run"]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "bad.parquet is set aside" in process.stderr.readline()
    process.send_signal(sent)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == code, said
    assert "stopped" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("word", "code"), [("--version", 0), ("no-such-verb", 2)])
def test_a_process_ends_when_its_threads_and_exit_functions_have(word, code):
    words = [sys.executable, "-c", ENDED, word]
    ended = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True)
    assert ended.returncode == code
    assert ended.stdout.endswith("thread\nexit function\n")  # and no object is taken apart
    assert ("no-such-verb" in ended.stderr) == (code == 2)


def test_an_output_that_nobody_reads_ends_as_any_python_process_does():
    own = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONUNBUFFERED"}
    reads, writes = os.pipe()
    os.close(reads)
    words = [sys.executable, "-m", "unbag", "--version"]
    ended = subprocess.run(words, env=own, stdout=writes, stderr=subprocess.PIPE, text=True)
    os.close(writes)
    assert ended.returncode == 120  # of Python where output cannot be flushed
    assert "Traceback" not in ended.stderr


def test_ids_do_not_steer_the_terminal(tmp_path):
    events, reports, _ = world(tmp_path, count=40)
    for path, rows in ((events, range(40)), (reports, [0, 0, 1, 2, 3])):
        frame = pd.read_parquet(path).iloc[rows]
        frame.assign(bag=[f"\x1b[2J\u202e{b}" for b in frame.bag]).to_parquet(path)
    for verb, code, *more in (("check", 3), ("check", 3, "--json"), ("train", 1, "--out", "m")):
        ended = run(verb, events, reports, *SALES, *more, code=code)
        assert "u001b[2J" in ended.output
        assert not {"\x1b", "\u202e"} & set(ended.output)
