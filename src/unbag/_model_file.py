"""Model files: arrays and settings in one file, safetensors with a small JSON, no pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from unbag._io import whole
from unbag._rules import broken
from unbag._version import __version__

FORMAT = 1


def save_arrays(path: str | Path, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
    """Write arrays and settings to one file, whole or not at all: a failed save leaves the old one.

    Parameters
    ----------
    path : str or Path
        Where to.
    arrays : dict
        By name.
    settings : dict
        What JSON can hold.
    """
    path = Path(path)
    versions = {
        "format": FORMAT,
        "unbag": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
    }
    text = json.dumps({"versions": versions, "settings": settings})
    with whole(path) as temporary:
        try:
            save_file(
                {name: np.ascontiguousarray(a) for name, a in arrays.items()},
                temporary,
                metadata={"unbag": text},
            )
        except SafetensorError as error:
            raise OSError(f"{path.name} could not be written: {error}") from error
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())


def load_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and settings of a file that `save_arrays` wrote."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"A model file must exist: {path} does not. Save a model there first."
        )
    try:
        with safe_open(path, "numpy") as file:
            text = (file.metadata() or {}).get("unbag")
        arrays = load_file(path)
    except (SafetensorError, OSError) as error:
        raise broken(
            "A model file must be whole",
            f"{path.name} is cut short or is something else",
            "Save it again.",
        ) from error
    if text is None:
        raise broken(
            "A model file must have been saved by unbag",
            f"{path.name} was not",
            "Load it with what wrote it.",
        )
    content = json.loads(text)
    versions = content["versions"]
    if versions["format"] != FORMAT:
        raise broken(
            f"A model file must have format {FORMAT}",
            f"{path.name} has {versions['format']}, saved by unbag {versions['unbag']}",
            "Load it with that version, or train again.",
        )
    return arrays, content["settings"]
