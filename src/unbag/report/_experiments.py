"""The page on experiments: a section for each, then the claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from unbag.plots import Point, Result, draw_experiment
from unbag.report._numbers import many
from unbag.report._page import Grid, Page, Part, Section, Text, items, page
from unbag.report._svg import picture_of


class Claim(NamedTuple):
    """A claim and what the runs say of it.

    Parameters
    ----------
    claim : str
        A sentence.
    where : str
        On which data and sizes.
    verdict : str
        Whether it holds.
    numbers : str
        The numbers behind the verdict; empty where there are none.
    """

    claim: str
    where: str
    verdict: str
    numbers: str


def experiments_page(line: str, results: Sequence[Result], claims: Sequence[Claim]) -> Page:
    """The page on experiments.

    Parameters
    ----------
    line : str
        The line below the title.
    results : sequence of Result
        One for each experiment and metric.
    claims : sequence of Claim
        What the runs say of each claim.
    """
    return page(
        "Learning from totals: the experiments",
        line,
        _summary(results, claims),
        *(_section(i, result) for i, result in enumerate(results, 1)),
        _claims(claims),
        _next_steps(claims),
    )


def _summary(results: Sequence[Result], claims: Sequence[Claim]) -> Section:
    count = many(len({result.name for result in results}), "experiment")
    intro = f"{count} in which models learned from totals of bags, by method and bag size."
    parts = [Text(intro, strong=True)]
    parts += [Text(sentence) for result in results if (sentence := _best(result))]
    counts = Counter(claim.verdict for claim in claims)
    if counts:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        parts.append(Text(f"Claims: {verdicts}."))
    parts.append(
        Text(
            "Learning rate and epoch are those that are best on labelled test data, as in the "
            "paper: what is possible, rather than what a user gets who has bags only. A star: "
            "found in the last epoch or at an end of the rates, so that longer runs or other "
            "rates may do better."
        )
    )
    return Section("summary", "In short", parts)


def _best(result: Result) -> str:
    """Which method is ahead at the largest bags that several methods have."""
    by_size: dict[int, dict[str, Point]] = {}
    for name, points in result.methods.items():
        for point in points:
            by_size.setdefault(point.size, {})[name] = point
    shared = [size for size, methods in by_size.items() if len(methods) > 1]
    if not shared:
        return ""
    there = by_size[max(shared)]
    sign = {"lower": 1, "higher": -1}[result.better]
    name = min(there, key=lambda method: sign * there[method].mean)
    return (
        f"{result.name}, {result.metric}: at bags of {max(shared):,} the best is {name}, "
        f"{_cell(there[name])}."
    )


def _cell(point: Point | None) -> str:
    if point is None:
        return ""
    star = "*" * point.edge
    if point.error != point.error:
        return f"{point.mean:.3f}{star}"
    return f"{point.mean:.3f} ± {point.error:.3f}{star}"


def _section(number: int, result: Result) -> Section:
    words = f"{result.metric} by bag size for {', '.join(result.methods)}: {result.name}"
    address = f"experiment-{number}"
    caption = (
        f"{result.metric}, {result.better} is better; bands are one standard error over "
        "repetitions."
    )
    draw = partial(draw_experiment, result=result)
    picture = picture_of(draw, words, caption, name=address)
    sizes = list(result.bags)
    rows = [["number of bags", *(f"{result.bags[size]:,}" for size in sizes)]]
    for name, points in result.methods.items():
        at = {point.size: point for point in points}
        rows.append([name, *(_cell(at.get(size)) for size in sizes)])
    rows += [[name, *[f"{value:.3f}"] * len(sizes)] for name, value in result.levels.items()]
    title = f"{result.metric} by events in a bag"
    grid = Grid(title, ["", *(f"{size:,}" for size in sizes)], rows)
    parts: list[Part] = [picture, grid]
    return Section(address, f"{result.name}: {result.metric}", parts)


def _claims(claims: Sequence[Claim]) -> Section | None:
    rows = [list(claim) for claim in claims if claim.numbers]
    if not rows:
        return None
    grid = Grid("What the runs say of each claim", list(Claim._fields), rows)
    return Section("claims", "Claims", [grid])


def _next_steps(claims: Sequence[Claim]) -> Section:
    unknown = sum(not claim.numbers for claim in claims)
    sentences = [
        "On your own data the best method may be another: let held-out bags choose with unbag "
        "train --method auto."
    ]
    if unknown:
        sentences.insert(
            0, f"{unknown} claims were not looked at yet: make more runs, and report again."
        )
    return Section("next", "What to do next", [items(*sentences)])
