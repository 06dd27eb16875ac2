"""Tables as Markdown, for pages, and as LaTeX, for papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ESCAPES = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
}
FITTING = 7  # columns that a page is wide enough for; a wider table is made smaller


def as_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are text.

    Parameters
    ----------
    header : sequence of str
        Of each column.
    rows : sequence of sequence of str
        Cells.

    >>> print(as_markdown(["method", "loss"], [["a", "0.3"]]), end="")
    | method | loss |
    | --- | --- |
    | a | 0.3 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_latex(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    label: str = "",
    bold: Sequence[tuple[int, int]] = (),
    underlined: Sequence[tuple[int, int]] = (),
    foot: Sequence[Sequence[str]] = (),
) -> str:
    """A table with the rules of the package booktabs; the first column is text, the others numbers.

    Parameters
    ----------
    header : sequence of str
        Of each column.
    rows : sequence of sequence of str
        Cells as text.
    caption, label : str
        Of the floating table; without a caption there is only the tabular.
    bold, underlined : sequence of (row, column)
        Cells to print so.
    foot : sequence of sequence of str
        Rows below a rule of their own; a row of two cells has one number for all columns.

    >>> print(as_latex(["method", "loss"], [["a_b", "0.3"]], bold=[(0, 1)]))
    \\begin{tabular}{lr}
    \\toprule
    method & loss \\\\
    \\midrule
    a\\_b & \\textbf{0.3} \\\\
    \\bottomrule
    \\end{tabular}
    <BLANKLINE>
    """
    lines = [f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", "\\toprule", _line(header)]
    lines.append("\\midrule")
    marks = dict.fromkeys(bold, "textbf") | dict.fromkeys(underlined, "underline")
    for number, row in enumerate(rows):
        lines.append(_line(row, {c: mark for (r, c), mark in marks.items() if r == number}))
    lines += ["\\midrule"] * bool(foot) + [_foot(row, len(header) - 1) for row in foot]
    lines += ["\\bottomrule", "\\end{tabular}"]
    if caption and len(header) > FITTING:
        lines = ["\\resizebox{\\textwidth}{!}{%", *lines, "}"]
    if caption:
        lines = ["\\begin{table}", "\\centering", *lines, f"\\caption{{{escaped(caption)}}}"]
        lines += [f"\\label{{{label}}}"] * bool(label) + ["\\end{table}"]
    return "\n".join([*lines, ""])


def _foot(row: Sequence[str], columns: int) -> str:
    if len(row) != 2 or columns == 1:
        return _line(row)
    name, value = map(escaped, row)
    return f"{name} & \\multicolumn{{{columns}}}{{c}}{{{value}}} \\\\"


def escaped(text: str) -> str:
    """Text in which no character means anything to LaTeX.

    >>> escaped("50% of a_b")
    '50\\\\% of a\\\\_b'
    """
    return "".join(ESCAPES.get(character, character) for character in text)


def _line(cells: Sequence[str], marks: Mapping[int, str] | None = None) -> str:
    shown = [escaped(cell) for cell in cells]
    for column, mark in (marks or {}).items():
        shown[column] = f"\\{mark}{{{shown[column]}}}"
    return " & ".join(shown) + " \\\\"
