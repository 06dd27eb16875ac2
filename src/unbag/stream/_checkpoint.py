"""The state of a stream in, one file out, whole or not at all; and back, with everything later
undone.

A checkpoint is written in this order: the logs (metrics, quarantine) are appended and synced, the
files of waiting events are synced, the state is written beside the old one, synced, renamed over
it, and the folder is synced. Only then are files removed that nothing refers to any more. Whoever
is killed in between finds the old state, and resuming cuts the logs and the files back to it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from unbag._model_file import load_arrays, save_arrays
from unbag._rules import broken

try:
    import fcntl
except ImportError:  # Windows: no lock
    fcntl = None

CHECKPOINT, METRICS, QUARANTINE = "checkpoint.safetensors", "metrics.jsonl", "quarantine.jsonl"
STATE = "state"  # beside the arrays and not in the file's header, which may not grow large
LOCK = "stream.lock"  # also the sign that a folder is a stream's


class Folder:
    """The folder of a stream; one process at a time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.exists() and not (self.path / LOCK).exists() and any(self.path.iterdir()):
            raise broken(
                "A stream must have a folder of its own",
                f"{self.path} holds something else",
                "Name another one.",
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT)
        self._let_go = weakref.finalize(self, os.close, self._lock)
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._let_go()
                raise broken(
                    "A stream must be run by one process at a time",
                    f"another one works in {self.path}",
                    "Wait for it, or use another folder.",
                ) from None
        self.lengths = {METRICS: 0, QUARANTINE: 0}

    def close(self) -> None:
        """Let others in."""
        self._let_go()

    def load(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The last checkpoint, or None; the logs are cut back to it."""
        for draft in self.path.glob(f".{CHECKPOINT}.*"):
            draft.unlink()
        found = (
            _unpack(*load_arrays(self.path / CHECKPOINT))
            if (self.path / CHECKPOINT).exists()
            else None
        )
        self.lengths = found[1]["lengths"] if found else self.lengths
        for name, length in self.lengths.items():
            self._cut(name, length)
        return found

    def _cut(self, name: str, length: int) -> None:
        path = self.path / name
        if path.exists():
            os.truncate(path, length)

    def append(self, name: str, lines: list[str]) -> None:
        """Append to a log and sync it; when that fails, the log is as before."""
        try:
            with (self.path / name).open("ab") as file:
                length = file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            self._cut(name, self.lengths[name])
            raise
        self.lengths[name] += length

    def save(self, arrays: dict[str, np.ndarray], state: dict[str, Any]) -> None:
        """Write a checkpoint."""
        text = json.dumps(state | {"lengths": dict(self.lengths)})
        try:
            save_arrays(
                self.path / CHECKPOINT, arrays | {STATE: np.frombuffer(text.encode(), np.uint8)}, {}
            )
        except SafetensorError as error:
            raise OSError(f"The checkpoint could not be written: {error}") from error
        self.sync()

    def sync(self) -> None:
        """Make renames last."""
        handle = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _unpack(
    arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and state of a checkpoint; older ones have the state in the header."""
    state = arrays.pop(STATE, None)
    return arrays, header if state is None else json.loads(state.tobytes())


def as_line(row: dict[str, Any]) -> str:
    """A row of a log; JSON knows no NaN, so that is null."""
    plain = {
        name: None if isinstance(a, float) and not np.isfinite(a) else a for name, a in row.items()
    }
    return json.dumps(plain, allow_nan=False) + "\n"


def from_line(line: str) -> dict[str, Any]:
    """A row that `as_line` wrote."""
    return {name: np.nan if a is None else a for name, a in json.loads(line).items()}


def temporary_folder(owner: Any) -> Path:
    """A folder that goes when its owner goes."""
    path = tempfile.mkdtemp(prefix="unbag-")
    weakref.finalize(owner, shutil.rmtree, path, ignore_errors=True)
    return Path(path)


def sync_file(path: Path) -> None:
    """Make what was written to a file last."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
