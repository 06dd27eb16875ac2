"""A page in, one self-contained HTML file out: no script, no network, all foreign text escaped."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, Template

from unbag._io import check_place, whole
from unbag.report._page import Page


@cache
def _template() -> Template:
    text = files("unbag.report").joinpath("page.html").read_text(encoding="utf-8")
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(text)


def render(page: Page) -> str:
    """The page as HTML.

    >>> from unbag.report._page import Section, Text
    >>> "&lt;b&gt;" in render(Page("A page", "", [Section("one", "One", [Text("<b>")])]))
    True
    """
    from unbag import __version__

    return _template().render(page=page, version=__version__)


def write_page(page: Page, path: str | Path, *, force: bool = False) -> Path:
    """Write the page, whole or not at all; a file that exists is refused without `force`."""
    path = Path(path)
    check_place(path, force=force)
    with whole(path) as temporary:
        temporary.write_text(render(page), encoding="utf-8")
    return path
