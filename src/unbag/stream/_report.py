"""The log of a stream in, a page with its picture out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unbag.plots import stream_figure
from unbag.report import stream_page
from unbag.report import write_page as write_html
from unbag.stream._checkpoint import METRICS, from_line
from unbag.stream._learner import StreamLearner


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """What was seen of every chunk, in order."""
    path = Path(folder) / METRICS
    return [from_line(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_page(learner: StreamLearner, folder: str | Path) -> Path:
    """A page on a stream: what it was, how it went, what was set aside; `report.html`, and beside
    it `report.md`."""
    rows, folder = read_metrics(folder), Path(folder)
    stream_figure(rows).savefig(folder / "stream.png", dpi=150)
    s = learner.settings
    lines = [
        "# A stream\n",
        (
            f"{s.method}, rate {s.rate:g}, bags of {s.size}, batches of {s.batch}, prior: "
            f"{s.prior}, seed {s.seed}."
        ),
        (
            f"{learner.chunks} chunks, {learner.events_learned:,} events learned, "
            f"{learner.waiting:,} waiting.\n"
        ),
        "![log loss, AUC and prior](stream.png)\n",
        "| average over chunks | from reports | from labels | of the truth |",
        "|---|---|---|---|",
    ]
    for title, name in (("log loss", "log_loss"), ("AUC", "auc"), ("predicted - observed", "gap")):
        told = [_average(rows, key) for key in (name, f"label_{name}", f"true_{name}")]
        lines.append(f"| {title} | {' | '.join(told)} |")
    alarms = [row["chunk"] for row in rows if row.get("drift")]
    lines += [f"\nDrift of the prior was seen in {len(alarms)} of {len(rows)} chunks.\n"]
    lines += (
        ["| set aside | how often |", "|---|---|"] if learner.counts else ["Nothing was set aside."]
    )
    lines += [f"| {kind} | {count} |" for kind, count in learner.counts.items()]
    (folder / "report.md").write_text("\n".join(lines) + "\n")
    line = f"{s.method}, rate {s.rate:g}, bags of {s.size}, prior: {s.prior}"
    counts = {
        "learned": learner.events_learned,
        "waiting": learner.waiting,
        "aside": learner.counts,
    }
    return write_html(stream_page(rows, line, **counts), folder / "report.html", force=True)


def _average(rows: list[dict[str, Any]], name: str) -> str:
    values = np.array([row.get(name, np.nan) for row in rows], float)
    return f"{np.nanmean(values):.4f}" if np.isfinite(values).any() else ""
