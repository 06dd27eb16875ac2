"""A story in, the sections of its page out; each is None where there is nothing to tell."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from unbag.metrics import Evaluation
from unbag.report._figures import (
    Level,
    Row,
    Series,
    draw_bars,
    draw_intervals,
    draw_lines,
    draw_points,
)
from unbag.report._numbers import digits, many, range_of, short, value_of
from unbag.report._page import Cells, Figure, Part, Section, Text, Words, items
from unbag.report._story import Curve, Facts, Story, named

MOST = 12  # rows of a table or figure, lines of a list
GLOSSARY = (
    (
        "Bag",
        "A group of events whose labels are known only together: 37 sales among these 512 clicks.",
    ),
    (
        "Report",
        "What is known of a bag: its total, sometimes with noise that protects the people in it.",
    ),
    (
        "Prior",
        (
            "The share of positive events over all bags; what to predict of an event of which "
            "nothing is known."
        ),
    ),
    (
        "Interval",
        (
            "Where the true value probably lies. If the bags are random, about 95 in 100 intervals "
            "of 95% hold it."
        ),
    ),
    ("Worth", "How many labelled events would tell a number as precisely as all these bags do."),
)


def glossary() -> Section:
    """Five words."""
    return Section("glossary", "Five words", [Words(GLOSSARY)])


def came(story: Story) -> Section | None:
    """What came in and what was refused."""
    told, facts = story.told, story.facts
    if told is None and facts is None:
        return None
    parts: list[Part] = []
    if told is not None:
        parts += [Text(f"{many(told.events, 'event')} and {many(told.reports, 'report')} came in.")]
    if facts is not None:
        parts += [Cells("What is used", ["", ""], _fact_rows(facts))]
    if told is not None and told.left_out:
        parts += [Text("Left out, or waiting:"), items(*told.left_out)]
    if told is not None and told.refused:
        parts += [Text("Refused:", strong=True), items(*told.refused)]
    if told is not None and not told.left_out and not told.refused:
        parts += [Text("Nothing was left out, and nothing was refused.")]
    return Section("came", "What came in, and what was refused", parts)


def _fact_rows(f: Facts) -> list[list[str]]:
    sizes = (
        f"{f.smallest:,}"
        if f.smallest == f.largest
        else f"{f.smallest:,} to {f.largest:,}, {short(f.size)} on average"
    )
    rows = [
        ["Bags with a report", f"{f.bags:,}"],
        ["Events in these", f"{f.events:,}"],
        ["Events in a bag", sizes],
    ]
    rows += [] if f.prior is None else [["Prior (mean report)", short(f.prior)]]
    noise = (
        f"standard deviation {short(f.noise**0.5)} on a bag's count" if f.noise else "none declared"
    )
    rows += [["Noise of the reports", noise]]
    waiting = f"{f.pending:,}, with {many(f.waiting, 'event')} that only serve the means"
    rows += [["Bags waiting for their report", waiting]] if f.pending else []
    return rows + ([["Strata", f"{f.strata:,}"]] if f.strata > 1 else [])


def random_bags(story: Story) -> Section | None:
    """Are the bags random?"""
    found = story.diagnosis
    if found is None:
        return None
    parts: list[Part] = [
        Text(found.verdict, strong=not found.random),
        Text(
            "This matters more than anything else. Events must have come into their bags by "
            "chance: if a bag gathers events that are alike, such as all clicks of one campaign, "
            "what is learned from totals is wrong, and the intervals do not tell."
        ),
    ]
    shown = [f for f in found.features if isfinite(f.F)][:MOST]
    if shown:
        rows = [
            [f.name, short(f.F), "below 0.001" if f.p < 0.001 else f"{min(f.p, 1):.2g}"]
            for f in shown[:6]
        ]
        header = [
            "feature",
            "variance between bags (1 is chance)",
            "chance of so much in random bags",
        ]
        more = (
            f", the {len(rows)} most unlike chance of {len(found.features)}"
            if len(found.features) > len(rows)
            else ""
        )
        parts += [Cells(f"How features differ between bags{more}", header, rows)]
    parts += (
        [items(*(f"{note[:1].upper()}{note[1:]}." for note in found.notes))] if found.notes else []
    )
    return Section("random", "Are the bags random?", parts)


def compared(story: Story) -> Section | None:
    """Models compared on the same held-out bags."""
    choice = story.choice
    if choice is None or len(choice.table) < 2:
        return None
    table = [row for row in choice.table if isfinite(row.loss.value)][:MOST]
    labelled = any(row.labelled is not None for row in table)
    called = brief([row.name for row in choice.table])
    rows = [
        Row(called[row.name], row.loss.value, row.loss.low, row.loss.high, row.name == choice.name)
        for row in table
    ]
    words = f"Loss of {many(len(rows), 'model')} with intervals; {called[choice.name]} was chosen"
    header = [
        "",
        "loss",
        "95% interval",
        "worse than the chosen one by",
        *(["labels say"] if labelled else []),
    ]
    d, cells = max(digits(row.loss.error) for row in table), []
    for row in table:
        own = (
            ["chosen"]
            if row.name == choice.name
            else [f"{value_of(row.difference)} ({range_of(row.difference)})"]
        )
        last = [] if not labelled else ["" if row.labelled is None else f"{row.labelled:.3f}"]
        cells.append([called[row.name], value_of(row.loss, d), range_of(row.loss, d), *own, *last])
    left = len(choice.table) - len(table)
    return Section("compared", "Methods compared", [
        Text(f"{many(choice.bags, 'bag')} that none of them learned from chose {called[choice.name]}. {choice.reason}"),
        Figure(draw_intervals(rows, words, x="loss, lower is better"), "Each line is an interval: where it overlaps "
               "with another, look at the differences below, which are surer because all models face the same bags."),
        Cells("Loss on held-out bags, and the difference to the chosen model", header, cells),
        *([Text(f"{left} more are not shown.")] if left else []),
    ])  # fmt: skip


def brief(names: Sequence[str]) -> dict[str, str]:
    """Names without what all of them have in common after their first part.

    >>> brief(["upm log, rate 0.1, seed 0", "upm log, rate 0.01, seed 0"])
    {'upm log, rate 0.1, seed 0': 'upm log, rate 0.1', 'upm log, rate 0.01, seed 0': 'upm log, rate
    0.01'}
    """
    parts = [name.split(", ") for name in names]
    if len({len(part) for part in parts}) != 1:
        return dict(zip(names, names, strict=True))
    kept = [i for i in range(len(parts[0])) if i == 0 or len({part[i] for part in parts}) > 1]
    return {name: ", ".join(part[i] for i in kept) for name, part in zip(names, parts, strict=True)}


def learning(story: Story) -> Section | None:
    """Learning curves."""
    curves = best_curves(story.curves)
    if not curves:
        return None
    series = [Series(c.name, list(range(1, len(c.loss) + 1)), c.loss) for c in curves]
    marks = [
        (float(c.epoch), float(c.loss[c.epoch - 1])) for c in curves if 0 < c.epoch <= len(c.loss)
    ]
    levels = [] if story.trivial is None else [Level("always the prior", story.trivial)]
    words = f"Loss on held-out bags by epoch, for {', '.join(c.name for c in curves)}"
    most = _ceiling(curves, story.trivial)
    svg = draw_lines(
        series, words, x="epoch", y="loss on held-out bags", levels=levels, marks=marks, most=most
    )
    caption = (
        "An epoch is one pass over all bags. The curves are estimates from few bags, hence their "
        "unrest; the ring is the epoch that was taken, chosen by a steadier rule than the lowest "
        "point. Curves that rise have learned the noise of their bags."
    )
    left = len(story.curves) - len(curves)
    return Section("curves", "Learning curves", [
        Figure(svg, caption), *([Text(f"{left} more runs are not shown.")] if left else [])
    ])  # fmt: skip


def _ceiling(curves: Sequence[Curve], trivial: float | None) -> float | None:
    """Half as far above the trivial loss as the best lies below it: what is worse is all the
    same."""
    lowest = min(float(np.nanmin(curve.loss)) for curve in curves)
    return None if trivial is None or lowest >= trivial else trivial + 0.5 * (trivial - lowest)


def best_curves(curves: Sequence[Curve]) -> list[Curve]:
    """Of several methods one curve each (the chosen one, or the best), of one method its best
    six."""
    there = [c for c in curves if len(c.loss) and np.isfinite(c.loss).any()]
    end = lambda c: (
        not c.chosen,
        c.loss[c.epoch - 1] if c.epoch and isfinite(c.loss[c.epoch - 1]) else np.inf,
    )
    groups = dict.fromkeys(c.group for c in there)
    if len(groups) > 1:
        there = [min((c for c in there if c.group == group), key=end) for group in groups]
    kept = sorted(there, key=end)[:6]
    return [c for c in there if c in kept]


def good(story: Story) -> Section | None:
    """Every metric with its interval, and what labels say where they were revealed."""
    found = story.evaluation
    if found is None:
        return None
    header = [
        "",
        "estimate",
        f"{found.level:.0%} interval",
        "worth in labelled events",
        "what it means",
    ]
    rows = []
    for name, one in found.estimates.items():
        worth = "" if one.worth is None else f"{one.worth:,.0f} of {found.instances:,}"
        rows.append([named(name)[0], value_of(one), range_of(one), worth, named(name)[1]])
    source = f"From {many(found.bags, 'bag')} with {many(found.instances, 'event')} that the model did not learn from"
    parts: list[Part] = [Cells(source, header, rows)]
    if story.trivial is not None:
        parts += [
            Text(f"Always predicting the prior would have a log loss of {short(story.trivial)}.")
        ]
    parts += [items(*found.notes)] if found.notes else []
    return Section("good", "How good is it?", parts)


def revealed(story: Story) -> Section | None:
    """Whether the intervals held the truth, once labels were looked at."""
    if story.evaluation is None or story.labels is None:
        return None
    rows, held = verdicts(story.evaluation, story.labels)
    text = f"{held} of {len(rows)} intervals hold what the labels say. " + (
        "Of many such intervals, about 5 in 100 miss."
        if held < len(rows)
        else "That is what intervals of 95% promise."
    )
    header = ["", "from bags", "95% interval", "labels say", "held"]
    return Section("revealed", "The labels, revealed", [
        Text("Everything above was made without the label of a single event. Here the labels are opened."),
        Cells("Estimates from bags against the truth", header, rows), Text(text, strong=True),
    ])  # fmt: skip


def verdicts(found: Evaluation, labels: Evaluation) -> tuple[list[list[str]], int]:
    """For each metric: the estimate, its interval, what labels say, and whether it lies inside; and
    how many do."""
    rows, held = [], 0
    for name, one in found.estimates.items():
        if name in labels.estimates and name != "mean_prediction":  # which needs no label
            truth = labels.estimates[name].value
            inside = one.low <= truth <= one.high
            held += inside
            row = [
                named(name)[0],
                value_of(one),
                range_of(one),
                f"{truth:.3f}",
                "yes" if inside else "no",
            ]
            rows.append(row)
    return rows, held


def calibration(story: Story) -> Section | None:
    """Predicted against observed."""
    bands = [
        b
        for b in (story.evaluation.calibration if story.evaluation else [])
        if isfinite(b.observed.value)
    ]
    if len(bands) < 2:
        return None
    part = lambda name: [float(getattr(b.observed, name)) for b in bands]
    series = Series("", [b.prediction for b in bands], part("value"), part("low"), part("high"))
    off = sum(not b.observed.low <= b.prediction <= b.observed.high for b in bands)
    words = f"Observed against predicted rate in {len(bands)} bands of the score; {off} intervals miss the diagonal"
    svg = draw_points(series, words, x="predicted", y="observed, from bags", diagonal=True)
    return Section("calibration", "Do predictions mean what they say?", [
        Figure(svg, "Events in bands of the score: what the model predicts, and what the bags say happened, with 95% "
               "intervals. On the dashed line what is predicted is what happens, on average."),
        Text(f"{len(bands) - off} of {len(bands)} intervals touch the line."),
    ])  # fmt: skip


def scores(story: Story) -> Section | None:
    """How predictions are distributed."""
    values = story.predictions
    if values is None or len(values) == 0 or np.ndim(values) != 1:
        return None
    values = np.asarray(values, float)
    top = 1.0 if values.max() <= 1 else float(np.quantile(values, 0.995)) or 1.0
    heights, edges = np.histogram(
        np.minimum(values, top), bins=25, range=(min(0.0, values.min()), top)
    )
    share = 100 * heights / len(values)
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
    quantiles = f"a tenth below {low:.2g}, half below {middle:.2g}, a tenth above {high:.2g}"
    words = f"Distribution of {len(values):,} predictions: {quantiles}"
    svg = draw_bars(edges.tolist(), share.tolist(), words, x="prediction", y="share of events, %")
    caption = f"{words}. A model that knows nothing puts every event at the prior; one that knows much spreads them out."
    return Section("scores", "What it predicts", [Figure(svg, caption)])


def prior_over_time(story: Story) -> Section | None:
    """The prior in windows of time."""
    found = story.drift
    if found is None or found.prior.ndim > 1:
        return None
    where = list(range(1, len(found.prior) + 1))
    series = Series(
        "", where, *(np.asarray(v, float).tolist() for v in (found.prior, found.low, found.high))
    )
    words = f"The prior in {len(where)} windows of time with intervals, from {found.start[0]} on. {found.verdict}"
    svg = draw_points(
        series,
        words,
        x=f"window of time, from {_moment(found.start[0])} to {_moment(found.start[-1])}",
        y="prior",
    )
    return Section("prior", "The prior over time", [
        Text(found.verdict, strong=bool(found.alarm)), Figure(svg, "Mean report in windows of about as many reports.")
    ])  # fmt: skip


def _moment(value: object) -> str:
    text = str(value)
    return text[:10] if len(text) > 10 and text[4:5] == "-" else text
