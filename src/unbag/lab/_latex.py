"""Tables as LaTeX, for papers."""

from __future__ import annotations

from collections.abc import Sequence

ESCAPES = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
}


def as_latex(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    label: str = "",
    bold: Sequence[tuple[int, int]] = (),
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
    bold : sequence of (row, column)
        Cells to print in bold.

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
    for number, row in enumerate(rows):
        marked = [column for place, column in bold if place == number]
        lines.append(_line(row, marked))
    lines += ["\\bottomrule", "\\end{tabular}"]
    if caption:
        lines = ["\\begin{table}", "\\centering", *lines, f"\\caption{{{escaped(caption)}}}"]
        lines += [f"\\label{{{label}}}"] * bool(label) + ["\\end{table}"]
    return "\n".join([*lines, ""])


def escaped(text: str) -> str:
    """Text in which no character means anything to LaTeX.

    >>> escaped("50% of a_b")
    '50\\\\% of a\\\\_b'
    """
    return "".join(ESCAPES.get(character, character) for character in text)


def _line(cells: Sequence[str], bold: Sequence[int] = ()) -> str:
    shown = [escaped(cell) for cell in cells]
    shown = [f"\\textbf{{{cell}}}" if i in bold else cell for i, cell in enumerate(shown)]
    return " & ".join(shown) + " \\\\"
