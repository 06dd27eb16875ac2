"""What a loader gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Dataset(NamedTuple):
    """Features and labels of the training and the test part; `features` names the columns of `X`."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    features: tuple[str, ...]
