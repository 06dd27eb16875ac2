"""Public lists of packages whose names are imported when they are asked for.

A package writes its public list once, as imports under `if TYPE_CHECKING:` with `X as X`, where
editors and type checkers read it. At run time the same lines are read here, and nothing is imported
before it is used: `unbag train` needs about a third of the files. The source must stand beside the
compiled files.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


def public_list(source: str) -> dict[str, str]:
    """The module of each name that a package imports under `if TYPE_CHECKING:`."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            imports = [each for each in node.body if isinstance(each, ast.ImportFrom)]
            return {alias.name: str(each.module) for each in imports for alias in each.names}
    return {}


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package with a public list."""
    this = sys.modules[package]
    module_of = public_list(this.__loader__.get_source(package))  # type: ignore[union-attr]

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module_of[name] == package:  # the name is a module of the package
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module_of[name]), name)
        setattr(this, name, value)  # the next time it is simply there
        return value

    # `from unbag import *` takes no modules: some need an optional library
    public = sorted(name for name, module in module_of.items() if module != package)
    return load, lambda: sorted({*vars(this), *module_of}), public


class Postponed(ModuleType):
    """Stands for a library until something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:  # else another thread is importing it
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def postpone(module: str) -> None:
    """Import a module when something of it is used, not when another library imports it.

    Parameters
    ----------
    module : str
        Its name; nothing happens where it is imported already.
    """
    sys.modules.setdefault(module, Postponed(module))


def as_html(thing: Any) -> str:
    """The object in the parts of the report page: what `_repr_html_` returns.

    Parameters
    ----------
    thing : object
        See `unbag.report.html_of`.
    """
    # the page is downstream of everything that it shows, so it is imported when it is asked for
    return import_module("unbag.report").html_of(thing)
