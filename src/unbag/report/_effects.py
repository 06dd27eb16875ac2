"""What each column adds to the score of a prediction, with intervals."""

from __future__ import annotations

from functools import partial

import numpy as np

from unbag.learners import Effect
from unbag.plots import draw_effect, value_text
from unbag.report._numbers import short
from unbag.report._page import Grid, Part, Picture, Section, Text
from unbag.report._story import Story
from unbag.report._svg import picture_of

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
        f"{value_text(effect.at[i], days=effect.days)} ({value[i]:+.2f})"
        for i in (np.argmin(value), np.argmax(value))
    ]


def _picture(number: int, effect: Effect) -> Picture:
    classes = [""]
    if np.ndim(effect.effect) > 1:
        classes = [f"class {i}" for i in range(np.shape(effect.effect)[1])]
    draw = partial(draw_effect, effect=effect, unit=UNIT, classes=classes)
    low, high = ends_of(effect)
    words = f"Effect of {effect.name}: lowest at {low}, highest at {high}"
    few = min(len(effect.at), ROWS)
    height = 3.4 if isinstance(effect.at[0], float) else 1.0 + 0.47 * few
    return picture_of(draw, words, name=f"effect-{number}", height=height)
