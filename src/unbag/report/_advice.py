"""A story in, plain words out: what was learned, how far to trust it, and what to do next."""

from __future__ import annotations

from math import ceil, isfinite

import numpy as np

from unbag.diagnosis import Diagnosis
from unbag.metrics._intervals import Estimate
from unbag.planning import Noise, best_bag_size
from unbag.report._numbers import many, range_of, short, value_of
from unbag.report._page import Items, Part, Section, Text
from unbag.report._sections import brief
from unbag.report._story import Story, named

VALID = "use --method matching or --method likelihood, which hold as long as the model does"
PLAIN = (
    "Name what the bags follow (a campaign, a day, a site) with --stratum COLUMN, if each has "
    "several bags; or draw new bags at random within it with unbag design and ask for their "
    f"totals. Where that cannot be, {VALID}."
)
FINER = (
    "Name something finer with --stratum COLUMN, or draw new bags at random within the strata "
    f"with unbag design. Where that cannot be, {VALID}."
)
LONE = (
    "Ask for two reports or more in each stratum: unbag design draws random bags within strata. "
    f"Where that cannot be, leave --stratum out and {VALID}."
)


def remedy(found: Diagnosis, *, strata: bool = False) -> str:
    """What to do about bags that are not random, in words of the command line."""
    if found.random:
        return "None is needed."
    return LONE if found.lone and not found.features else FINER if strata else PLAIN


def doubt(found: Diagnosis) -> str:
    """Why estimates from these bags are not to be trusted."""
    tested = found.features or (found.labels is not None and found.labels.p is not None)
    return "the bags are not random" if tested else "whether the bags are random cannot be seen"


def summary(story: Story) -> Section:
    """What was learned and how far to trust it."""
    warned = _warned(story)
    told = [*_learned(story), *warned, *_how_good(story), *_trust(story)]
    parts: list[Part] = [
        Text(sentence, strong=i == 0 or sentence in warned) for i, sentence in enumerate(told)
    ]
    return Section("summary", "In short", parts or [Text("Nothing was found that could be told.")])


def _warned(story: Story) -> list[str]:
    if story.diagnosis is None or story.diagnosis.random:
        return []
    return [
        f"Do not trust these numbers yet: {doubt(story.diagnosis)}, and the intervals do not know that."
    ]


def _learned(story: Story) -> list[str]:
    if story.trained:
        return [
            (
                f"A model for single events was learned from {many(story.learned, 'bag')}, of "
                "which only totals are known."
            ),
            *_chosen(story),
        ]
    if story.choice is not None:
        own = next(row.loss for row in story.choice.table if row.name == story.choice.name)
        return [
            (
                f"Of {len(story.choice.table)} models, {many(story.choice.bags, 'bag')} chose "
                f"{story.choice.name}."
            ),
            f"Its loss is {value_of(own)} (95% interval {range_of(own)}; lower is better). A "
            "model looks a little better on the bags that chose it than it is: evaluate it on "
            "other ones.",
        ]
    return (
        ["A model was judged by totals of bags alone, without the label of any single event."]
        if story.loss
        else []
    )


def _chosen(story: Story) -> list[str]:
    if story.choice is None or len(story.choice.table) < 2:
        return []
    called = brief([row.name for row in story.choice.table])
    who = f"{many(story.choice.bags, 'bag')} that were held out chose it"
    return [f"{who} among {len(story.choice.table)} candidates: {called[story.choice.name]}."]


def _how_good(story: Story) -> list[str]:
    found, loss = story.evaluation, story.loss
    if found is None or loss is None:
        return []
    one = found.estimates[loss]
    told = f"Judged by {many(found.bags, 'bag')} that it did not learn from, its {_lower(loss)} is {value_of(one)}"
    sentences = [
        f"{told} ({found.level:.0%} interval {range_of(one)}; lower is better).{_against_trivial(story, one)}"
    ]
    if "auc" in found.estimates:
        auc = found.estimates["auc"]
        low, high = (100 * min(1, max(0, v)) for v in (auc.low, auc.high))
        sentences += [
            "Shown a positive and a negative event, it ranks them rightly about "
            f"{100 * auc.value:.0f} times in 100 (between {low:.0f} and {high:.0f}; chance is 50)."
        ]
    return sentences


def _lower(metric: str) -> str:
    name = named(metric)[0]
    return name if name.isupper() else name[:1].lower() + name[1:]


def _against_trivial(story: Story, one: Estimate) -> str:
    level = story.trivial
    if level is None:
        return ""
    told = f" Predicting the prior for every event would have {short(level)}: "
    if story.diagnosis is not None and not story.diagnosis.random:
        return told + f"which is better cannot be said: {doubt(story.diagnosis)}."
    if one.high < level:
        return told + "the model clearly knows more than that."
    return told + (
        "the model is clearly worse."
        if one.low > level
        else "whether the model is better is not yet sure."
    )


def _trust(story: Story) -> list[str]:
    sentences = []
    if story.diagnosis is not None and story.diagnosis.random:
        sentences += ["The bags look random, so the intervals mean what they say."]
    if story.facts is not None and story.facts.noise:
        sentences += ["The reports carry noise; the intervals allow for it."]
    if story.drift is not None and story.drift.alarm:
        sentences += ["The prior changes with time, so yesterday's numbers may not hold tomorrow."]
    return sentences


