"""What to make of a story: what was learned, how far to trust it, what more bags would bring, and
what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np

from unbag._rules import option_spelling, spelled
from unbag.diagnosis import Diagnosis
from unbag.planning import Noise, best_bag_size, interval_width
from unbag.report._page import Grid, Items, Section, Text, range_of, short, value_of
from unbag.report._story import Story, brief
from unbag.tables import count

OF_OUTLOOK = (
    "How narrow the interval of the loss would be with other reports on the same sort of events, "
    "by the variance of an estimate from bags: it grows with the size of the bags and with the "
    "noise of their counts, and falls with the number of events."
)
BY_COUNTS = (
    "How good single predictions are, these bags cannot tell: {reason}. The model is judged by how "
    "probable it makes the reports of bags that it did not learn from, which needs no random bags."
)


def doubt(diagnosis: Diagnosis) -> str:
    """Why estimates from these bags are not to be trusted."""
    labels = diagnosis.labels
    if diagnosis.features or (labels is not None and labels.p is not None):
        return "the bags are not random"
    return "whether the bags are random cannot be seen"


def summary(story: Story) -> Section:
    """What was learned and how far to trust it."""
    warning = []
    if story.biased:
        reason = doubt(story.diagnosis)  # pyright: ignore[reportArgumentType]
        warning = [f"Do not trust these numbers yet: {reason}, and the intervals do not know that."]
        if "gain_over_prior" in story.estimates:
            warning = [BY_COUNTS.format(reason=reason)]
    said = ()
    if story.verdict is not None:  # what to do next, its last sentence, has a section of its own
        said = story.verdict.sentences[:-1]
    sentences = [*said[:1], *_learned(story), *warning, *said[1:], *_trust(story)]
    parts = [
        Text(sentence, strong=i == 0 or sentence in warning) for i, sentence in enumerate(sentences)
    ]
    return Section("summary", "In short", parts or [Text("There is nothing to report.")])


def _learned(story: Story) -> list[str]:
    choice = story.choice
    if story.trained:
        bags = count(story.learned, story.unit)
        sentences = [
            f"A model for single events was learned from {bags}, of which only totals are known."
        ]
        if choice is not None and len(choice.table) > 1:
            best = brief([row.name for row in choice.table])[choice.name]
            sentences.append(
                f"{count(choice.bags, 'bag')} that were held out chose it among "
                f"{len(choice.table)} candidates: {best}."
            )
        return sentences
    if choice is not None:
        own = next(row.loss for row in choice.table if row.name == choice.name)
        return [
            f"Of {len(choice.table)} models, {count(choice.bags, 'bag')} chose {choice.name}.",
            f"Its loss is {value_of(own)} (95% interval {range_of(own)}; lower is better). A "
            "model looks a little better on the bags that chose it than it is: evaluate it on "
            "other ones.",
        ]
    if story.loss is not None:
        return ["A model was judged by totals of bags alone, without the label of any event."]
    return []


def _trust(story: Story) -> Iterator[str]:
    if story.diagnosis is not None and story.diagnosis.random:
        yield "The bags look random, so the intervals mean what they say."
    if story.facts is not None and story.facts.noise:
        yield "The reports carry noise; the intervals allow for it."
    if story.drift is not None and story.drift.alarm:
        yield "The prior changes with time, so yesterday's numbers may not hold tomorrow."


def noise_of(story: Story) -> Noise | None:
    """What the error of an estimate depends on, at the model's own predictions; None where it is
    not known."""
    facts, values = story.facts, story.predictions
    if facts is None or facts.prior is None or values is None or not 0 < facts.prior < 1:
        return None
    h = np.clip(np.asarray(values, float), 1e-6, 1 - 1e-6)
    score = np.log(h / (1 - h))
    if not score.var() > 1e-9:
        return None
    p = facts.prior
    return Noise(p * (1 - p), facts.noise, float(-score.mean()), float(score.var()))


def outlook(story: Story) -> Section | None:
    """The half-width of the interval as it is, and with more bags, less noise or other sizes."""
    noise, evaluation, one = noise_of(story), story.evaluation, story.estimates.get("log_loss")
    if noise is None or evaluation is None or one is None or not isfinite(one.high - one.low):
        return None
    n, size = evaluation.instances, evaluation.instances / evaluation.bags
    ways = [("as it is", n, size, noise), ("4 times as many bags", 4 * n, size, noise)]
    if noise.report:
        quarter = noise._replace(report=noise.report / 4)
        ways.append(("half the standard deviation of the noise", n, size, quarter))
        ways.append(("no noise", n, size, noise._replace(report=0.0)))
    ways.append((f"as many events in bags of {size / 2:,.0f}", n, size / 2, noise))
    best = best_bag_size(noise)
    if noise.report and isfinite(best):
        ways.append((f"as many events in bags of {best:,.0f}, the best size", n, best, noise))
    scale = (one.high - one.low) / 2 / interval_width(n, size, noise)
    rows = [
        [name, f"± {short(scale * interval_width(events, k, other))}", f"{events / k:,.0f}"]
        for name, events, k, other in ways
    ]
    grid = Grid(
        "Interval of the log loss, by the reports", ["reports", "95% interval", "bags"], rows
    )
    return Section("outlook", "What would more bags or less noise bring?", [Text(OF_OUTLOOK), grid])


def next_steps(story: Story) -> Section | None:
    """What to do next."""
    advice = list(_advice(story))
    if not advice:
        return None
    return Section("next", "What to do next", [Items(advice)])


def _advice(story: Story) -> Iterator[tuple[str, str]]:
    """Sentences, each with a command or nothing, the most urgent first."""
    choice, facts = story.choice, story.facts
    if story.tables is not None and story.tables.refused:
        yield "Repair what was refused, then run the same command again.", ""
    if story.diagnosis is not None and not story.diagnosis.random:
        remedy = spelled(story.diagnosis.advice, option_spelling)
        command = "unbag design EVENTS --id ID --stratum campaign --size 64 --out bags.parquet"
        yield f"First of all, {doubt(story.diagnosis)}. {remedy}", command
    if story.verdict is not None and story.verdict.step in ("more", "other"):
        text = story.verdict.sentences[-1].removeprefix("Next: ")
        yield text[:1].upper() + text[1:], ""
    if choice is not None:
        low = [row.difference.low for row in choice.table if row.name != choice.name]
        known = [one for one in low if isfinite(one)]
        close = sum(one <= 0 for one in known)
        if close:
            others = count(len(known), "other model")
            text = (
                f"{close} of the {others} cannot be told from the chosen one by these bags. If it "
                "matters which, hold out more bags; else the choice is as good as any."
            )
            yield text, ""
    gap = story.estimates.get("prediction_minus_report")
    if gap is not None and isfinite(gap.low) and not gap.low <= 0 <= gap.high:
        off = f"too {('low', 'high')[gap.value > 0]} on average, by {value_of(gap).lstrip('-')}"
        command = "unbag recalibrate MODEL EVENTS REPORTS --out better.unbag"
        yield f"Predictions are {off}. Correct them by newer reports:", command
    chosen: Any = getattr(choice, "model", None)
    history = getattr(chosen, "history", {}).get("held_out", ())
    if len(history) and chosen.epoch >= len(history):
        best = f"was still getting better in its last epoch, {chosen.epoch}"
        yield f"The chosen run {best}: allow more.", f"--epochs {2 * chosen.epoch}"
    if story.drift is not None and story.drift.alarm:
        text = "The prior changes with time: learn again from recent data, and evaluate on the most"
        yield f"{text} recent bags.", ""
    yield from _other_size(story)
    if facts is not None and facts.pending:
        which = f"{facts.pending:,} bags wait for their reports"
        if facts.pending == 1:
            which = "1 bag waits for its report"
        yield f"{which}: run again when there are more.", ""
    if not story.biased and not (story.loss is None and choice is None):
        yield "Predict new events.", "unbag predict MODEL EVENTS --out scores.parquet"


def _other_size(story: Story) -> Iterator[tuple[str, str]]:
    """With noise there is a best size of bags; without, the smaller the better."""
    facts, noise = story.facts, noise_of(story)
    if facts is None or noise is None or not noise.report:
        return
    best = best_bag_size(noise)
    if 0.5 <= best / facts.size <= 2:
        return
    way = ("smaller", "larger")[bool(best > facts.size)]
    text = f"At this noise {way} bags, of about {best:,.0f} events, would give narrower intervals."
    known = f"--rate {facts.prior:.2g} --noise {facts.noise:.6g}"
    spread = f"--score-sd {noise.var_f2**0.5:.2g} --events {facts.events}"
    yield text, f"unbag plan {known} {spread}"
