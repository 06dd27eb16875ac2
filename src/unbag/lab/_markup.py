"""Tables as Markdown, for pages, and as LaTeX, for papers."""

from __future__ import annotations

import re
from collections.abc import Sequence

ESCAPES = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
    # LaTeX's usual text font has other characters in the places of these
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
}
# Only as much smaller as the page asks for: a table that fits keeps its size.
FITTED = """\\sbox0{%
TABULAR}%
\\ifdim\\wd0>\\linewidth\\resizebox{\\linewidth}{!}{\\usebox0}\\else\\usebox0\\fi"""


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
    marks = dict.fromkeys(bold, "textbf") | dict.fromkeys(underlined, "underline")
    numbers = len(header) - 1

    def line(cells: Sequence[str], row: int) -> str:
        shown = [_cell(cell) for cell in cells]
        for column in (column for column in range(len(cells)) if (row, column) in marks):
            shown[column] = f"\\{marks[row, column]}{{{shown[column]}}}"
        if row == len(rows) and len(cells) == 2 < len(header):  # one number for all columns
            shown[1] = f"\\multicolumn{{{numbers}}}{{c}}{{{shown[1]}}}"
        return " & ".join(shown) + " \\\\"

    lines = [f"\\begin{{tabular}}{{l{'r' * numbers}}}", "\\toprule"]
    lines += [" & ".join(map(_heading, header)) + " \\\\", "\\midrule"]
    lines += [line(row, number) for number, row in enumerate(rows)]
    lines += ["\\midrule"] * bool(foot) + [line(row, len(rows)) for row in foot]
    text = "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])
    if caption:
        return floating([text], caption=caption, label=label)
    return text


def floating(tabulars: Sequence[str], *, caption: str, label: str = "") -> str:
    """Tables of `as_latex` as one floating table, one below the other, none wider than the page;
    where a page has two columns, it takes both.

    Parameters
    ----------
    tabulars : sequence of str
        Without a caption.
    caption, label : str
        Of all together.
    """
    parts = [FITTED.replace("TABULAR", tabular.rstrip("\n")) for tabular in tabulars]
    lines = ["\\begin{table*}", "\\centering\\small\\setlength{\\tabcolsep}{3pt}"]
    lines += [f"\\caption{{{escaped(caption)}}}"] + [f"\\label{{{label}}}"] * bool(label)
    lines += ["\\par\\smallskip", "\n\\par\\medskip\n".join(parts), "\\end{table*}"]
    return "\n".join([*lines, ""])


def escaped(text: str) -> str:
    """Text in which no character means anything to LaTeX.

    >>> escaped("50% of a_b")
    '50\\\\% of a\\\\_b'
    """
    return "".join(ESCAPES.get(character, character) for character in text)


def _heading(text: str) -> str:
    """A method and its loss stand one above the other: columns are as wide as their numbers."""
    lines = [escaped(line) for line in text.split(", ")]
    if len(lines) == 1:
        return lines[0]
    stacked = ",\\\\ ".join(lines)
    return f"\\begin{{tabular}}[b]{{@{{}}r@{{}}}}{stacked}\\end{{tabular}}"


def _cell(text: str) -> str:
    """A standard error is smaller than its number, and a minus sign is no hyphen."""
    number, sign, error = text.partition(" ± ")
    shown = re.sub(r"^-(?=\d)", "$-$", escaped(number))
    if sign:
        shown += f" {{\\scriptsize$\\pm$ {escaped(error)}}}"
    return shown
