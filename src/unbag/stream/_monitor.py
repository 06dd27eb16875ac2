"""What a chunk says of the model that predicted it, in memory that stays flat.

From reports alone: log loss, AUC, the gap between prediction and report, the prior and its drift,
each with its error. The window is the mean over the last few chunks, whose errors are independent.
From labels, where they are given, the same under names that begin with `label_`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from scipy.special import expit

from unbag import losses
from unbag._arrays import sum_by
from unbag.bags import Bags
from unbag.diagnosis import drift
from unbag.metrics import Evaluator
from unbag.training import labelled_auc

GROUPS = 64  # into which the reports of a chunk are merged for the drift
METRICS = {"log_loss": "log_loss", "auc": "auc", "gap": "prediction_minus_report"}


class Monitor:
    """What was observed in the last `window` chunks."""

    def __init__(self, window: int) -> None:
        names = ("log_loss", "auc")
        self.window: dict[str, deque] = {name: deque(maxlen=window) for name in names}
        self.reports: deque = deque(maxlen=window)

    def observe(self, score: np.ndarray, bags: Bags, number: int) -> dict[str, Any]:
        """What the reports of a chunk say of the scores that its instances got before; NaN where
        nothing can be said.

        Bags of one, which are labels, are left to `label_metrics`; of them only the prior is kept.

        Parameters
        ----------
        score : array
            Of each instance.
        bags : Bags
            Of the chunk.
        number : int
            Of the chunk.
        """
        row = dict.fromkeys([*METRICS, *(f"{name}_error" for name in METRICS)], np.nan)
        if bags.size.max() > 1:
            estimates = Evaluator(("log",)).update(score, bags).compute().estimates
            for name, metric in METRICS.items():
                if metric in estimates:
                    row[name], row[f"{name}_error"] = estimates[metric][:2]
        for name, values in self.window.items():
            values.append((row[name], row[f"{name}_error"]))
            row[f"window_{name}"], row[f"window_{name}_error"] = _mean(values)
        return row | self._drift(bags, number)

    def _drift(self, bags: Bags, number: int) -> dict[str, Any]:
        """Whether the prior moved within the window, and the chance of such a move without
        drift."""
        kept = bags.reported()  # merged into groups, so that memory stays flat
        group = np.arange(len(kept)) % GROUPS
        count = int(group.max()) + 1
        size = sum_by(group, kept.size.astype(float), count)
        report = sum_by(group, kept.report * kept.size, count) / size
        columns = (size.astype(int), report, sum_by(group, kept.noise_or_zero, count))
        self.reports.append((number, *(column.tolist() for column in columns)))
        chunks, sizes, reports, noises = zip(*self.reports, strict=True)
        lengths = [len(size) for size in sizes]
        if len(chunks) < 2 or sum(lengths) <= len(chunks):
            return {"drift": False, "drift_p": np.nan}
        size = np.concatenate(sizes)
        bag, noise = np.repeat(np.arange(len(size)), size), np.concatenate(noises)
        merged = Bags(bag, np.concatenate(reports), noise=noise)
        result = drift(merged, np.repeat(chunks, lengths).astype(float), windows=list(chunks))
        return {"drift": result.alarm, "drift_p": float(result.p.min())}

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        window = {name: list(values) for name, values in self.window.items()}
        return {"window": window, "reports": list(self.reports)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        for name, values in state["window"].items():
            self.window[name].extend(tuple(value) for value in values)
        self.reports.extend(tuple(chunk) for chunk in state["reports"])


def label_metrics(
    score: np.ndarray, y: np.ndarray, truth: np.ndarray | None = None
) -> dict[str, float]:
    """Log loss, AUC and gap from labels.

    Parameters
    ----------
    score, y : array
        Of each event.
    truth : array, optional
        The true probability; `true_log_loss` is its loss on the same labels.
    """
    score, y = np.asarray(score, float), np.asarray(y, float)
    row = {
        "label_log_loss": float(np.mean(losses.log.value(score, y))),
        "label_auc": np.nan,
        "label_gap": float(np.mean(expit(score)) - y.mean()),
    }
    if y.min() != y.max():
        row["label_auc"] = float(labelled_auc(score[None], y)[0])
    if truth is not None:
        row["true_log_loss"] = float(-np.mean(y * np.log(truth) + (1 - y) * np.log1p(-truth)))
    return row


def _mean(values: deque) -> tuple[float, float]:
    known = np.array([pair for pair in values if np.isfinite(pair[0])])
    if len(known) == 0:
        return np.nan, np.nan
    return float(known[:, 0].mean()), float(np.sqrt((known[:, 1] ** 2).sum()) / len(known))
