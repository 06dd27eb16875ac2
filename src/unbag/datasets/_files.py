"""The name of a published file in, its checked path out: found in the data folder, or downloaded
into it.

The data folder is `$UNBAG_DATA`, or `unbag` in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from gzip import BadGzipFile
from http.client import HTTPException
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from unbag._rules import broken

BLOCK = 1 << 20
SECONDS = 30  # of silence before a connection counts as broken


class Source(NamedTuple):
    """A published file: where it lies in the data folder, its digest, and where it comes from.

    `sha256` is "" where no official digest is known. When `url` is an archive (.tar.gz or .zip),
    `archive_sha256` is its digest and `member` the name of the file inside; "" means that the file
    is published as it is. `by_us` : whether we can download it; some addresses want an account.
    """

    folder: str
    name: str
    url: str
    sha256: str = ""
    member: str = ""
    archive_sha256: str = ""
    by_us: bool = True


class Found(NamedTuple):
    """The path of a file, and whether it is known to be the official one."""

    path: Path
    official: bool


def data_folder(folder: str | Path | None = None) -> Path:
    """Where data files lie: `folder`, else `$UNBAG_DATA`, else `$XDG_CACHE_HOME/unbag`, else
    `~/.cache/unbag`.

    >>> data_folder("/data").as_posix()
    '/data'
    """
    if folder is not None:
        return Path(folder)
    if os.environ.get("UNBAG_DATA"):
        return Path(os.environ["UNBAG_DATA"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unbag"


def find(
    source: Source,
    *,
    folder: str | Path | None = None,
    download: bool = False,
    unofficial: bool = False,
) -> Found:
    """The path of a published file, after its digest was checked.

    Parameters
    ----------
    source : which file.
    folder : the data folder; see `data_folder`.
    download : fetch the file when it is not there, with a progress bar on stderr.
    unofficial : take a file with another digest too.

    Returns
    -------
    Found, whose `official` is True when the digest is the official one.
    """
    path = data_folder(folder) / source.folder / source.name
    if not path.exists() and download:
        fetch([source], data_folder(folder))
    if not path.exists():
        raise FileNotFoundError(missing(source, path))
    if not source.sha256:
        return Found(path, False)
    found = digest(path)
    if found != source.sha256 and not unofficial:
        raise broken(
            f"The file {path} must have the official sha256 {source.sha256}",
            f"it has {found}",
            (
                "Delete it and load again with download=True, or take it as it is with "
                "unofficial=True."
            ),
        )
    return Found(path, found == source.sha256)


def missing(source: Source, path: Path) -> str:
    """What to say when a file is not there."""
    inside = f" (there {source.member})" if source.member else ""
    by_us = ", load with download=True (unbag reproduce: --download)" if source.by_us else ""
    return (
        f"The file {source.name} must lie at {path}: there is none. Get it from "
        f"{source.url}{inside}{by_us}, or set UNBAG_DATA to the folder that holds "
        f"{source.folder}/{source.name}."
    )


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(sources: Sequence[Source], folder: Path) -> None:
    """Download files of one address into the data folder `folder`.

    What comes has another name until its digest was checked, so no broken file ever stands under
    the right name. More than one file means that the address is an archive; it is downloaded once.
    """
    url, digests = (
        sources[0].url,
        {source.archive_sha256 if source.member else source.sha256 for source in sources},
    )
    place = folder / sources[0].folder / url.rsplit("/", 1)[-1]
    place.parent.mkdir(parents=True, exist_ok=True)
    with _unfinished(place) as part:
        _download(url, part)
        _same(url, part, digests.pop())
        for source in sources:
            if source.member:
                _extract(part, source, folder / source.folder / source.name)
            else:
                part.replace(folder / source.folder / source.name)


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """A name beside `path` of this process alone; whatever is left there in the end is removed."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def _download(url: str, part: Path) -> None:
    try:
        response = urlopen(url, timeout=SECONDS)
    except HTTPError as error:
        error.close()
        raise _no_way(url, f"{error.code} {error.reason}") from error
    except OSError as error:
        raise _no_way(url, getattr(error, "reason", error)) from error
    length = int(response.headers.get("Content-Length") or 0)
    with response, part.open("wb") as file, _bar() as bar:
        task = bar.add_task(url.rsplit("/", 1)[-1], total=length or None)
        for block in _blocks(url, response):
            file.write(block)
            bar.advance(task, len(block))
        if file.tell() < length:
            raise _no_way(url, f"it broke off after {file.tell():,} of {length:,} bytes")


def _blocks(url: str, response: Any) -> Iterator[bytes]:
    """Apart from the writing, so that a full disk is not taken for a broken connection."""
    while True:
        try:
            block = response.read(BLOCK)
        except (OSError, HTTPException) as error:
            raise _no_way(url, error) from error
        if not block:
            return
        yield block


def _no_way(url: str, reason: object) -> ConnectionError:
    return ConnectionError(
        f"The file at {url} must be reachable to be downloaded: {reason}. Try again where there "
        "is a network, or bring the file by hand."
    )


def _bar() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)


def _same(url: str, path: Path, expected: str) -> None:
    if expected and (found := digest(path)) != expected:
        raise broken(
            f"The download from {url} must have the official sha256 {expected}",
            f"it has {found}",
            "Nothing was kept; try again, or look at the address.",
        )


def _extract(archive: Path, source: Source, path: Path) -> None:
    with _unfinished(path) as part:
        try:
            with _member(archive, source) as inside, part.open("wb") as file:
                copyfileobj(inside, file)
        except (
            KeyError,
            EOFError,
            BadGzipFile,
            zlib.error,
            tarfile.TarError,
            zipfile.BadZipFile,
        ) as error:
            raise broken(
                f"The archive at {source.url} must hold {source.member}",
                f"{error}",
                "Nothing was kept; look at the address.",
            ) from error
        _same(source.url, part, source.sha256)
        part.replace(path)


@contextmanager
def _member(archive: Path, source: Source) -> Iterator[IO[bytes]]:
    """One file of an archive, opened for reading."""
    if source.url.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped, zipped.open(source.member) as file:
            yield file
        return
    with tarfile.open(archive, "r:gz") as tar:
        file = tar.extractfile(source.member)
        if file is None:
            raise KeyError(f"{source.member} is a folder")
        yield file
