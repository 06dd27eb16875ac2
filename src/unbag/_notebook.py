"""Objects that show themselves in notebooks."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def as_html(thing: Any) -> str:
    """The object in the parts of the report page: what `_repr_html_` returns.

    Parameters
    ----------
    thing : object
        See `unbag.report.html_of`.
    """
    # the page is downstream of everything that it shows, so it is imported when it is asked for
    return import_module("unbag.report").html_of(thing)
