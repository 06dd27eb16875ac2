"""Outputs: whole or absent, made once, and nothing left behind by a process that was killed."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from unbag import Refused
from unbag._io import scratch, whole

KILLED = """
import os, signal, sys
from pathlib import Path
from unbag._io import scratch, whole
with whole(Path(sys.argv[1])) as draft, scratch() as folder:
    draft.write_text("half")
    Path(folder, "spilled").write_text("much")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_while_writing(path):
    words = [sys.executable, "-c", KILLED, str(path)]
    environment = os.environ | {"TMPDIR": str(path.parent)}
    assert subprocess.run(words, env=environment).returncode == -signal.SIGKILL


def test_of_two_that_write_one_output_the_second_is_refused(tmp_path):
    path = tmp_path / "model"

    def write_both():
        with whole(path, force=False) as second:
            second.write_text("second")
            with whole(path, force=False) as first:
                first.write_text("first")

    with pytest.raises(Refused, match="An output must not exist yet"):
        write_both()
    assert path.read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_many_threads_make_one_output(tmp_path):
    made = []

    def write(number):
        try:
            with whole(tmp_path / "model", force=False) as draft:
                draft.write_text(str(number))
            made.append(number)
        except Refused:
            return

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(tmp_path / "model").read_text()] == [str(number) for number in made]


def test_a_draft_that_another_process_is_about_to_remove_is_made_anew(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    make, theirs = tempfile.mkstemp, []

    def taken_for_a_leftover(*where):
        """Between its making and its lock, another process has locked the first file."""
        made = make(*where)
        if not theirs:
            theirs.extend([os.open(made[1], os.O_RDONLY), made[1]])
            fcntl.flock(theirs[0], fcntl.LOCK_EX)
        return made

    monkeypatch.setattr(tempfile, "mkstemp", taken_for_a_leftover)
    with whole(tmp_path / "model") as draft:
        assert str(draft) != theirs[1]
        Path(theirs[1]).unlink(missing_ok=True)
        os.close(theirs[0])
        draft.write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_another_process_is_about_to_remove_is_made_anew(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    make, theirs = tempfile.mkdtemp, []

    def taken_for_a_leftover(*where):
        folder = make(*where)
        if not theirs:
            theirs.extend([os.open(folder, os.O_RDONLY), folder])
            fcntl.flock(theirs[0], fcntl.LOCK_EX)
        return folder

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(tempfile, "mkdtemp", taken_for_a_leftover)
    with scratch() as folder:
        assert folder != theirs[1]
        os.close(theirs[0])
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, monkeypatch):
    path = tmp_path / "scores.csv"
    killed_while_writing(path)
    assert len(list(tmp_path.iterdir())) == 2  # a draft, and a folder for what was spilled
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with whole(path) as draft, scratch():
        draft.write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["scores.csv"]


def test_a_draft_that_is_being_written_is_no_leftover(tmp_path):
    path = tmp_path / "scores.csv"
    with whole(path) as slow:
        slow.write_text("slow")
        with whole(path) as quick:
            quick.write_text("quick")
    assert path.read_text() == "slow"


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("old")
    path.chmod(0o640)
    with whole(path) as draft:
        draft.write_text("new")
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with whole(tmp_path / "a") as draft:
            draft.write_text("")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_names_as_long_as_a_file_system_takes_are_written(tmp_path):
    for name in ("x" * 255, "é" * 127):
        with whole(tmp_path / name, force=False) as draft:
            draft.write_text("")
        assert Path(tmp_path / name).exists()
