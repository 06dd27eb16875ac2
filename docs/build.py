"""The pages in docs/ and the docstrings in src/ in, the folder that zensical makes the site from
out.

    python docs/build.py            # writes build/docs; then: zensical build --strict

Pages link to files of the repository (results, examples); the site has none of these, so they are
copied beside the pages and the links follow. The reference is read from the source with `ast`:
nothing is imported, so the pages of PyTorch or LightGBM need neither.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

from unbag._lazy import public_list

ROOT = Path(__file__).resolve().parent.parent
DOCS, SOURCE = ROOT / "docs", ROOT / "src" / "unbag"
REPORT = ROOT / "results" / "report"
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def build(out: Path) -> None:
    """Write the folder anew."""
    shutil.rmtree(out, ignore_errors=True)
    pages = {path.relative_to(DOCS): path for path in DOCS.rglob("*.md")}
    pages |= {"report" / path.relative_to(REPORT): path for path in REPORT.rglob("*.md")}
    for target, path in pages.items():
        text = path.read_text().replace("<!-- report -->", report_links())
        write(out / target, carry_links(text, path, out / target, out))
    for folder in ("pictures", "style"):
        shutil.copytree(DOCS / folder, out / folder)
    for module in modules():
        write(out / "reference" / f"{module}.md", reference(module))
    write(out / "reference" / "index.md", contents())


def report_links() -> str:
    """What `unbag reproduce` has written, as links from a page of the site; pages that are not
    there are not linked."""
    names = sorted(path.name for path in REPORT.glob("*.md"))
    if not names:
        return "No report was there when this site was built."
    listed = "".join(f"- [{name}](report/{name})\n" for name in names)
    return f"On this site:\n\n{listed}"


def modules() -> list[str]:
    """The public modules."""
    names = public_list((SOURCE / "__init__.py").read_text())
    return sorted(name for name, module in names.items() if module == "unbag")


@cache
def source(module: str) -> ast.Module:
    """A module or package, read but not run; defaults that are constants of it show their value."""
    path = ROOT / "src" / Path(*module.split("."))
    if (path / "__init__.py").exists():
        path = path / "__init__"
    tree = ast.parse(path.with_suffix(".py").read_text())
    tree.body = [part for node in tree.body for part in known_to_editors(node)]
    values = constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            node.defaults = [values.get(ast.unparse(d), d) for d in node.defaults]
            node.kw_defaults = [d and values.get(ast.unparse(d), d) for d in node.kw_defaults]
        if isinstance(node, ast.AnnAssign) and node.value:
            node.value = values.get(ast.unparse(node.value), node.value)
    return tree


def known_to_editors(node: ast.stmt) -> list[ast.stmt]:
    """A statement; of `if TYPE_CHECKING` the imports in it, which run when they are asked for."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return node.body
    return [node]


def constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Values of a module that are written out, as 2**16, with those that it imports from unbag."""
    known: dict[str, ast.expr] = {}
    names = (ast.Name, ast.Call, ast.JoinedStr)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if not any(isinstance(part, names) for part in ast.walk(node.value)):
                known[node.targets[0].id] = node.value
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("unbag."):
            wanted = {alias.name for alias in node.names if alias.name.isupper()}
            there = constants(source(str(node.module))) if wanted else {}
            known |= {name: value for name, value in there.items() if name in wanted}
    return known


def contents() -> str:
    """The first page of the reference: each module with the first line of its docstring."""
    rows = [
        (m, (ast.get_docstring(source(f"unbag.{m}")) or "").partition("\n")[0]) for m in modules()
    ]
    listed = "".join(f"- [{module}]({module}.md): {line}\n" for module, line in rows)
    page = f"# Reference\n\nRead from the docstrings, whose examples the tests run.\n\n{listed}"
    return "\n\n".join([page, *errors()]) + "\n"


def errors() -> list[str]:
    """The public names that no public module has: what unbag raises."""
    tree = source("unbag")
    names = [
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("unbag._")
        for alias in node.names
    ]
    nodes = {name: find(name, tree) for name in names}
    return [entry(node, f"unbag.{name}") for name, node in nodes.items() if node]


def write(path: Path, text: str) -> None:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def carry_links(text: str, page: Path, target: Path, out: Path) -> str:
    """Copy what the page links to outside docs/, and point its links there; other links stay."""

    def carried(link: re.Match[str]) -> str:
        file = Path(os.path.normpath(page.parent / link[1]))
        if not file.is_file() or file.is_relative_to(DOCS):
            return link[0]
        inside = file.is_relative_to(REPORT)
        copy = (
            out / "report" / file.relative_to(REPORT)
            if inside
            else out / "files" / file.relative_to(ROOT)
        )
        if file.suffix == ".md" and not inside:  # a page of the repository that is none of the site
            copy = copy.with_suffix(".md.txt")
        if not (inside and file.suffix == ".md"):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        return Path(os.path.relpath(copy, target.parent)).as_posix() + (link[2] or "")

    return LINK.sub(carried, text)


def reference(module: str) -> str:
    """The page of a module: its docstring, then every public name with its signature and
    docstring."""
    tree = source(f"unbag.{module}")
    parts = [f"# unbag.{module}", markdown(ast.get_docstring(tree) or "")]
    parts += [
        f"## {name}\n\n{markdown(text)}"
        for name, text in values(tree).items()
        if name in public(tree)
    ]
    nodes = {name: find(name, tree) for name in public(tree)}
    parts += [entry(node, f"unbag.{module}.{name}") for name, node in nodes.items() if node]
    return "\n\n".join(parts) + "\n"


def public(tree: ast.Module) -> list[str]:
    """`__all__`, or what is imported as itself, or the functions, classes and documented values
    without underscore."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return sorted(ast.literal_eval(node.value), key=str.lower)
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    lazy = [a.name for node in imports for a in node.names if a.asname == a.name]
    if lazy:
        return sorted(lazy, key=str.lower)
    kinds = (ast.FunctionDef, ast.ClassDef)
    named = [node.name for node in tree.body if isinstance(node, kinds)]
    return [name for name in [*values(tree), *named] if not name.startswith("_")]


