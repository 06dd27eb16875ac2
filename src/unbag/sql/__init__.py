"""Bags, checks, signed weights and targets as relational expressions, on DuckDB, Spark or others.

`relate` gives the expressions and `as_sql` their text; `confirm` reads the checks; `design` assigns
events to bags; `query_files` and `write_targets` work with DuckDB from file to file. Needs Ibis:
pip install "unbag[sql]".
"""

try:
    import ibis as _  # noqa: F401
except ImportError as error:
    raise ImportError(
        'SQL must have Ibis: it is not installed. Use pip install "unbag[sql]".'
    ) from error

from unbag.sql._checks import confirm
from unbag.sql._design import Designed, design
from unbag.sql._files import query_files, write_targets
from unbag.sql._relation import Related, as_sql, relate

__all__ = [
    "Designed",
    "Related",
    "as_sql",
    "confirm",
    "design",
    "query_files",
    "relate",
    "write_targets",
]
