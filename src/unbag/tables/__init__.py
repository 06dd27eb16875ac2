"""Tables of events and reports as `Bags` with features, and the plan of these features.

`join` makes the bags and `check_tables` says what is wrong with the tables; `Columns` is what the
user says of their columns, `TablesReport` what they hold. `plan_features` infers a `FeaturePlan`,
which is stored with a model and applied at prediction.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.tables._answers import answers as answers
    from unbag.tables._columns import ColumnNames as ColumnNames
    from unbag.tables._columns import Columns as Columns
    from unbag.tables._columns import as_columns as as_columns
    from unbag.tables._columns import cut_of as cut_of
    from unbag.tables._columns import ids_are_text as ids_are_text
    from unbag.tables._encode import Column as Column
    from unbag.tables._encode import buckets_of as buckets_of
    from unbag.tables._encode import levels_of as levels_of
    from unbag.tables._encode import narrow as narrow
    from unbag.tables._errors import plain_arrow as plain_arrow
    from unbag.tables._errors import plain_duckdb as plain_duckdb
    from unbag.tables._infer import plan_features as plan_features
    from unbag.tables._join import JoinedBags as JoinedBags
    from unbag.tables._join import OldScore as OldScore
    from unbag.tables._join import check_tables as check_tables
    from unbag.tables._join import join as join
    from unbag.tables._join import plan_tables as plan_tables
    from unbag.tables._marginals import Marginals as Marginals
    from unbag.tables._marginals import join_marginals as join_marginals
    from unbag.tables._marginals import plan_marginals as plan_marginals
    from unbag.tables._match import report_rows as report_rows
    from unbag.tables._plan import FeaturePlan as FeaturePlan
    from unbag.tables._range import ColumnWatch as ColumnWatch
    from unbag.tables._range import in_range as in_range
    from unbag.tables._rules import EVEN as EVEN
    from unbag.tables._rules import LEFT_OUT as LEFT_OUT
    from unbag.tables._rules import RULES as RULES
    from unbag.tables._rules import Engine as Engine
    from unbag.tables._rules import TablesReport as TablesReport
    from unbag.tables._rules import bag_checks as bag_checks
    from unbag.tables._rules import count as count
    from unbag.tables._rules import tables_report as tables_report
    from unbag.tables._sources import Table as Table
    from unbag.tables._sources import data_files as data_files
    from unbag.tables._sources import is_matrix as is_matrix
    from unbag.tables._sources import open_table as open_table
    from unbag.tables._sources import watched as watched
    from unbag.tables._sources import write_tables as write_tables
    from unbag.tables._values import as_ids as as_ids
    from unbag.tables._values import as_moments as as_moments
    from unbag.tables._values import as_numbers as as_numbers
    from unbag.tables._values import is_known as is_known
    from unbag.tables._values import is_number as is_number
    from unbag.tables._values import plain as plain
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
