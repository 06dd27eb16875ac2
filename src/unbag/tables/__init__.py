"""Tables of events and reports as `Bags` with features, and the plan of these features.

`join` makes the bags and `check_tables` says what is wrong with the tables; `Columns` is what the
user says of their columns, `TablesReport` what they hold. `plan_features` infers a `FeaturePlan`,
which is stored with a model and applied at prediction.
"""

from unbag.tables._columns import ColumnNames, Columns, as_columns, cut_of, ids_are_text
from unbag.tables._duckdb import plain_duckdb
from unbag.tables._encode import Column, buckets_of, levels_of, narrow
from unbag.tables._infer import plan_features
from unbag.tables._join import JoinedBags, OldScore, check_tables, join
from unbag.tables._marginals import Marginals, join_marginals, match_keys, plan_marginals
from unbag.tables._outputs import write_tables
from unbag.tables._plan import FeaturePlan, Part
from unbag.tables._range import in_range
from unbag.tables._reports import ObservedReports, report_rows
from unbag.tables._rules import EVEN, LEFT_OUT, RULES, TablesReport, count, tables_report
from unbag.tables._sources import Table, no_rows, open_table, plain_arrow, watched
from unbag.tables._values import LARGEST, as_ids, as_moments, as_numbers, is_known, is_number, plain
from unbag.tables._watch import ColumnWatch

__all__ = [
    "EVEN",
    "LARGEST",
    "LEFT_OUT",
    "RULES",
    "Column",
    "ColumnNames",
    "ColumnWatch",
    "Columns",
    "FeaturePlan",
    "JoinedBags",
    "Marginals",
    "ObservedReports",
    "OldScore",
    "Part",
    "Table",
    "TablesReport",
    "as_columns",
    "as_ids",
    "as_moments",
    "as_numbers",
    "buckets_of",
    "check_tables",
    "count",
    "cut_of",
    "ids_are_text",
    "in_range",
    "is_known",
    "is_number",
    "join",
    "join_marginals",
    "levels_of",
    "match_keys",
    "narrow",
    "no_rows",
    "open_table",
    "plain",
    "plain_arrow",
    "plain_duckdb",
    "plan_features",
    "plan_marginals",
    "report_rows",
    "tables_report",
    "watched",
    "write_tables",
]
