"""Refusals as data: which rule is broken, by whom, how often, and what to do about it.

A rule is broken in one place and reported in two: Python renders a refusal with its arguments
(`noise=`), the command line with its options (`--noise`). A remedy names them in braces,
`{noise}` or `{kind:total}`, and each side spells them in its own way; nothing rewrites the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

PLURALS = {"stratum": "strata", "set of bags": "sets of bags"}
# what a terminal would obey in place of showing it, and marks that turn the reading direction
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
NEAR = 0.65  # how alike two names are that are suggested for each other: bga and bag are 0.67
OPTION = re.compile(r"\{(\w+)(?::([^{}]+))?\}")

Spelling = Callable[[str, str | None], str]
# what verbs of the command line are in Python
DOORS = {"check": "check_tables", "design": "random_bags(..., stratum=...)"}


def python_spelling(name: str, value: str | None) -> str:
    """An argument as Python writes it.

    Parameters
    ----------
    name : str
        Of the argument.
    value : str or None
        What it is set to.

    >>> python_spelling("noise", None), python_spelling("kind", "total")
    ('noise=', "kind='total'")
    """
    if name in DOORS:
        return DOORS[name]
    if value is None:
        return f"{name}="
    if value in ("True", "False", "None") or value.replace(".", "").isdigit():
        return f"{name}={value}"
    return f"{name}={value!r}"


def option_spelling(name: str, value: str | None) -> str:
    """An argument as the command line writes it.

    >>> option_spelling("noise", None), option_spelling("wrong_sizes", "leave_out")
    ('--noise', '--wrong-sizes leave_out')
    """
    if name in ("check", "design"):
        return f"unbag {name}"
    option = f"--{name.replace('_', '-')}"
    if value in (None, "True"):
        return option
    return f"{option} {value}"


def visible(text: str, keep: str = "") -> str:
    """A text in which control characters are written out, so that an id cannot steer a terminal.

    Parameters
    ----------
    text : str
        From a user's tables, say.
    keep : str
        Control characters that stay.

    >>> print(visible("bag \\x1b[2J"))
    bag \\u001b[2J
    """

    def written(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else f"\\u{ord(match[0]):04x}"

    return CONTROL.sub(written, text)


def spelled(text: str, spelling: Spelling = python_spelling) -> str:
    """A text with the options in its braces spelled out.

    >>> spelled("Say {kind:total}.")
    "Say kind='total'."
    """
    return OPTION.sub(lambda match: spelling(match[1], match[2]), text)


@dataclass(frozen=True)
class Refusal:
    """A broken rule.

    Parameters
    ----------
    rule : str
        What must hold: "A report must be finite".
    offender : str
        Who breaks it first, and how: "bag 17 has nan".
    remedy : str
        What to do, with options in braces: "Declare its variance with {noise}."
    count : int
        How many break it; 0 where there is only one to speak of.
    thing : str
        What is counted: "bag", "row".
    """

    rule: str
    offender: str
    remedy: str
    count: int = 0
    thing: str = ""

    def render(self, spelling: Spelling = python_spelling) -> str:
        """The refusal as a sentence: the rule, the offender, how many, the remedy."""
        remedy, offender = spelled(self.remedy, spelling), visible(self.offender)
        return f"{self.rule}: {offender}{self._number()}. {remedy}".rstrip()

    def _number(self) -> str:
        if not self.count:
            return ""
        if self.count == 1:
            return f" (1 such {self.thing})"
        return f" ({self.count:,} such {PLURALS.get(self.thing, self.thing + 's')})"

    def __str__(self) -> str:
        return self.render()


class Refused(ValueError):
    """Input that breaks one rule or more; `refusals` has them as data.

    >>> from unbag._rules import broken
    >>> error = broken("A fraction must lie between 0 and 1", "2 given", "Use 0.8.")
    >>> str(error)
    'A fraction must lie between 0 and 1: 2 given. Use 0.8.'
    """

    def __init__(self, *refusals: Refusal) -> None:
        self.refusals = refusals
        super().__init__(*refusals)

    def render(self, spelling: Spelling = python_spelling) -> str:
        """The first refusal, and how many more there are."""
        further = len(self.refusals) - 1
        text = self.refusals[0].render(spelling)
        if further == 0:
            return text
        problems = "problem" + "s" * (further > 1)
        return f"{text} ({further} further {problems}: {spelling('check', None)} lists all.)"

    def __str__(self) -> str:
        return self.render()


Refused.__module__ = "unbag"  # tracebacks show the public name


def broken(rule: str, offender: str, remedy: str) -> Refused:
    """The error to raise for a rule with a single offender.

    Parameters
    ----------
    rule : str
        What must hold.
    offender : str
        Who breaks it, and how.
    remedy : str
        What to do, with options in braces.

    >>> raise broken("A cut must have times", "neither given", "Name {as_of} or {time}.")
    Traceback (most recent call last):
    unbag.Refused: A cut must have times: neither given. Name as_of= or time=.
    """
    return Refused(Refusal(rule, offender, remedy))


def nearest(name: str, names: Iterable[str]) -> str:
    """A question that suggests the nearest name, or nothing.

    Parameters
    ----------
    name : str
        What was given.
    names : iterable of str
        What exists.

    >>> nearest("campain", ["campaign", "sales"])
    "Did you mean 'campaign'? "
    """
    known = list(names)
    spellings = (name, name.lower())
    close = [m for s in spellings for m in get_close_matches(s, known, n=1, cutoff=NEAR)]
    if not close:
        return ""
    return f"Did you mean {close[0]!r}? "


def refuse(
    rule: str,
    bad: Any,
    *,
    thing: str,
    given: Any,
    remedy: str,
    names: Sequence[Any] | np.ndarray | None = None,
) -> None:
    """Raise when any entry of `bad` is true, naming the first offender.

    Parameters
    ----------
    rule : str
        What must hold.
    bad : array of bool
        Who breaks it.
    thing : str
        What an entry is: "bag", "row".
    given : array
        What each entry has.
    remedy : str
        What to do, with options in braces.
    names : sequence, optional
        What the user calls each entry; by default its number.

    >>> refuse("A report must be finite", np.array([False, True]), thing="bag",
    ...        given=np.array([0.5, np.nan]), remedy="Fix the export.")
    Traceback (most recent call last):
    unbag.Refused: A report must be finite: bag 1 has nan (1 such bag). Fix the export.
    """
    bad = np.asarray(bad)
    if not bad.any():
        return
    first = int(np.argmax(bad))
    name = first
    if names is not None:
        name = names[first]
    offender = f"{thing} {name} has {_show(np.asarray(given)[first])}"
    raise Refused(Refusal(rule, offender, remedy, int(bad.sum()), thing))


def two_bags(
    count: np.ndarray | int, *, pool: np.ndarray | float = 0.0, of: str = "A batch"
) -> None:
    """Refuse a lone bag, or a lone bag in a stratum: no other bag's mean exists to centre it.

    Parameters
    ----------
    count : int or array of int
        Number of bags, of each stratum.
    pool : float or array of float
        Number of further instances, of each stratum.
    of : str
        What holds the bags: "A batch".
    """
    count = np.atleast_1d(count)
    lone = (count < 2) & ~(np.broadcast_to(pool, count.shape) > 0)
    if not lone.any():
        return
    if len(count) == 1:
        raise broken(
            f"{of} must hold at least two bags, because each bag is centred by the mean of the "
            "others",
            f"{int(count[0])} given",
            "Give more bags, or a pool of further instances.",
        )
    refuse(
        "A stratum must hold at least two bags, because each bag is centred by the mean of the "
        "others",
        lone,
        thing="stratum",
        given=count,
        remedy="Merge small strata, or cut them into random sub-bags; where a stratum has one "
        "report only, leave the strata out and train by matching or likelihood.",
    )


VALID = (
    "{method:matching} or {method:likelihood}, which stay valid when the model holds across bags"
)
LONE = (
    "Ask for reports of random sub-bags, two or more for each stratum; where that cannot be, use "
    f"{VALID}."
)


def two_reports(
    stratum: np.ndarray | None, observed: np.ndarray, *, names: np.ndarray | None = None
) -> None:
    """Refuse an unbiased evaluation where a stratum has one report only.

    Parameters
    ----------
    stratum : array of int, optional
        Of each bag.
    observed : array of bool
        Whether the report of each bag is.
    names : array, optional
        What the user calls each stratum.
    """
    s = stratum
    if s is None:
        s = np.zeros(len(observed), int)
    count = np.bincount(s, weights=observed).astype(int)
    refuse(
        "An unbiased evaluation must have at least two reports in each stratum",
        (count < 2) & (np.bincount(s) > 0),
        thing="stratum",
        given=count,
        names=names,
        remedy=LONE,
    )


def rows(actual: int, expected: int, *, thing: str, of: str) -> None:
    """Refuse an array whose length does not fit.

    Parameters
    ----------
    actual, expected : int
        The two lengths.
    thing : str
        What the array is called.
    of : str
        What it must have one entry for: "bag", "row".
    """
    if actual != expected:
        raise broken(
            f"{thing} must have one entry for each {of}",
            f"{actual} given for {expected} {of}s",
            f"Give them in the order of the {of}s.",
        )


def refuse_probabilities(score: np.ndarray) -> None:
    """Refuse what looks like probabilities where scores are wanted.

    Parameters
    ----------
    score : numpy.ndarray
        Of some rows.
    """
    low, high = score.min(), score.max()
    if 0 <= low < high <= 1:
        raise broken(
            "Scores must be logits",
            f"all of {len(score)} values lie between 0 and 1, like probabilities",
            "Say {scale:probability}, or {scale:score} if they are logits all the same.",
        )


ROUNDING = 1e-6  # single precision may put a probability so far beyond 0 and 1


def check_probabilities(probability: np.ndarray) -> None:
    """Refuse what cannot be probabilities.

    Parameters
    ----------
    probability : numpy.ndarray
        What is said to be.
    """
    beyond = (probability < -ROUNDING) | (probability > 1 + ROUNDING)
    if beyond.any():
        raise broken(
            "A probability must lie between 0 and 1",
            f"{probability[beyond][0]:.6g} given ({beyond.sum():,} such)",
            "Leave {scale} out if these are scores.",
        )


def lacks_offset(column: str | None = None) -> Refused:
    """The error of a prediction without the offset that a model learned with: it would be that of
    offset 0, which no row may have.

    Parameters
    ----------
    column : str, optional
        What the offset was made from, where that is known.
    """
    source = "" if column is None else f"rows as a table with the column {column!r}, or "
    return broken(
        "A model that learned with an old score or exposure must have that of each row to predict",
        "none given",
        f"Give {source}{{offset}}: old scores as logits (or log rates), exposures as logarithms.",
    )


def one_of(
    thing: str, value: Any, known: Iterable[Any], remedy: str = "Choose one of these."
) -> None:
    """Refuse a choice that does not exist.

    Parameters
    ----------
    thing : str
        What is chosen: "A loss".
    value : object
        What was given.
    known : iterable
        What may be given.
    remedy : str
        What to do, with options in braces.

    >>> one_of("A loss", "cube", ["log", "square"])
    Traceback (most recent call last):
    unbag.Refused: A loss must be one of log, square: 'cube' given. Choose one of these.
    """
    known = tuple(known)
    if value not in known:
        question = nearest(str(value), known)
        rule = f"{thing} must be one of {', '.join(known)}"
        raise broken(rule, f"{value!r} given", f"{question}{remedy}")


def _show(value: Any) -> str:
    if np.ndim(value) > 0:
        return np.array2string(np.asarray(value), precision=6, threshold=8, separator=", ")
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return str(value)
