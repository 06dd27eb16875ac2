"""Rows and reports in, `Bags` out: who is in which bag, what each bag reported, and the prior.

`Reports` is what is known of each bag; `Bags` adds the instances.
"""

from unbag.bags._bags import Bags, take_rows
from unbag.bags._build import as_ids, from_rows, random_bags
from unbag.bags._design import design_bags, stable_hash
from unbag.bags._makers import MAKERS, make_bags
from unbag.bags._reports import (
    HIDDEN_BY_VALUE,
    REPORT_RULES,
    Components,
    Kind,
    Reports,
    Status,
    as_components,
    check_noise,
    check_prior,
    label_variance,
    largest_report,
    mean_label_variance,
)
from unbag.bags._split import batch_plan
from unbag.bags._spread import (
    WHOLE,
    all_equal,
    least_variance,
    reports_too_even,
    spread_terms,
    too_even,
)

__all__ = [
    "HIDDEN_BY_VALUE",
    "MAKERS",
    "REPORT_RULES",
    "WHOLE",
    "Bags",
    "Components",
    "Kind",
    "Reports",
    "Status",
    "all_equal",
    "as_components",
    "as_ids",
    "batch_plan",
    "check_noise",
    "check_prior",
    "design_bags",
    "from_rows",
    "label_variance",
    "largest_report",
    "least_variance",
    "make_bags",
    "mean_label_variance",
    "random_bags",
    "reports_too_even",
    "spread_terms",
    "stable_hash",
    "take_rows",
    "too_even",
]