def next_steps(story: Story) -> Section | None:
    """What to do next."""
    found = [
        *_fix_tables(story), *_randomise(story), *_more_bags(story), *_undecided(story), *_recalibrate(story),
        *_longer(story), *_drift(story), *_other_size(story), *_wait(story), *_use(story),
    ]  # fmt: skip
    return Section("next", "What to do next", [Items(found)]) if found else None


def _fix_tables(story: Story) -> list[tuple[str, str]]:
    refused = () if story.told is None else story.told.refused
    return [("Repair what was refused, then run the same command again.", "")] if refused else []


def _randomise(story: Story) -> list[tuple[str, str]]:
    if story.diagnosis is None or story.diagnosis.random:
        return []
    strata = story.facts is not None and story.facts.strata > 1
    text = f"First of all, {doubt(story.diagnosis)}. {remedy(story.diagnosis, strata=strata)}"
    return [(text, "unbag design EVENTS --id ID --stratum campaign --size 64 --out bags.parquet")]


def _more_bags(story: Story) -> list[tuple[str, str]]:
    """An interval halves with four times the bags."""
    found, loss = story.evaluation, story.loss
    if found is None or loss is None:
        return []
    one, level = found.estimates[loss], story.trivial
    if not isfinite(one.high - one.low):
        return [("There are too few bags for an interval: get more reports.", "")]
    half = (one.high - one.low) / 2
    halved = (
        f"4 times more bags ({4 * found.bags:,}) would halve the interval of the {_lower(loss)}"
    )
    if level is None or one.high < level - half:
        return []
    if one.value >= level:
        return [
            ("These bags do not show that the model is better than predicting the prior. "
             f"{halved}; other features or another method may help more.", "")
        ]  # fmt: skip
    times = ceil((half / (level - one.value)) ** 2)
    if one.high < level:
        return [(f"The interval is wide for what was gained: {halved}.", "")]
    return [
        (f"The interval is too wide to say that the model beats the prior: about {times} times as many held-out bags "
         f"would settle it, if the estimate is right; {halved}.", "")
    ]  # fmt: skip


def _undecided(story: Story) -> list[tuple[str, str]]:
    if story.choice is None:
        return []
    others = [
        row
        for row in story.choice.table
        if row.name != story.choice.name and isfinite(row.difference.low)
    ]
    close = [row for row in others if row.difference.low <= 0]
    if not close:
        return []
    text = (
        f"{len(close)} of the {many(len(others), 'other model')} cannot be told from the chosen "
        "one by these bags. If it matters which, hold out more bags; else the choice is as good "
        "as any."
    )
    return [(text, "")]


def _recalibrate(story: Story) -> list[tuple[str, str]]:
    gap = story.evaluation.estimates.get("prediction_minus_report") if story.evaluation else None
    if gap is None or not isfinite(gap.low) or gap.low <= 0 <= gap.high:
        return []
    way = "high" if gap.value > 0 else "low"
    text = f"Predictions are too {way} on average, by {value_of(gap).lstrip('-')}. Recalibrate them in Python:"
    return [(text, "unbag.recalibrate(model, bags).wrap(model)")]


def _longer(story: Story) -> list[tuple[str, str]]:
    chosen = story.choice.model if story.choice is not None else None
    history = getattr(chosen, "history", {}).get("held_out")
    if history is None or chosen is None or chosen.epoch < len(history):
        return []
    return [(f"The chosen run was still getting better in its last epoch, {chosen.epoch}: allow more.",
             f"--epochs {2 * chosen.epoch}")]  # fmt: skip


def _drift(story: Story) -> list[tuple[str, str]]:
    if story.drift is None or not story.drift.alarm:
        return []
    return [
        (
            (
                "The prior changes with time: learn again from recent data, and evaluate on the "
                "most recent bags."
            ),
            "",
        )
    ]


def _other_size(story: Story) -> list[tuple[str, str]]:
    """With noise there is a best size of bags; without, the smaller the better."""
    facts, values = story.facts, story.predictions
    if (
        facts is None
        or facts.prior is None
        or not 0 < facts.prior < 1
        or values is None
        or not facts.noise
    ):
        return []
    p, h = facts.prior, np.clip(np.asarray(values, float), 1e-6, 1 - 1e-6)
    score = np.log(h / (1 - h))
    if not score.var() > 1e-9:
        return []
    best = best_bag_size(Noise(p * (1 - p), facts.noise, float(-score.mean()), float(score.var())))
    command = f"unbag plan --rate {p:.2g} --noise {facts.noise:.6g} --score-sd {score.std():.2g} --events {facts.events}"
    if 0.5 <= best / facts.size <= 2:
        return []
    way = "larger" if best > facts.size else "smaller"
    text = f"At this noise {way} bags, of about {best:,.0f} events, would give narrower intervals."
    return [(text, command)]


def _wait(story: Story) -> list[tuple[str, str]]:
    pending = 0 if story.facts is None else story.facts.pending
    if not pending:
        return []
    which = (
        "1 bag waits for its report" if pending == 1 else f"{pending:,} bags wait for their reports"
    )
    return [(f"{which}: run again when more have come.", "")]


def _use(story: Story) -> list[tuple[str, str]]:
    if (story.loss is None and story.choice is None) or (
        story.diagnosis is not None and not story.diagnosis.random
    ):
        return []
    return [("Predict new events.", "unbag predict MODEL EVENTS --out scores.parquet")]
