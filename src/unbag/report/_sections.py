"""The page on a model, section by section; a section is None where there is nothing to say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isfinite

import numpy as np

from unbag import plots
from unbag.learners import Effect
from unbag.metrics import Evaluation
from unbag.report._advice import next_steps, outlook, summary
from unbag.report._page import (
    Grid,
    Page,
    Part,
    Picture,
    Section,
    Text,
    digits,
    items,
    page,
    range_of,
    short,
    value_of,
)
from unbag.report._story import Facts, LearningCurve, Story, brief, named
from unbag.report._svg import picture_of
from unbag.tables import count

MOST = 12  # rows of a table or figure
CURVES = 6  # more cannot be told apart
WHY_RANDOM = (
    "This matters more than anything else. Events must have come into their bags by chance: if a "
    "bag gathers events that are alike, such as all clicks of one campaign, what is learned from "
    "totals is wrong, and the intervals do not tell."
)
OF_INTERVALS = (
    "Each line is an interval: where it overlaps with another, look at the differences below, "
    "which are surer because all models face the same bags."
)
OF_CURVES = (
    "An epoch is one pass over all bags. The curves are estimates from few bags, so they jump; the "
    "epoch that was taken is chosen by a steadier rule than the lowest point. Curves that rise "
    "have learned the noise of their bags."
)
OF_CALIBRATION = (
    "Events in bands of the score: what the model predicts, and what the bags say happened, with "
    "95% intervals. On the dashed line what is predicted is what happens, on average."
)
OF_COLUMNS = (
    "Known is the share of the variance of a column's effect that the tables take away: 100% when "
    "they determine it, 0% when they tell nothing, so that the model ignores the column."
)
OF_WINDOWS = "Mean report in windows of about as many reports."
OF_PREDICTIONS = (
    "A model that knows nothing puts every event at the prior; one that knows much spreads them "
    "out."
)


def page_of(story: Story) -> Page:
    """The page on a model: from what was read to what to do next.

    >>> page_of(Story("A page")).sections[0].title
    'In short'
    """
    sections = (
        summary, _read, random_bags, _told_columns, compared, good, _revealed, effects, outlook,
        _learning, calibration, _predictions, _prior_over_time, next_steps,
    )  # fmt: skip
    return page(story.title, story.line, *(section(story) for section in sections))


def _read(story: Story) -> Section | None:
    """What was read, and what was left out or refused."""
    tables, facts = story.tables, story.facts
    parts: list[Part] = []
    if tables is not None:
        parts.append(
            Text(
                f"{count(tables.events, 'event')} and {count(tables.reports, 'report')} were read."
            )
        )
    if facts is not None:
        parts.append(Grid("What is used", ["", ""], fact_rows(facts, story.unit)))
    if story.readings:
        rows = [list(reading) for reading in story.readings]
        parts.append(Grid("Columns", ["column", "how it is read"], rows))
    if tables is not None and tables.left_out:
        parts += [Text("Not learned from:"), items(*tables.left_out)]
    if tables is not None and tables.refused:
        parts += [Text("Refused:", strong=True), items(*map(str, tables.refused))]
    if tables is not None and not (tables.left_out or tables.refused):
        parts.append(Text("No event and no report was left out or refused."))
    if not parts:
        return None
    return Section("input", "What was read, and what was refused", parts)


def fact_rows(f: Facts, unit: str) -> list[list[str]]:
    sizes, noise = f"{f.smallest:,}", "none declared"
    if f.smallest < f.largest:
        sizes += f" to {f.largest:,}, {short(f.size)} on average"
    if f.noise:
        noise = f"standard deviation {short(f.noise**0.5)} on a {unit}'s count"
    waiting = f"{f.pending:,}, with {count(f.waiting, 'event')} that only serve the means"
    rows = [
        (True, f"{unit.capitalize()}s with a report", f"{f.bags:,}"),
        (True, "Events in these", f"{f.events:,}"),
        (True, f"Events in a {unit}", sizes),
        (f.prior is not None, "Prior (mean report)", short(f.prior or 0.0)),
        (True, "Noise of the reports", noise),
        (f.pending > 0, "Bags waiting for their report", waiting),
        (f.hidden > 0, "Bags whose report was suppressed", f"{f.hidden:,}"),
        (f.strata > 1, "Strata", f"{f.strata:,}"),
    ]
    return [[name, value] for known, name, value in rows if known]


def random_bags(story: Story) -> Section | None:
    """Are the bags random?"""
    diagnosis = story.diagnosis
    if diagnosis is None:
        return None
    parts: list[Part] = [Text(diagnosis.verdict, strong=not diagnosis.random), Text(WHY_RANDOM)]
    shown = [f for f in diagnosis.features if isfinite(f.F)][:6]
    if shown:
        title = "How features differ between bags"
        if len(diagnosis.features) > len(shown):
            title += f", the {len(shown)} most unlike chance of {len(diagnosis.features)}"
        header = [
            "feature",
            "variance between bags (1 is chance)",
            "chance of so much in random bags",
        ]
        parts.append(Grid(title, header, [[f.name, short(f.F), _chance(f.p)] for f in shown]))
    if diagnosis.notes:
        parts.append(items(*(f"{note[:1].upper()}{note[1:]}." for note in diagnosis.notes)))
    return Section("random", "Are the bags random?", parts)


def _told_columns(story: Story) -> Section | None:
    """Which columns' effects marginal tables can tell."""
    if not story.columns:
        return None
    header = ["column", "known", "expected width of its 95% interval, in logits"]
    rows = [[one.column, f"{one.share:.0%}", f"{one.width:.2f}"] for one in story.columns]
    return Section("columns", "What can these tables tell?", [
        Text(OF_COLUMNS), Grid("Effects of the columns, before any total is known", header, rows)
    ])  # fmt: skip


