"""The log of a stream in, its page out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unbag.report._figures import Series, draw_lines
from unbag.report._numbers import digits, many, short
from unbag.report._page import Cells, Figure, Items, Page, Part, Section, Text
from unbag.report._sections import glossary

METRICS = (
    ("log_loss", "Log loss", "lower is better"),
    ("auc", "AUC", "0.5 is chance, 1 is perfect"),
)
MOST = 300  # points of a curve: more cannot be told apart


def stream_page(
    rows: Sequence[Mapping[str, Any]],
    line: str,
    *,
    learned: int,
    waiting: int,
    aside: Mapping[str, int],
) -> Page:
    """The page on a stream.

    Parameters
    ----------
    rows : what was seen of each chunk, as in `metrics.jsonl`.
    line : what it was. learned, waiting : events. aside : how many reports or lines were set aside,
        and why.
    """
    parts = [
        _summary(rows, learned),
        _came(rows, learned, waiting, aside),
        *(_over_time(rows, *metric) for metric in METRICS),
        _prior(rows),
        _next_steps(rows, waiting, aside),
        glossary(),
    ]
    return Page(
        "A model that learns from a stream", line, [part for part in parts if part is not None]
    )


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    return np.array([np.nan if row.get(name) is None else row[name] for row in rows], float)


def _last(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[float, float]:
    """The last window's mean and its standard error."""
    value, error = _column(rows, f"window_{name}"), _column(rows, f"window_{name}_error")
    known = np.flatnonzero(np.isfinite(value))
    return (float(value[known[-1]]), float(error[known[-1]])) if len(known) else (np.nan, np.nan)


def _summary(rows: Sequence[Mapping[str, Any]], learned: int) -> Section:
    told = [
        Text(
            f"{many(learned, 'event')} were learned from, in {many(len(rows), 'chunk')}.",
            strong=True,
        )
    ]
    told += [
        Text(
            "Each chunk was predicted before its reports came, so every number below is about "
            "the unseen."
        )
    ]
    for name, title, meaning in METRICS:
        value, error = _last(rows, name)
        if np.isfinite(value):
            d = digits(error)
            between = f"{value - 2 * error:.{d}f} to {value + 2 * error:.{d}f}"
            told += [
                Text(
                    f"{title} over the last chunks, from reports alone: {value:.{d}f} ({between}; "
                    f"{meaning})."
                )
            ]
    alarms = int(np.nansum(_column(rows, "drift")))
    told += [
        Text(
            f"The prior moved in {alarms} of {many(len(rows), 'chunk')}."
            if alarms
            else "The prior stood still."
        )
    ]
    return Section("summary", "In short", told)


def _came(
    rows: Sequence[Mapping[str, Any]], learned: int, waiting: int, aside: Mapping[str, int]
) -> Section:
    cells = [
        ["Chunks", f"{len(rows):,}"],
        ["Events learned from", f"{learned:,}"],
        ["Events waiting", f"{waiting:,}"],
    ]
    parts: list[Part] = [Cells("What came", ["", ""], cells)]
    if aside:
        told = [[str(kind), f"{count:,}"] for kind, count in aside.items()]
        parts += [Cells("Set aside", ["why", "how often"], told)]
    return Section(
        "came",
        "What came in, and what was refused",
        [*parts, *([] if aside else [Text("Nothing was set aside.")])],
    )


def _over_time(
    rows: Sequence[Mapping[str, Any]], name: str, title: str, meaning: str
) -> Section | None:
    mean, error = _column(rows, f"window_{name}"), _column(rows, f"window_{name}_error")
    labels, truth = _column(rows, f"label_{name}"), _column(rows, f"true_{name}")
    known = {"from reports": mean, "from labels": labels, "of the true probability": truth}
    known = {called: values for called, values in known.items() if np.isfinite(values).any()}
    if not known:
        return None
    kept = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST)).astype(int))
    x = _column(rows, "chunk")[kept].tolist()
    series = [
        Series(
            called, x, values[kept].tolist(), *_band(values, error, kept, called == "from reports")
        )
        for called, values in known.items()
    ]
    words = f"{title} by chunk, {', '.join(known)}"
    svg = draw_lines(series, words, x="chunk", y=title)
    caption = f"{title} ({meaning}). From reports: the mean over the last chunks, and two standard errors around it."
    return Section(name.replace("_", "-"), f"{title} over time", [Figure(svg, caption)])


def _band(values: np.ndarray, error: np.ndarray, kept: np.ndarray, wanted: bool) -> tuple[Any, Any]:
    return (
        ((values - 2 * error)[kept].tolist(), (values + 2 * error)[kept].tolist())
        if wanted
        else (None, None)
    )


def _prior(rows: Sequence[Mapping[str, Any]]) -> Section | None:
    prior, moved = _column(rows, "prior"), _column(rows, "drift") > 0
    if not np.isfinite(prior).any():
        return None
    x = _column(rows, "chunk")
    svg = draw_lines(
        [Series("", x.tolist(), prior.tolist())], "The prior by chunk; rings where it moved", x="chunk", y="prior",
        marks=list(zip(x[moved].tolist(), prior[moved].tolist(), strict=True)),
    )  # fmt: skip
    return Section(
        "prior",
        "The prior over time",
        [Figure(svg, "Rings: chunks in which the prior was seen to move.")],
    )


def _next_steps(
    rows: Sequence[Mapping[str, Any]], waiting: int, aside: Mapping[str, int]
) -> Section:
    told = []
    if np.nansum(_column(rows, "drift")):
        told += [
            "The prior moves: keep the prior of each chunk (--prior chunk), and do not stop learning."
        ]
    if aside:
        told += [
            f"{many(sum(aside.values()), 'thing')} were set aside: look into quarantine.jsonl, mend the source."
        ]
    if waiting:
        told += [
            f"{many(waiting, 'event')} wait for their report; the same command goes on when more has come."
        ]
    value, error = _last(rows, "log_loss")
    if np.isfinite(value) and error > 0.05 * abs(value):
        told += [
            f"The last log loss is known to {short(2 * error)} only: 4 times the events in a chunk would halve that."
        ]
    told += ["To go on from here, run the same command again: it resumes from the last checkpoint."]
    return Section("next", "What to do next", [Items([(sentence, "") for sentence in told])])
