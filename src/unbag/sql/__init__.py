"""Tables in a warehouse in, relational expressions out: bags, checks, signed weights and targets,
in any SQL.

`asking` gives columns their meaning, `counting` brings events and reports together by bag,
`weighing` makes weights, `checking` counts what is wrong and `telling` says it, `relating` puts all
together, `designing` assigns events to bags, `running` does it with DuckDB from file to file. Needs
Ibis: pip install "unbag[sql]".
"""

from unbag.sql._design import Designed, design
from unbag.sql._files import query_files, write_targets
from unbag.sql._relation import Related, as_sql, relate
from unbag.sql._summary import Told, confirm

__all__ = [
    "Designed",
    "Related",
    "Told",
    "as_sql",
    "confirm",
    "design",
    "query_files",
    "relate",
    "write_targets",
]