def _chance(p: float) -> str:
    if p < 0.001:
        return "below 0.001"
    return f"{min(p, 1):.2g}"


def compared(story: Story) -> Section | None:
    """Models compared on the same held-out bags."""
    choice = story.choice
    if choice is None or len(choice.table) < 2:
        return None
    table = [row for row in choice.table if isfinite(row.loss.value)][:MOST]
    called = brief([row.name for row in choice.table])
    best = called[choice.name]
    rows = [
        plots.Interval(called[row.name], *row.loss[:1], *row.loss[2:4], row.name == choice.name)
        for row in table
    ]
    words = f"Loss of {count(len(rows), 'model')} with intervals; {best} was chosen"
    draw = partial(plots.draw_intervals, rows=rows, x="loss, lower is better")
    height = 1.0 + 0.47 * len(rows)
    picture = picture_of(draw, words, OF_INTERVALS, name="compared", height=height)
    d = max(digits(row.loss.error) for row in table)
    header = ["", "loss", "95% interval", "worse than the chosen one by"]
    cells = []
    for row in table:
        behind = f"{value_of(row.difference)} ({range_of(row.difference)})"
        if row.name == choice.name:
            behind = "chosen"
        cells.append([called[row.name], value_of(row.loss, d), range_of(row.loss, d), behind])
    if any(row.labelled is not None for row in table):
        header.append("labels say")
        for cell, row in zip(cells, table, strict=True):
            cell.append("" if row.labelled is None else f"{row.labelled:.3f}")
    who = f"{count(choice.bags, 'bag')} that none of them learned from chose {best}."
    caption = "Loss on held-out bags, and the difference to the chosen model"
    parts: list[Part] = [Text(f"{who} {choice.reason}"), picture, Grid(caption, header, cells)]
    if len(table) < len(choice.table):
        parts.append(Text(f"{len(choice.table) - len(table)} more are not shown."))
    return Section("compared", "Methods compared", parts)


