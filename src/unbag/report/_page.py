"""The parts of a page: sections of sentences, lists, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Text(NamedTuple):
    """A paragraph; `strong` for the sentence that matters most."""

    text: str
    strong: bool = False
    kind: str = "text"


class Items(NamedTuple):
    """A list of sentences; a command, where there is one, stands behind its sentence."""

    items: Sequence[tuple[str, str]]
    kind: str = "items"


class Cells(NamedTuple):
    """A table; the first cell of a row names it."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    kind: str = "cells"


class Figure(NamedTuple):
    """An SVG picture, made by `unbag.report._figures`, and what to see in it."""

    svg: str
    caption: str
    kind: str = "figure"


class Words(NamedTuple):
    """Words and their meanings."""

    words: Sequence[tuple[str, str]]
    kind: str = "words"


Part = Text | Items | Cells | Figure | Words


class Section(NamedTuple):
    """A heading and what stands below it; `name` is its address in the page."""

    name: str
    title: str
    parts: Sequence[Part]


class Page(NamedTuple):
    """A title, a line below it, and sections."""

    title: str
    line: str
    sections: Sequence[Section]


def items(*sentences: str) -> Items:
    """A list of sentences without commands."""
    return Items([(sentence, "") for sentence in sentences])