def values(tree: ast.Module) -> dict[str, str]:
    """Values that a string stands below, which is their docstring."""
    texts = {}
    for node, below in pairwise(tree.body):
        text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if text and isinstance(node, ast.Assign | ast.AnnAssign):
            target = ast.unparse(getattr(node, "target", None) or node.targets[0])
            texts[target] = inspect.cleandoc(str(below.value.value))
    return texts


def find(name: str, tree: ast.Module) -> ast.FunctionDef | ast.ClassDef | None:
    """The definition of a name, here or where it is imported from; None for plain values."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unbag"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return find(alias.name, source(node.module))
    return None


def entry(node: ast.FunctionDef | ast.ClassDef, title: str, *, level: int = 2) -> str:
    """Heading, signature, docstring; for a class its public methods too."""
    parts = [f"{'#' * level} {title.split('.')[-1]}", f"```python\n{signature(node, title)}\n```"]
    parts.append(markdown(ast.get_docstring(node) or ""))
    for method in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            parts.append(entry(method, f"{node.name}.{method.name}", level=level + 1))
    return "\n\n".join(part for part in parts if part)


def signature(node: ast.FunctionDef | ast.ClassDef, title: str) -> str:
    """How it is called; for classes the fields, or the arguments of __init__."""
    if isinstance(node, ast.ClassDef):
        init = next(
            (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None
        )
        fields = [ast.unparse(n) for n in node.body if isinstance(n, ast.AnnAssign)]
        listed = arguments(init) if init else [f for f in fields if not f.startswith("_")]
        return call(title, listed, "")
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return call(title, arguments(node), returned)


def arguments(node: ast.FunctionDef) -> list[str]:
    """Each argument as it is written, without self."""
    a = node.args
    defaults = [None] * (len(a.posonlyargs + a.args) - len(a.defaults)) + a.defaults
    listed = [spelled(x, d) for x, d in zip(a.posonlyargs + a.args, defaults, strict=True)]
    listed += [f"*{a.vararg.arg}"] if a.vararg else (["*"] if a.kwonlyargs else [])
    listed += [spelled(x, d) for x, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    listed += [f"**{a.kwarg.arg}"] if a.kwarg else []
    return listed[1:] if listed and listed[0] in ("self", "cls") else listed


def spelled(argument: ast.arg, default: ast.expr | None) -> str:
    """name: type = default"""
    text = ast.unparse(argument)
    if default is None:
        return text
    equals = "=" if argument.annotation is None else " = "
    return f"{text}{equals}{ast.unparse(default)}"


def call(title: str, listed: list[str], returned: str) -> str:
    """On one line where it fits, else one argument a line."""
    line = f"{title}({', '.join(listed)}){returned}"
    if len(line) <= 88:
        return line
    return f"{title}(\n" + "".join(f"    {item},\n" for item in listed) + f"){returned}"


def markdown(docstring: str) -> str:
    """A docstring as Markdown: underlined titles in bold, parameters as a list, examples as
    code."""
    text = re.sub(r"^(.+)\n-{3,}$", r"**\1**\n", docstring, flags=re.MULTILINE)
    names = r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : "
    text = re.sub(rf"{names}(.+)\n +(?=\S)", r"- `\1` (\2): ", text, flags=re.MULTILINE)
    text = re.sub(names, r"- `\1`: ", text, flags=re.MULTILINE)
    return re.sub(
        r"^>>> .*?(?=\n\n|\Z)",
        lambda m: f"```pycon\n{m[0]}\n```",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


if __name__ == "__main__":
    build(ROOT / "build" / "docs")
