"""`unbag demo`: the whole way on the shipped Adult data."""

from __future__ import annotations

from pathlib import Path

from unbag.cli._options import stopped_verb

COMMAND = stopped_verb("it starts from the beginning when it is run again")


def demo(folder: Path = Path("demo")) -> None:
    """Run every step on the shipped Adult data, from two tables to a report page: check, train,
    select, evaluate without labels, and reveal the labels.

    Example: unbag demo

    Parameters
    ----------
    folder
        where the tables, models and the page go; files of an earlier demo are overwritten
    """
    from unbag.cli._tour import run  # late, as all libraries come with it

    run(folder)
