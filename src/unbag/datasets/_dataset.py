"""What a loader gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbag.bags import Kind


class Dataset(NamedTuple):
    """Features and labels of the training and the test part, and what is known about them.

    Parameters
    ----------
    X, y, X_test, y_test : array
        Rows of features (or images) and their labels.
    features : tuple of str
        Names of the columns of `X`; empty for images.
    name : str
        The data set and its task, as in "mnist/even_odd".
    kind : {"binary", "histogram", "total"}
        What a bag of these labels reports; `y` is a class number for a histogram, a count for a
        total.
    classes : int
        How many classes there are; 2 for binary labels, 0 for counts.
    offset, offset_test : array, optional
        Log exposure of each row, added to the score of a count; None when every row counts once.
    truth, truth_test : array, optional
        P(y = 1 | x), or E[y | x] of a count, where the data were made and it is known.
    campaign, campaign_test : array, optional
        The campaign each row belongs to, where there are campaigns.
    citation, licence : str
        Whom to cite, and what may be done with the data.
    official : bool
        Whether these are all rows of the published files, with the published split.
    note : str
        What differs from the published data when they are not, or "".
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    features: tuple[str, ...]
    name: str = ""
    kind: Kind = "binary"
    classes: int = 2
    offset: np.ndarray | None = None
    offset_test: np.ndarray | None = None
    truth: np.ndarray | None = None
    truth_test: np.ndarray | None = None
    campaign: np.ndarray | None = None
    campaign_test: np.ndarray | None = None
    citation: str = ""
    licence: str = ""
    official: bool = True
    note: str = ""
