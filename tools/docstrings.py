"""Check that the docstrings of public names follow numpydoc; `make check` runs it.

    python tools/docstrings.py            # counts by package; fails where a clean package is not
    python tools/docstrings.py tables     # every offender of a package

A public name is one in the public list of a package or module of `src/unbag`, and a public method
of such a class. With two or more arguments (or fields) it needs a section Parameters (or
Attributes) that names each of them, as

    size : int
        How many instances a bag has.

The source is read with `ast`, so nothing is imported and no optional package is needed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
PACKAGE = SOURCE / "unbag"
ENTRY = re.compile(r"\*{0,2}\w+(, \*{0,2}\w+)* : \S")
POINTER = re.compile(r"[Ss]ee `\w+(\.\w+)*`")  # to where the same arguments are described
SENTENCE, LONGEST = (".", ",", ";", ":"), 90  # what ends so, or is longer, is no type
Definition = ast.FunctionDef | ast.ClassDef


def main(words: list[str]) -> int:
    """Print the offenders, and return how the process ends."""
    offenders = {name: list(offences(name)) for name in packages()}
    for name in words:
        print("\n".join(offenders[name]))
    if words:
        return 0
    everything = [line for lines in offenders.values() for line in lines]
    print("\n".join(everything), end="\n" * bool(everything))
    return int(bool(everything))


def packages() -> list[str]:
    """The public modules and packages of unbag."""
    paths = [path for path in PACKAGE.iterdir() if not path.name.startswith(("_", "."))]
    return sorted(path.stem for path in paths if path.suffix == ".py" or path.is_dir())


def offences(package: str) -> Iterator[str]:
    """What is wrong in a package, one line each."""
    for name, node in definitions(f"unbag.{package}"):
        yield from (f"unbag.{package}.{name}: {fault}" for fault in faults(node))
        for method in methods(node):
            title = f"unbag.{package}.{name}.{method.name}"
            yield from (f"{title}: {fault}" for fault in faults(method))


def methods(node: Definition) -> Iterator[ast.FunctionDef]:
    """The public methods of a class; a function has none."""
    if isinstance(node, ast.ClassDef):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                yield method


def definitions(module: str) -> Iterator[tuple[str, Definition]]:
    """Each public function and class with its name; those of other packages are checked there."""
    tree = read(module)
    public = None
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from lazy(module, node)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            public = set(ast.literal_eval(node.value))
    for node in tree.body:
        if isinstance(node, Definition) and node.name in (public or [node.name.lstrip("_")]):
            yield node.name, node
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{module}."):
            for alias in node.names:
                name = alias.asname or alias.name
                if public is None or name in public:
                    yield from ((name, place) for place in defined(alias.name, str(node.module)))


def lazy(module: str, block: ast.If) -> Iterator[tuple[str, Definition]]:
    """What a package imports as itself, when it is asked for."""
    for node in block.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{module}."):
            for alias in node.names:
                yield from ((alias.name, place) for place in defined(alias.name, str(node.module)))


def defined(name: str, module: str) -> Iterator[Definition]:
    """The definition of a name in a module, if it is a function or a class."""
    for node in read(module).body:
        if isinstance(node, Definition) and node.name == name:
            yield node


@cache
def read(module: str) -> ast.Module:
    """A module or package, read but not run."""
    path = SOURCE / Path(*module.split("."))
    if path.is_dir():
        path = path / "__init__"
    return ast.parse(path.with_suffix(".py").read_text())


def faults(node: Definition) -> Iterator[str]:
    """What is wrong with one docstring."""
    text = ast.get_docstring(node) or ""
    sections = dict(re.findall(r"^(\w+)\n-{3,}\n(.*?)(?=\n\w+\n-{3,}|\Z)", text, re.M | re.S))
    names = arguments(node)
    listed = [*entries(sections.get("Parameters", "")), *entries(sections.get("Attributes", ""))]
    known = [name.lstrip("*") for line in listed for name in line.partition(" : ")[0].split(", ")]
    if len(names) >= 2 and not listed and not POINTER.search(text):
        yield "no Parameters"
    elif listed:
        missing = [name for name in names if name not in known]
        if missing:
            yield f"Parameters without {', '.join(missing)}"
        unknown = [name for name in known if name not in names]
        inherits = isinstance(node, ast.ClassDef) and node.bases and not names
        if unknown and "Attributes" not in sections and not inherits:
            yield f"Parameters with {', '.join(unknown)}, which it has not"
    for line in listed:
        if not ENTRY.match(line) or line.endswith(SENTENCE) or len(line) > LONGEST:
            yield f"not `name : type`: {line}"
    for title in ("Parameters", "Attributes", "Returns", "Yields", "Raises"):
        for line in undescribed(sections.get(title, "")):
            yield f"no indented description below: {line}"


def arguments(node: Definition) -> list[str]:
    """Arguments without self, or of a class those of __init__ or its fields."""
    if isinstance(node, ast.ClassDef):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                return arguments(method)
        annotated = [n for n in node.body if isinstance(n, ast.AnnAssign)]
        fields = [n.target for n in annotated if "ClassVar" not in ast.unparse(n.annotation)]
        named = [target.id for target in fields if isinstance(target, ast.Name)]
        return [name for name in named if not name.startswith("_")]
    a = node.args
    every = [*a.posonlyargs, *a.args, *([a.vararg] * bool(a.vararg)), *a.kwonlyargs]
    every += [a.kwarg] * bool(a.kwarg)
    return [x.arg for x in every if x and x.arg not in ("self", "cls")]


def entries(section: str) -> list[str]:
    """The lines of a section that are not indented; text after a blank line is no entry."""
    block = re.split(r"\n\n(?=\S)(?!\*{0,2}\w+(, \*{0,2}\w+)* : )", section)[0]
    return [line for line in block.splitlines() if line and not line.startswith(" ")]


def undescribed(section: str) -> Iterator[str]:
    """Entries of a section without indented lines below."""
    lines = [line for line in section.split("\n\n")[0].splitlines() if line]
    for line, below in pairwise([*lines, ""]):
        if not line.startswith(" ") and not below.startswith(" "):
            yield line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
