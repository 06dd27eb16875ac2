"""Write the tables of docs/field.md from the runs in results/benchmark; `--check` only compares."""

import sys
from pathlib import Path

from unbag.lab import finished, guide, read_benchmark

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "field.md"
START, END = "<!-- made by tools/field.py -->\n", "<!-- end -->\n"


def tables() -> str:
    """What all committed runs say."""
    paths = sorted((ROOT / "results" / "benchmark").glob("*/runs.csv"))
    return guide([run for path in paths for run in finished(read_benchmark(path))])


def page() -> str:
    """The page with its tables made anew."""
    before, _, rest = PAGE.read_text().partition(START)
    return f"{before}{START}\n{tables()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(page() != PAGE.read_text())
    PAGE.write_text(page())
