"""Results of experiments and verdicts on claims in, their page out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unbag.report._figures import Level, Series, draw_lines
from unbag.report._numbers import many
from unbag.report._page import Cells, Figure, Page, Part, Section, Text, items
from unbag.report._sections import glossary


class Point(NamedTuple):
    """The best result of a method at one bag size: mean and standard error over repetitions (NaN
    for one).

    edge : whether more may be had, because it was found at an end of the grid; a star says so.
    """

    size: int
    mean: float
    error: float
    edge: bool = False


class Result(NamedTuple):
    """One experiment and metric. methods : points of each method, by size. levels : lines across,
    as of labels."""

    title: str
    metric: str
    better: str
    bags: Mapping[int, int]
    methods: Mapping[str, Sequence[Point]]
    levels: Mapping[str, float]


class Claim(NamedTuple):
    """A sentence, where it was looked at, the verdict, and the numbers behind it."""

    claim: str
    where: str
    verdict: str
    numbers: str


def experiments_page(line: str, results: Sequence[Result], claims: Sequence[Claim]) -> Page:
    """The page on experiments: a section for each, then the claims."""
    told = [_section(i, result) for i, result in enumerate(results)]
    parts = [_summary(results, claims), *told, _claims(claims), _next_steps(claims), glossary()]
    return Page(
        "Learning from totals: the experiments", line, [part for part in parts if part is not None]
    )


def _summary(results: Sequence[Result], claims: Sequence[Claim]) -> Section:
    verdicts = [claim.verdict for claim in claims]
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    count = many(len({result.title for result in results}), "experiment")
    told = [
        Text(
            f"{count} in which models learned from totals of bags, by method and bag size.",
            strong=True,
        )
    ]
    told += [Text(sentence) for result in results if (sentence := _best(result))]
    if counts:
        told += [
            Text(f"Claims: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}.")
        ]
    told += [
        Text(
            "Learning rate and epoch are those that are best on labelled test data, as in the "
            "paper: what is possible, rather than what a user gets who has bags only. A star: "
            "found in the last epoch or at an end of the rates, so that longer runs or other "
            "rates may do better."
        )
    ]
    return Section("summary", "In short", told)


def _best(result: Result) -> str:
    """Which method is ahead at the largest bags that several methods have."""
    sizes = {p.size for points in result.methods.values() for p in points}
    at = lambda size: {
        m: p for m, points in result.methods.items() for p in points if p.size == size
    }
    shared = [size for size in sorted(sizes) if len(at(size)) > 1]
    if not shared:
        return ""
    there = at(shared[-1])
    sign = 1 if result.better == "lower" else -1
    name = min(there, key=lambda method: sign * there[method].mean)
    return f"{result.title}, {result.metric}: at bags of {shared[-1]:,} the best is {name}, {_told(there[name])}."


def _told(point: Point) -> str:
    error = f" ± {point.error:.3f}" if point.error == point.error else ""
    return f"{point.mean:.3f}{error}{'*' if point.edge else ''}"


def _section(number: int, result: Result) -> Section:
    series = [
        Series(name, [p.size for p in points], [p.mean for p in points], *_band(points))
        for name, points in result.methods.items()
        if points
    ]
    levels = [Level(name, value) for name, value in result.levels.items()]
    words = f"{result.metric} by bag size for {', '.join(result.methods)}: {result.title}"
    svg = draw_lines(
        series, words, x="events in a bag", y=result.metric, levels=levels, powers=True, dots=True
    )
    caption = f"{result.metric}, {result.better} is better; bands are one standard error over repetitions."
    sizes = list(result.bags)
    by_size = {name: {p.size: p for p in points} for name, points in result.methods.items()}
    rows = [["number of bags", *(f"{result.bags[size]:,}" for size in sizes)]]
    rows += [
        [name, *(_told(at[s]) if s in at else "" for s in sizes)] for name, at in by_size.items()
    ]
    rows += [[name, *([f"{value:.3f}"] * len(sizes))] for name, value in result.levels.items()]
    parts: list[Part] = [
        Figure(svg, caption),
        Cells(f"{result.metric} by events in a bag", ["", *(f"{size:,}" for size in sizes)], rows),
    ]
    return Section(f"experiment-{number + 1}", f"{result.title}: {result.metric}", parts)


def _band(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    error = [p.error if p.error == p.error else 0.0 for p in points]
    pairs = list(zip(points, error, strict=True))
    return [p.mean - e for p, e in pairs], [p.mean + e for p, e in pairs]


def _claims(claims: Sequence[Claim]) -> Section | None:
    seen = [claim for claim in claims if claim.numbers]
    if not seen:
        return None
    header = ["claim", "where", "verdict", "numbers"]
    return Section(
        "claims",
        "Claims",
        [Cells("What the runs say of each claim", header, [list(c) for c in seen])],
    )


def _next_steps(claims: Sequence[Claim]) -> Section:
    open_ones = [claim for claim in claims if not claim.numbers]
    told = (
        [f"{len(open_ones)} claims were not looked at yet: make more runs, and report again."]
        if open_ones
        else []
    )
    told += [
        "On your own data the best method may be another: let held-out bags choose with unbag train --method auto."
    ]
    return Section("next", "What to do next", [items(*told)])
