"""Tables of events and reports in, `Bags` with features out; and the plan of the features, for
prediction.

`reading` opens frames and files, `values` reads columns, `counting` sums up events, `reporting`
chooses reports, `reconciling` brings them together, `joining` makes the bags. `surveying` makes a
plan from the data, `overriding` hears what the user wishes, `plans` applies it with `encoding`.
`querying` makes the errors of DuckDB plain.
"""

from unbag.tables._encode import Column, buckets_of, levels_of, narrow
from unbag.tables._infer import plan_features
from unbag.tables._join import JoinedBags, check_tables, join
from unbag.tables._plan import FeaturePlan, Part
from unbag.tables._sources import Table, open_table
from unbag.tables._summary import TablesReport

__all__ = [
    "Column",
    "FeaturePlan",
    "JoinedBags",
    "Part",
    "Table",
    "TablesReport",
    "buckets_of",
    "check_tables",
    "join",
    "levels_of",
    "narrow",
    "open_table",
    "plan_features",
]
