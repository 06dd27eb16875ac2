"""Files that are whole or absent: never half a file, and never over an old one by accident."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unbag._rules import broken


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a place that cannot be written, or that is taken, before the work begins."""
    if not path.absolute().parent.is_dir():
        raise broken(
            "An output must go to a folder that exists", f"{path.parent} does not", "Make it first."
        )
    if path.exists() and not (force and path.is_file()):
        remedy = "Choose another name."
        if path.is_file():
            remedy = "Use --force to overwrite it."
        raise ValueError(f"An output must not exist yet: {path} does. {remedy}")
    try:
        tempfile.NamedTemporaryFile(dir=path.absolute().parent, prefix=f".{path.name}.").close()
    except OSError as error:
        raise broken(
            "An output must go where a file can be written",
            f"{path} cannot be ({error.strerror})",
            "Choose another place.",
        ) from error


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary name beside the path, which takes its place in the end or is removed."""
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_mask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _mask() -> int:
    """The user's umask, which can only be read by setting it: a temporary file is private, an
    output need not be."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