def _learning(story: Story) -> Section | None:
    """Learning curves."""
    curves = best_curves(story.curves)
    if not curves:
        return None
    series = [plots.Series(c.name, range(1, len(c.loss) + 1), c.loss) for c in curves]
    marks = [(float(c.epoch), c.loss[c.epoch - 1]) for c in curves if 0 < c.epoch <= len(c.loss)]
    levels, most = [], np.inf
    if story.trivial is not None:
        levels.append(plots.Level("always the prior", story.trivial))
        gained = story.trivial - min(float(np.nanmin(curve.loss)) for curve in curves)
        if gained > 0:  # what lies far above the trivial loss is equally useless
            most = story.trivial + 0.5 * gained
    draw = partial(
        plots.draw_curves, series=series, x="epoch", y="loss on held-out bags", levels=levels,
        marks=marks, mark="epoch that was taken", most=most,
    )  # fmt: skip
    words = f"Loss on held-out bags by epoch, for {', '.join(c.name for c in curves)}"
    parts: list[Part] = [picture_of(draw, words, OF_CURVES, name="curves")]
    if len(curves) < len(story.curves):
        parts.append(Text(f"{len(story.curves) - len(curves)} more runs are not shown."))
    return Section("curves", "Learning curves", parts)


def best_curves(curves: Sequence[LearningCurve]) -> list[LearningCurve]:
    """Of several methods one curve each (the chosen one, or the best), of one method its best
    six."""

    def order(curve: LearningCurve) -> tuple[bool, float]:
        return not curve.chosen, curve.reached

    known = [c for c in curves if len(c.loss) and np.isfinite(c.loss).any()]
    groups = dict.fromkeys(c.group for c in known)
    if len(groups) > 1:
        known = [min((c for c in known if c.group == group), key=order) for group in groups]
    kept = sorted(known, key=order)[:CURVES]
    return [c for c in known if c in kept]


def good(story: Story) -> Section | None:
    """Every metric with its interval."""
    evaluation = story.evaluation
    if evaluation is None:
        return None
    header = ["", "estimate", f"{evaluation.level:.0%} interval", "worth in labelled events",
              "what it means"]  # fmt: skip
    rows = []
    for metric, one in evaluation.estimates.items():
        worth = ""
        if one.worth is not None:
            worth = f"{one.worth:,.0f} of {evaluation.instances:,}"
        name, meaning = named(metric)
        rows.append([name, value_of(one), range_of(one), worth, meaning])
    source = f"From {count(evaluation.bags, story.unit)}"
    if story.unit == "bag":  # an event is in several cells
        source += f" with {count(evaluation.instances, 'event')}"
    source += " that the model did not learn from"
    parts: list[Part] = [Grid(source, header, rows)]
    if story.trivial is not None:
        trivial = short(story.trivial)
        parts.append(Text(f"Always predicting the prior would have a log loss of {trivial}."))
    if evaluation.notes:
        parts.append(items(*map(str, evaluation.notes)))
    return Section("good", "How good is it?", parts)


def _revealed(story: Story) -> Section | None:
    """Whether the intervals held the truth, once labels were looked at."""
    if story.evaluation is None or story.labels is None:
        return None
    rows, held = held_intervals(story.evaluation, story.labels)
    promise = "That is what intervals of 95% promise."
    if held < len(rows):
        promise = "Of many such intervals, about 5 in 100 miss."
    header = ["", "from bags", "95% interval", "labels say", "held"]
    parts = [
        Text(
            "Everything above was made without the label of a single event. Here the labels are "
            "opened."
        ),
        Grid("Estimates from bags against the truth", header, rows),
        Text(f"{held} of {len(rows)} intervals hold what the labels say. {promise}", strong=True),
    ]
    return Section("revealed", "The labels, revealed", parts)


def held_intervals(evaluation: Evaluation, labels: Evaluation) -> tuple[list[list[str]], int]:
    """Of each metric whether the interval from bags holds what labels say; and how many do.

    Parameters
    ----------
    evaluation, labels : Evaluation
        From bags, and from labels.
    """
    rows, held = [], 0
    for name, one in evaluation.estimates.items():
        if name not in labels.estimates or name == "mean_prediction":  # which needs no label
            continue
        truth = labels.estimates[name].value
        inside = one.low <= truth <= one.high
        held += inside
        answer = ("no", "yes")[inside]
        rows.append([named(name)[0], value_of(one), range_of(one), f"{truth:.3f}", answer])
    return rows, held


