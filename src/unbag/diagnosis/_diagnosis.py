"""A `Diagnosis`: the verdict on bags, and how it prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unbag._lazy import as_html
from unbag._rules import Spelling, python_spelling, spelled
from unbag.diagnosis._bias import Bias, Dispersion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 8


class BagsNotRandom(UserWarning):
    """The bags are not random, and what is learned or estimated from them may be badly biased."""


class Feature(NamedTuple):
    """How one feature differs between bags.

    Parameters
    ----------
    name : str
        Of the feature.
    F : float
        Variance between bags against that within; about 1 for random bags.
    p : float
        Chance of this or more when bags are random, corrected for the number of features.
    intraclass : float
        Intraclass correlation, the share of the feature's variance that lies between bags.
    """

    name: str
    F: float
    p: float
    intraclass: float

    @property
    def constant(self) -> bool:
        """Whether the feature is the same within every bag, up to rounding; F is then no number
        that says anything."""
        return self.F > 1e9

    @property
    def spread(self) -> str:
        """How much more it varies between bags than within, in words."""
        if self.constant:
            return "the same in all rows of a bag"
        return f"F = {self.F:.3g}"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """Are the bags random, and what follows.

    Parameters
    ----------
    verdict : str
        The answer in one sentence.
    random : bool
        Whether the bags look random, or so nearly that the bias to expect is negligible; false
        where nothing tells.
    advice : str
        What to do, with options in braces; `remedy` is the same in words of Python.
    features : tuple of Feature
        Of every feature (and of f2 when scores were given) how it differs between bags, the worst
        first.
    expected_bias : Bias or None
        Of the unbiased estimates from these bags; None when there can be no such estimate.
    labels : Dispersion or None
        Over-dispersion of the reports, a second opinion; None when there can be none.
    lone : int
        How many strata have fewer than two reports.
    notes : tuple of str
        What was left out or assumed.
    means : array (bags,)
        Of each bag the worst feature's mean in units of what chance allows, for the picture.
    """

    verdict: str
    random: bool
    advice: str
    features: tuple[Feature, ...] = ()
    expected_bias: Bias | None = None
    labels: Dispersion | None = None
    lone: int = 0
    notes: tuple[str, ...] = ()
    means: np.ndarray = field(default_factory=lambda: np.empty(0))

    _repr_html_ = as_html

    def __repr__(self) -> str:
        return f"Diagnosis({self.verdict})"

    @property
    def remedy(self) -> str:
        """What to do, in words of Python."""
        return spelled(self.advice)

    def __str__(self) -> str:
        return self.render()

    def render(self, spelling: Spelling = python_spelling) -> str:
        """All of it, in the words of Python or of the command line."""
        lines = [self.verdict, f"Remedy: {spelled(self.advice, spelling)}"]
        lines += _bias_lines(self.expected_bias) + _label_lines(self.labels)
        if self.features:
            head = f"{'feature':<30} {'F':>9} {'corrected p':>12} {'intraclass correlation':>23}"
            lines.append(head)
        for f in self.features[:SHOWN]:
            p = f"{f.p:.2g}"
            if f.p < 1e-15:
                p = "< 1e-15"
            F = "no spread" if f.constant else f"{f.F:.3f}"
            lines.append(f"{f.name[:30]:<30} {F:>9} {p:>12} {f.intraclass:>23.5f}")
        if len(self.features) > SHOWN:
            lines.append(f"... and {len(self.features) - SHOWN} more")
        return "\n".join(lines + [f"Note: {note}." for note in self.notes])

    def plot(self) -> Figure:
        """The F statistics, and the bag means of the worst feature against chance, as a figure."""
        from unbag.plots import draw_bag_means, draw_features, new_figure

        figure = new_figure(10, 4.2)
        figure.suptitle(fill(self.verdict, 120), fontsize=9)
        if self.features:
            left, right = figure.subplots(1, 2)
            draw_features(left, [f.name for f in self.features], [f.F for f in self.features])
            draw_bag_means(right, self.means, self.features[0].name)
        return figure

    def picture(self, path: str | Path) -> None:
        """Write the figure to a file."""
        self.plot().savefig(path)


def _bias_lines(bias: Bias | None) -> list[str]:
    if bias is None:
        return []
    lines = [
        f"Bias to expect of {bias.unit}: about {bias.bound:.3g}; up to {bias.limit:.3g} cannot be "
        "excluded."
    ]
    if bias.direct is not None:
        lines.append(
            f"Estimated directly, if the model is right: {bias.direct:+.3g} (standard error "
            f"{bias.error:.2g}); anchored at these scores: {bias.anchored:+.3g} "
            f"({bias.anchored_error:.2g})."
        )
    return lines


def _label_lines(labels: Dispersion | None) -> list[str]:
    if labels is None or not np.isfinite(labels.ratio):
        return []
    remarks = ["not tested"]
    if labels.p is not None:
        remarks = [f"p = {labels.p:.2g}"]
    if labels.assumed:
        remarks.append(f"assumed: {labels.assumed}")
    ratio = f"The reports vary {labels.ratio:.3g} times as much as in random bags"
    return [f"{ratio} ({'; '.join(remarks)})."]
