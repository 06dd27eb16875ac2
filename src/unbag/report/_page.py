"""The parts of a page, and the page as one HTML file: no script, no network, all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from math import floor, isfinite, log10
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FunctionLoader

from unbag._io import check_place, whole
from unbag._version import __version__
from unbag.metrics import Estimate


class Text(NamedTuple):
    """A paragraph.

    Parameters
    ----------
    text : str
        What it says.
    strong : bool
        Whether it is the sentence that matters most.
    """

    text: str
    strong: bool = False


class Items(NamedTuple):
    """A list of sentences; a command, where there is one, stands behind its sentence."""

    items: Sequence[tuple[str, str]]


class Grid(NamedTuple):
    """A table; the first cell of a row names it."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Picture(NamedTuple):
    """An SVG picture, made by `unbag.report._svg`, and what to see in it."""

    svg: str
    caption: str


Part = Text | Items | Grid | Picture


class Section(NamedTuple):
    """A heading and what stands below it.

    Parameters
    ----------
    name : str
        Its address in the page.
    title : str
        The heading.
    parts : sequence of Part
        Paragraphs, lists, tables and pictures.
    """

    name: str
    title: str
    parts: Sequence[Part]


class Page(NamedTuple):
    """A page.

    Parameters
    ----------
    title, line : str
        The title and a line below it.
    sections : sequence of Section
        What it says.
    """

    title: str
    line: str
    sections: Sequence[Section]


def page(title: str, line: str, *sections: Section | None) -> Page:
    """A page of the sections that have something to say."""
    return Page(title, line, [section for section in sections if section is not None])


def items(*sentences: str) -> Items:
    """A list of sentences without commands."""
    return Items([(sentence, "") for sentence in sentences])


@cache
def _templates() -> Environment:
    def read(name: str) -> str:
        return files("unbag.report").joinpath(name).read_text(encoding="utf-8")

    return Environment(
        loader=FunctionLoader(read), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def render(page: Page) -> str:
    """The page as HTML.

    >>> "&lt;b&gt;" in render(Page("A page", "", [Section("one", "One", [Text("<b>")])]))
    True
    """
    return _templates().get_template("page.html").render(page=page, version=__version__)


def render_sections(sections: Sequence[Section]) -> str:
    """Sections as a part of another page, such as a notebook.

    Parameters
    ----------
    sections : sequence of Section
        What to show.
    """
    return _templates().get_template("fragment.html").render(sections=sections)


def write_page(page: Page, path: str | Path, *, force: bool = False) -> Path:
    """Write the page, whole or not at all.

    Parameters
    ----------
    page : Page
        What to write.
    path : str or Path
        Where to.
    force : bool
        Whether to overwrite a file that exists.
    """
    path = Path(path)
    check_place(path, force=force)
    with whole(path, force=force) as temporary:
        temporary.write_text(render(page), encoding="utf-8")
    return path


def short(value: float) -> str:
    """Three digits that matter, and commas in thousands.

    >>> short(0.012345), short(1234.5), short(7), short(0.5), short(float("nan"))
    ('0.0123', '1,234', '7', '0.5', 'unknown')
    """
    if not isfinite(value):
        return "unknown"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def digits(error: float) -> int:
    """Decimals that show an error's first digit, and the second where the first is small; 4 at
    most.

    >>> digits(0.0541), digits(0.0187), digits(2.0), digits(0.0), digits(300.0)
    (2, 3, 1, 4, 0)
    """
    if not (isfinite(error) and error > 0):
        return 4
    power = floor(log10(error))
    second = error < 3 * 10.0**power
    return min(4, max(0, second - power))


def value_of(estimate: Estimate, decimals: int | None = None) -> str:
    """The value of an estimate as text.

    Parameters
    ----------
    estimate : Estimate
        A value with its error.
    decimals : int, optional
        By default as many as the error leaves.
    """
    return _shown(estimate.error, decimals, estimate.value)


def range_of(estimate: Estimate, decimals: int | None = None) -> str:
    """The interval of an estimate as text, with the same digits; see `value_of`."""
    return _shown(estimate.error, decimals, estimate.low, estimate.high)


def _shown(error: float, decimals: int | None, *values: float) -> str:
    if not all(map(isfinite, values)):
        return "unknown"
    if decimals is None:
        decimals = digits(error)
    return " to ".join(f"{value:.{decimals}f}" for value in values)
