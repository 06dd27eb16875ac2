"""Files that are whole or absent: never half a file, and never over an old one by accident."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unbag._rules import Refused, broken

try:
    import fcntl
except ImportError:  # not on Windows, where leftovers of killed processes stay
    fcntl = None

NO_LOCKS = fcntl is None

SCRATCH = "unbag-scratch-"  # a name that nobody else gives a folder


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a place that cannot be written, or that is taken, before the work begins."""
    if not path.absolute().parent.is_dir():
        raise broken(
            "An output must go to a folder that exists", f"{path.parent} does not", "Make it first."
        )
    try:
        _check_name(path, force=force)
        with whole(path):
            raise _Tried
    except _Tried:
        pass
    except OSError as error:
        raise broken(
            "An output must go where a file can be written",
            f"{path} cannot be ({error.strerror})",
            "Choose another place.",
        ) from error


def _check_name(path: Path, *, force: bool) -> None:
    if path.is_symlink():
        raise broken(
            "An output must not be a symbolic link, because writing would change another place",
            f"{path} points to {os.readlink(path)}",
            "Name that place itself.",
        )
    if path.exists() and not (force and path.is_file()):
        raise _taken(path)


class _Tried(Exception):
    """Ends a trial of `whole`, which then leaves nothing."""


def _taken(path: Path) -> Refused:
    remedy = "Choose another name."
    if path.is_file():
        remedy = "Use {force:True} to overwrite it."
    return broken("An output must not exist yet", f"{path} does", remedy)


@contextmanager
def whole(path: Path, *, force: bool = True) -> Iterator[Path]:
    """A temporary name beside the path, which takes its place in the end or is removed.

    A file that is replaced keeps its permissions. What a killed process left behind for the same
    path is removed.

    Parameters
    ----------
    path : Path
        What will be there, whole.
    force : bool
        Whether a file that is there in the end is replaced; else it is refused, also when another
        process made it meanwhile.
    """
    # as long a name as any file system takes, whatever the path's own length
    start = f".{path.name[:40]}."
    _remove_leftovers(path.absolute().parent, start, ".tmp")
    handle, temporary = _new_file(path.absolute().parent, start)
    try:
        yield temporary
        temporary.chmod(_mode(path))
        _sync(temporary)
        if force:
            temporary.replace(path)
        else:
            _create(temporary, path)
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)


def _new_file(folder: Path, start: str) -> tuple[int, Path]:
    """A new file that is locked, so that nobody takes it for a leftover; again where somebody did
    before it was locked, and holds the lock while it removes the file."""
    handle, name = tempfile.mkstemp(".tmp", start, folder)
    for _ in range(9):
        if (lock(handle) or NO_LOCKS) and os.path.exists(name):
            break
        os.close(handle)
        Path(name).unlink(missing_ok=True)
        handle, name = tempfile.mkstemp(".tmp", start, folder)
    return handle, Path(name)


def _create(temporary: Path, path: Path) -> None:
    """Give a file its name unless that is taken; a link is made or refused in one step."""
    try:
        os.link(temporary, path)
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError:  # a file system without hard links
        if path.exists():
            raise _taken(path) from None
        temporary.replace(path)


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, or those that the user's umask gives a new
    one: a temporary file is private, an output need not be. The umask can only be read by setting
    it."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(path: Path) -> None:
    """So that after a power cut the name does not stand for an empty file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def lock(handle: int, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file, unless a process that lives has locked it: the system lets go of locks
    when a process ends in whichever way.

    Parameters
    ----------
    handle : int
        Of the open file.
    shared : bool
        Whether others may hold the lock at the same time, shared as well.
    wait : bool
        Whether to wait for others.
    """
    if fcntl is None:
        return False
    try:
        mode = {True: fcntl.LOCK_SH, False: fcntl.LOCK_EX}[shared]
        fcntl.flock(handle, mode | fcntl.LOCK_NB * (not wait))
    except OSError:
        return False
    return True


def _remove_leftovers(folder: Path, start: str, end: str) -> None:
    """Remove files and folders of such names that processes left which were killed."""
    with suppress(OSError), os.scandir(folder) as entries:
        names = [e.path for e in entries if e.name.startswith(start) and e.name.endswith(end)]
        for name in names:
            with suppress(OSError):  # it is gone, or another user's
                _remove_if_left(Path(name))


def _remove_if_left(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not lock(handle):
            return
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(handle)


@contextmanager
def scratch() -> Iterator[str]:
    """A folder for what does not fit into memory; it is removed in the end, or, where the process
    was killed, when the next one needs a folder."""
    _remove_leftovers(Path(tempfile.gettempdir()), SCRATCH, "")
    for last in (*[False] * 8, True):  # somebody may take it for a leftover before it is locked
        with tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as folder:
            handle = os.open(folder, os.O_RDONLY)
            try:
                if last or NO_LOCKS or (lock(handle) and os.path.exists(folder)):
                    yield folder
                    return
            finally:
                os.close(handle)