def calibration(story: Story) -> Section | None:
    """Predicted against observed."""
    if story.evaluation is None:
        return None
    bands = [b for b in story.evaluation.calibration if isfinite(b.observed.value)]
    if len(bands) < 2:
        return None
    off = sum(not b.observed.low <= b.prediction <= b.observed.high for b in bands)
    words = (
        f"Observed against predicted rate in {len(bands)} bands of the score; {off} intervals "
        "miss the diagonal"
    )
    draw = story.evaluation.draw
    parts = [
        picture_of(draw, words, OF_CALIBRATION, name="calibration", height=4.6),
        Text(f"{len(bands) - off} of {len(bands)} intervals touch the line."),
    ]
    return Section("calibration", "Do predictions mean what they say?", parts)


def _predictions(story: Story) -> Section | None:
    """How predictions are distributed."""
    values = story.predictions
    if values is None or len(values) == 0 or np.ndim(values) != 1:
        return None
    values = np.asarray(values, float)
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
    quantiles = f"a tenth below {low:.2g}, half below {middle:.2g}, a tenth above {high:.2g}"
    words = f"Distribution of {len(values):,} predictions: {quantiles}"
    draw, caption = partial(plots.draw_predictions, values=values), f"{words}. {OF_PREDICTIONS}"
    picture = picture_of(draw, words, caption, name="scores", height=3.4)
    return Section("scores", "What it predicts", [picture])


def _prior_over_time(story: Story) -> Section | None:
    """The prior in windows of time."""
    drift = story.drift
    if drift is None or drift.prior.ndim > 1:
        return None
    words = (
        f"The prior in {len(drift.start)} windows of time with intervals, from {drift.start[0]} "
        f"on. {drift.verdict}"
    )
    parts = [
        Text(drift.verdict, strong=bool(drift.alarm)),
        picture_of(drift.draw, words, OF_WINDOWS, name="prior"),
    ]
    return Section("prior", "The prior over time", parts)


PICTURES, ROWS = 4, 12
UNIT = "effect on the score"
OF_EFFECTS = (
    "What each column adds to the score of a prediction (the logit of a probability, or the "
    "logarithm of a count), all else being equal, less its mean; the bands are 95% intervals. "
    "An effect of 0.1 changes a probability p by about 0.1 p (1 - p). Two columns with an x "
    "between them are what both do together, beyond the sum of what each does; trees, where they "
    "are part of the model, add to this."
)


def effects(story: Story) -> Section | None:
    """A table of the columns, and pictures of the strongest."""
    strong = [one for one in story.effects if one.strength > 0]
    if not strong:
        return None
    header = ["column", "strength (standard deviation of its effect)", "lowest at", "highest at"]
    rows = [[one.name, short(one.strength), *ends_of(one)] for one in strong[:ROWS]]
    parts: list[Part] = [Text(OF_EFFECTS), Grid("The strongest columns first", header, rows)]
    parts += [_picture(i, one) for i, one in enumerate(strong[:PICTURES])]
    return Section("effects", "What each column does", parts)


def ends_of(effect: Effect) -> list[str]:
    """Where an effect is lowest and highest; of classes, for the last one."""
    value = np.reshape(effect.effect, (len(effect.at), -1))[:, -1]
    return [
        f"{plots.value_text(effect.at[i], days=effect.days)} ({value[i]:+.2f})"
        for i in (np.argmin(value), np.argmax(value))
    ]


def _picture(number: int, effect: Effect) -> Picture:
    classes = [""]
    if np.ndim(effect.effect) > 1:
        classes = [f"class {i}" for i in range(np.shape(effect.effect)[1])]
    draw = partial(plots.draw_effect, effect=effect, unit=UNIT, classes=classes)
    low, high = ends_of(effect)
    words = f"Effect of {effect.name}: lowest at {low}, highest at {high}"
    few = min(len(effect.at), ROWS)
    height = 3.4 if isinstance(effect.at[0], float) else 1.0 + 0.47 * few
    return picture_of(draw, words, name=f"effect-{number}", height=height)
