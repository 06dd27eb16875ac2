"""Scores made before learning, reports and labels in, what a chunk says of the model out; memory
stays flat.

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

GROUPS = (
    64  # reports kept of a chunk for the drift: the bags of a chunk together, in so many groups
)
METRICS = {"log_loss": "log_loss", "auc": "auc", "gap": "prediction_minus_report"}


class Watch:
    """What was seen in the last `window` chunks."""

    def __init__(self, window: int) -> None:
        self.seen: dict[str, deque] = {name: deque(maxlen=window) for name in ("log_loss", "auc")}
        self.reports: deque = deque(maxlen=window)

    def look(self, score: np.ndarray, bags: Bags, number: int) -> dict[str, Any]:
        """What the reports of a chunk say of the scores that its instances got before; NaN where
        nothing can be said.

        Bags of one, which are labels, are left to `look_at_labels`; of them only the prior is told.
        """
        found = (
            Evaluator(("log",)).update(score, bags).compute().estimates
            if bags.size.max() > 1
            else {}
        )
        row: dict[str, Any] = {}
        for name, called in METRICS.items():
            estimate = found.get(called)
            row[name], row[f"{name}_error"] = (
                (estimate.value, estimate.error) if estimate else (np.nan, np.nan)
            )
        for name, values in self.seen.items():
            values.append((row[name], row[f"{name}_error"]))
            row[f"window_{name}"], row[f"window_{name}_error"] = _mean(values)
        return row | self._drift(bags, number)

    def _drift(self, bags: Bags, number: int) -> dict[str, Any]:
        """Whether the prior moved within the window, and the chance of such a move without
        drift."""
        size, report, noise = _grouped(bags)
        self.reports.append((number, size.tolist(), report.tolist(), noise.tolist()))
        start = [n for n, *_ in self.reports]
        if len(start) < 2 or sum(len(size) for _, size, *_ in self.reports) <= len(start):
            return {"drift": False, "drift_p": np.nan}
        size, report, noise = (
            np.concatenate([np.array(w[i]) for w in self.reports]) for i in (1, 2, 3)
        )
        time = np.repeat(start, [len(w[1]) for w in self.reports]).astype(float)
        bag = np.repeat(np.arange(len(size)), size)
        found = drift(Bags(bag, report, noise=noise if noise.any() else None), time, windows=start)
        return {"drift": found.alarm, "drift_p": float(found.p.min())}

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "seen": {name: list(values) for name, values in self.seen.items()},
            "reports": list(self.reports),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        for name, values in state["seen"].items():
            self.seen[name].extend(tuple(value) for value in values)
        self.reports.extend(tuple(window) for window in state["reports"])


def look_at_labels(
    score: np.ndarray, y: np.ndarray, truth: np.ndarray | None = None
) -> dict[str, float]:
    """Log loss, AUC and gap from labels; `true_log_loss` is the loss of the true probability on the
    same labels."""
    score, y = np.asarray(score, float), np.asarray(y, float)
    one_kind = bool(y.min() == y.max())
    row = {
        "label_log_loss": float(np.mean(losses.log.value(score, y))),
        "label_auc": np.nan if one_kind else float(labelled_auc(score[None], y)[0]),
        "label_gap": float(np.mean(expit(score)) - y.mean()),
    }
    if truth is not None:
        row["true_log_loss"] = float(-np.mean(y * np.log(truth) + (1 - y) * np.log1p(-truth)))
    return row


def _mean(values: deque) -> tuple[float, float]:
    told = np.array([pair for pair in values if np.isfinite(pair[0])])
    if len(told) == 0:
        return np.nan, np.nan
    return float(told[:, 0].mean()), float(np.sqrt((told[:, 1] ** 2).sum()) / len(told))


def _grouped(bags: Bags) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, reports and noise of the observed bags, taken together in at most `GROUPS` groups."""
    kept = bags.reported()
    group = np.arange(len(kept)) % GROUPS
    count = int(group.max()) + 1
    noise = np.zeros(len(kept)) if kept.noise is None else kept.noise
    size = sum_by(group, kept.size.astype(float), count)
    return (
        size.astype(int),
        sum_by(group, kept.report * kept.size, count) / size,
        sum_by(group, noise, count),
    )
