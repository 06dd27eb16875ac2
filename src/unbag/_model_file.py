"""Model files: arrays and settings in one file, safetensors with a small JSON, no pickle.

The file carries the SHA-256 of its whole content, so that no bit of it changes unnoticed. Whoever
changes a file on purpose can renew the digest; what a file says is therefore checked as well before
anything is built from it.
"""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from unbag._io import whole
from unbag._rules import Refused, broken
from unbag._version import __version__

FORMAT = 2
LONGEST_HEADER = 2**25  # bytes; it holds names, shapes and settings, and no weights
DIGEST = b'"sha256":"%s"'
BLANK = b"0" * 64  # stands for the digest while it is computed


class Misfit(ValueError):
    """Parts of a model file that do not fit together."""


def save_arrays(
    path: str | Path, arrays: dict[str, np.ndarray], settings: dict[str, Any], *, force: bool = True
) -> None:
    """Write arrays and settings to one file, whole or not at all: a failed save leaves the old one.

    Parameters
    ----------
    path : str or Path
        Where to.
    arrays : dict
        By name.
    settings : dict
        What JSON can hold.
    force : bool
        Whether a file that is there is replaced; else it is refused.
    """
    versions = {
        "format": FORMAT,
        "unbag": __version__,
        "jax": version("jax"),
        "numpy": np.__version__,
    }
    text = json.dumps({"versions": versions, "settings": settings})
    content = as_bytes(arrays, text)
    with whole(Path(path), force=force) as temporary:
        temporary.write_bytes(content)


def as_bytes(arrays: dict[str, np.ndarray], text: str) -> bytes:
    """The content of a model file, with its digest.

    Parameters
    ----------
    arrays : dict
        By name.
    text : str
        Versions and settings, as JSON.
    """
    content = save(
        {name: np.ascontiguousarray(a) for name, a in arrays.items()},
        metadata={"unbag": text, "sha256": BLANK.decode()},
    )
    content = _with_sorted_header(content)
    digest = hashlib.sha256(content).hexdigest().encode()
    return content.replace(DIGEST % BLANK, DIGEST % digest, 1)


def _with_sorted_header(content: bytes) -> bytes:
    """The same file with the names of its header in order: safetensors writes metadata in an order
    of chance, and two saves of one model should be the same bytes."""
    end = 8 + int.from_bytes(content[:8], "little")
    ordered = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":"))
    header = ordered.encode() + b" " * (-len(ordered) % 8)  # arrays begin at a multiple of 8 bytes
    return len(header).to_bytes(8, "little") + header + content[end:]


def load_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and settings of a file that `save_arrays` wrote, once its digest and its numbers are
    checked."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"A model file must exist: {path} does not. Save a model there first."
        )
    try:
        metadata, arrays = _read(path)
    except (SafetensorError, OSError, ValueError, RecursionError, TypeError) as error:
        raise broken(
            "A model file must be whole",
            f"{path.name} is cut short, has changed or is something else",
            "Save it again.",
        ) from error
    if "unbag" not in metadata:
        raise broken(
            "A model file must have been saved by unbag",
            f"{path.name} was not",
            "Load it with what wrote it.",
        )
    settings = _settings(metadata["unbag"], path)
    for name, array in arrays.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise unlike_saved(path, f"its array {name} has values that are no numbers")
    return arrays, settings


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The metadata and the arrays; errors of many kinds where the file is not whole."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(LONGEST_HEADER, path.stat().st_size - 8):
            raise Misfit("no header of this length can be")
        metadata = json.loads(file.read(length)).get("__metadata__", {})
        file.seek(0)
        content = file.read()
    if "unbag" in metadata and '"format": 1' not in metadata["unbag"][:40]:
        digest = metadata["sha256"].encode()
        blank = content.replace(DIGEST % digest, DIGEST % BLANK, 1)
        if hashlib.sha256(blank).hexdigest().encode() != digest:
            raise Misfit("the digest is another one")
    return metadata, load(content)


def _settings(text: str, path: Path) -> dict[str, Any]:
    try:
        content = json.loads(text)
        versions, settings = content["versions"], content["settings"]
        saved = versions["format"], versions["unbag"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise unlike_saved(path, "its settings are not those of a model") from error
    if saved[0] != FORMAT:
        raise broken(
            f"A model file must have format {FORMAT}",
            f"{path.name} has {saved[0]}, saved by unbag {saved[1]}",
            "Load it with that version, or train again.",
        )
    if not isinstance(settings, dict):
        raise unlike_saved(path, "its settings are not those of a model")
    return settings


def unlike_saved(path: str | Path, fault: str) -> Refused:
    """The error for a file whose content no model has.

    Parameters
    ----------
    path : str or Path
        Of the file.
    fault : str
        What is wrong with it.
    """
    return broken(
        "A model file must hold a model that unbag saved",
        f"{Path(path).name} does not ({fault})",
        "Train it again, and use only files that unbag saved.",
    )
