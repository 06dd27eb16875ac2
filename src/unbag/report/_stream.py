"""The page on a stream, from its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from unbag.plots import draw_prior, draw_stream, stream_column
from unbag.report._page import Grid, Page, Part, Section, Text, digits, items, page, short
from unbag.report._svg import picture_of
from unbag.tables import count

METRICS = (
    ("log_loss", "Log loss", "lower is better"),
    ("auc", "AUC", "0.5 is chance, 1 is perfect"),
)
AVERAGED = {"Log loss": "log_loss", "AUC": "auc", "Predicted - observed": "gap"}
SOURCES = {"": "from reports", "label_": "from labels", "true_": "of the true probability"}
Rows = Sequence[Mapping[str, Any]]


def stream_page(
    rows: Rows, line: str, *, learned: int, waiting: int, aside: Mapping[str, int]
) -> Page:
    """The page on a stream.

    Parameters
    ----------
    rows : sequence of mappings
        What was measured of each chunk, as in `metrics.jsonl`.
    line : str
        How it was learned from.
    learned, waiting : int
        Events that were learned from, and that wait for their report.
    aside : mapping from str to int
        How many reports or lines were set aside, and why.
    """
    return page(
        "A model that learns from a stream",
        line,
        _summary(rows, learned),
        _read(rows, learned, waiting, aside),
        *(_over_time(rows, *metric) for metric in METRICS),
        _prior(rows),
        _next_steps(rows, waiting, aside),
    )


def _last(rows: Rows, name: str) -> tuple[float, float]:
    """The last window's mean and its standard error; NaN where there is none."""
    value = stream_column(rows, f"window_{name}")
    error = stream_column(rows, f"window_{name}_error")
    known = np.flatnonzero(np.isfinite(value))
    if len(known) == 0:
        return np.nan, np.nan
    return float(value[known[-1]]), float(error[known[-1]])


def _alarms(rows: Rows) -> int:
    return int(np.nansum(stream_column(rows, "drift")))


def _summary(rows: Rows, learned: int) -> Section:
    chunks = count(len(rows), "chunk")
    parts = [
        Text(f"{count(learned, 'event')} were learned from, in {chunks}.", strong=True),
        Text(
            "Each chunk was predicted before its reports arrived, so every number below is about "
            "events that the model had not learned from."
        ),
    ]
    for name, title, meaning in METRICS:
        value, error = _last(rows, name)
        if np.isfinite(value):
            d = digits(error)
            between = f"{value - 2 * error:.{d}f} to {value + 2 * error:.{d}f}"
            window = f"{title} over the last chunks, from reports alone"
            parts.append(Text(f"{window}: {value:.{d}f} ({between}; {meaning})."))
    moved = "The prior stood still."
    if _alarms(rows):
        moved = f"The prior moved in {_alarms(rows)} of {chunks}."
    return Section("summary", "In short", [*parts, Text(moved)])


def _read(rows: Rows, learned: int, waiting: int, aside: Mapping[str, int]) -> Section:
    counts = {"Chunks": len(rows), "Events learned from": learned, "Events waiting": waiting}
    parts: list[Part] = [
        Grid("What was read", ["", ""], [[name, f"{n:,}"] for name, n in counts.items()]),
        Grid("Averages over chunks", ["", *SOURCES.values()], _averages(rows)),
    ]
    if aside:
        reasons = [[str(reason), f"{count:,}"] for reason, count in aside.items()]
        parts.append(Grid("Set aside", ["why", "how often"], reasons))
    else:
        parts.append(Text("Nothing was set aside."))
    return Section("input", "What was read, and what was refused", parts)


def _averages(rows: Rows) -> list[list[str]]:
    """Each metric by each source; empty where a source is not there."""
    table = []
    for title, name in AVERAGED.items():
        columns = [stream_column(rows, f"{source}{name}") for source in SOURCES]
        known = [column[np.isfinite(column)] for column in columns]
        table.append([title, *(f"{one.mean():.4f}" if len(one) else "" for one in known)])
    return table


def _over_time(rows: Rows, name: str, title: str, meaning: str) -> Section | None:
    known = [
        words
        for source, words in SOURCES.items()
        if np.isfinite(stream_column(rows, f"{source or 'window_'}{name}")).any()
    ]
    if not known:
        return None
    address = name.replace("_", "-")
    words = f"{title} by chunk, {', '.join(known)}"
    caption = (
        f"{title} ({meaning}). From reports: the mean over the last chunks, and two standard "
        "errors around it."
    )
    draw = partial(draw_stream, rows=rows, metric=name)
    picture = picture_of(draw, words, caption, name=address)
    return Section(address, f"{title} over time", [picture])


def _prior(rows: Rows) -> Section | None:
    if not np.isfinite(stream_column(rows, "prior")).any():
        return None
    words = "The prior by chunk; rings where it moved"
    caption = "Rings: chunks in which the prior was seen to move."
    draw = partial(draw_prior, rows=rows)
    picture = picture_of(draw, words, caption, name="prior", height=3.4)
    return Section("prior", "The prior over time", [picture])


def _next_steps(rows: Rows, waiting: int, aside: Mapping[str, int]) -> Section:
    return Section("next", "What to do next", [items(*_advice(rows, waiting, aside))])


def _advice(rows: Rows, waiting: int, aside: Mapping[str, int]) -> Iterator[str]:
    value, error = _last(rows, "log_loss")
    if _alarms(rows):
        prior = "keep the prior of each chunk (--prior chunk)"
        yield f"The prior moves: {prior}, and do not stop learning."
    if aside:
        things = count(sum(aside.values()), "thing")
        yield f"{things} were set aside: quarantine.jsonl says which; fix the source."
    if waiting:
        events = count(waiting, "event")
        yield f"{events} wait for their report; the same command goes on when there is more."
    if np.isfinite(value) and error > 0.05 * abs(value):
        known = f"The last log loss is known to {short(2 * error)} only"
        yield f"{known}: 4 times the events in a chunk would halve that."
    yield "To go on from here, run the same command again: it resumes from the last checkpoint."
