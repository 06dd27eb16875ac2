"""Places of outputs, checked before the work begins."""

from __future__ import annotations

from pathlib import Path

from unbag._io import check_place
from unbag._rules import broken

ENDINGS = (".parquet", ".csv")


def check_output(path: Path | None, *, force: bool, table: bool = True) -> None:
    """Refuse a place that cannot be written, before the work begins; None is stdout."""
    if path is None:
        return
    if table and path.suffix.lower() not in ENDINGS:
        raise broken(
            f"An output must be named {' or '.join(ENDINGS)}",
            f"{path.name} was given",
            "Choose such a name.",
        )
    check_place(path, force=force)


def check_page(path: Path | None, *, force: bool) -> None:
    """The same for a report page; None for none."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise broken("A page must be named .html", f"{path.name} was given", "Choose such a name.")
    check_output(path, force=force, table=False)
