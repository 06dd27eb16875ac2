"""Published files: where they lie in the data folder, their digests, and their download by pooch.

The data folder is `$UNBAG_DATA`, or `unbag` in the user's cache folder.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from gzip import BadGzipFile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pooch
import pyarrow as pa
from pyarrow import csv

from unbag._rules import broken

SECONDS = 30  # of silence before a connection counts as broken
UNPACK = {".gz": pooch.Untar, ".zip": pooch.Unzip}
DAMAGED = (EOFError, BadGzipFile, zlib.error, tarfile.TarError, zipfile.BadZipFile)


class Source(NamedTuple):
    """A published file.

    Parameters
    ----------
    folder, name : str
        Where it lies in the data folder.
    url : str
        Where it comes from.
    sha256 : str
        Its digest; "" where no official one is known.
    member : str
        Its name inside the archive at `url` (.tar.gz or .zip); "" where it is published as it is.
    archive_sha256 : str
        The digest of the archive.
    by_us : bool
        Whether we can download it; some addresses want an account.
    """

    folder: str
    name: str
    url: str
    sha256: str = ""
    member: str = ""
    archive_sha256: str = ""
    by_us: bool = True

    def path(self, folder: str | Path | None) -> Path:
        """Where it lies."""
        return data_folder(folder) / self.folder / self.name


class LocalFile(NamedTuple):
    """The path of a file, and whether it is known to be the official one."""

    path: Path
    official: bool


def data_folder(folder: str | Path | None = None) -> Path:
    """Where data files lie: `folder`, `$UNBAG_DATA`, `$XDG_CACHE_HOME/unbag` or `~/.cache/unbag`.

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
    others: str = "",
) -> LocalFile:
    """The path of a published file, after its digest was checked, or of another of its form.

    Parameters
    ----------
    source : Source
        Which file.
    folder : str or Path, optional
        The data folder; see `data_folder`.
    download : bool
        Fetch the file when it is not there, with a progress bar on stderr.
    unofficial : bool
        Take a file with another digest too.
    others : str
        A pattern; where the published file is not there and not to be fetched, the first file
        beside its place that fits is taken.

    Returns
    -------
    LocalFile
        Its `official` is True when the digest is the official one.
    """
    path = source.path(folder)
    if others and not download and not path.exists():
        for other in sorted(path.parent.glob(others)):
            return LocalFile(other, False)
    if not path.exists() and download:
        fetch([source], data_folder(folder))
    if not path.exists():
        where = source.url
        if source.member:
            where += f" (there {source.member})"
        if source.by_us:
            where += ", load with download=True (unbag reproduce: --download)"
        raise FileNotFoundError(
            f"The file {source.name} must lie at {path}: there is none. Get it from {where}, or "
            f"set UNBAG_DATA to the folder that holds {source.folder}/{source.name}."
        )
    if not source.sha256:
        return LocalFile(path, False)
    digest = pooch.file_hash(str(path))
    if digest != source.sha256 and not unofficial:
        raise broken(
            f"The file {path} must have the official sha256 {source.sha256}",
            f"it has {digest}",
            "Delete it and load again with download=True, or take it as it is with "
            "unofficial=True.",
        )
    return LocalFile(path, digest == source.sha256)


def read_columns(
    source: Any,
    types: Mapping[str, pa.DataType],
    *,
    names: Sequence[str] | None = None,
    quote: str = '"',
) -> dict[str, np.ndarray]:
    """Columns of a CSV file, which have no missing values.

    Parameters
    ----------
    source : path or file
        What to read.
    types : mapping from str to DataType
        The columns that are wanted.
    names : sequence of str, optional
        Of all columns, where the file has no header.
    quote : str
        What stands around a text.
    """
    table = csv.read_csv(
        source,
        csv.ReadOptions(column_names=names),
        csv.ParseOptions(quote_char=quote),
        csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[]),
    )
    return {name: table[name].to_numpy() for name in types}


def damaged(
    path: Path, rule: str, given: object, remedy: str = "Delete it and get it again."
) -> ValueError:
    """The error to raise for a file that must `rule` and does not: what it is, and what to do."""
    return broken(f"The file {path} must {rule}", f"{given}", remedy)


def fetch(sources: Sequence[Source], folder: Path) -> None:
    """Download files of one address into the data folder.

    They are downloaded and checked in a folder of their own, so no broken file ever stands under
    the right name.

    Parameters
    ----------
    sources : sequence of Source
        More than one means that the address is an archive; it is downloaded once.
    folder : Path
        The data folder.
    """
    url, digest = sources[0].url, sources[0].archive_sha256
    place = folder / sources[0].folder
    place.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=place, prefix=".download-") as scratch:
        download = Path(scratch) / "download"
        _download(url, download)
        if sources[0].member:
            _check_digest(url, download, digest)
            _unpack(sources, download)
        for source in sources:
            path = Path(scratch) / (source.member or "download")
            _check_digest(url, path, source.sha256)
            path.replace(place / source.name)


def _download(url: str, path: Path) -> None:
    import requests.exceptions  # pooch imports it late too, because it is slow to import

    try:
        pooch.HTTPDownloader(progressbar=True, timeout=SECONDS)(url, str(path), None)
    except requests.exceptions.RequestException as error:
        raise ConnectionError(
            f"The file at {url} must be reachable to be downloaded: {error}. Try again where "
            "there is a network, or bring the file by hand."
        ) from error


def _unpack(sources: Sequence[Source], archive: Path) -> None:
    """The members of an archive, beside it."""
    url, members = sources[0].url, [source.member for source in sources]
    reason = ""
    try:
        UNPACK[Path(url).suffix](members=members, extract_dir=".")(str(archive), "download", None)
    except DAMAGED as error:
        reason = " ".join(str(error).split())
    absent = [name for name in members if not (archive.parent / name).is_file()]
    if absent or reason:
        rule = f"The archive at {url} must hold {', '.join(absent or members)}"
        raise broken(rule, reason or "it does not", "Nothing was kept; look at the address.")


def _check_digest(url: str, path: Path, expected: str) -> None:
    digest = pooch.file_hash(str(path))
    if expected and digest != expected:
        rule = f"The download from {url} must have the official sha256 {expected}"
        remedy = "Nothing was kept; try again, or look at the address."
        raise broken(rule, f"it has {digest}", remedy)
