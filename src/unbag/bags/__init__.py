"""Rows and reports in, `Bags` out: who is in which bag, what each bag reported, and the prior.

`Reports` is what is known of each bag; `Bags` adds the instances.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.bags._bags import Bags as Bags
    from unbag.bags._bags import batch_plan as batch_plan
    from unbag.bags._bags import checked_scores as checked_scores
    from unbag.bags._bags import one_column as one_column
    from unbag.bags._bags import take_rows as take_rows
    from unbag.bags._build import as_ids as as_ids
    from unbag.bags._build import from_rows as from_rows
    from unbag.bags._build import random_bags as random_bags
    from unbag.bags._design import design_bags as design_bags
    from unbag.bags._design import stable_hash as stable_hash
    from unbag.bags._makers import MAKERS as MAKERS
    from unbag.bags._makers import make_bags as make_bags
    from unbag.bags._reports import HIDDEN_BY_VALUE as HIDDEN_BY_VALUE
    from unbag.bags._reports import REPORT_RULES as REPORT_RULES
    from unbag.bags._reports import Kind as Kind
    from unbag.bags._reports import Reports as Reports
    from unbag.bags._reports import Status as Status
    from unbag.bags._reports import as_components as as_components
    from unbag.bags._reports import check_noise as check_noise
    from unbag.bags._reports import check_prior as check_prior
    from unbag.bags._reports import label_variance as label_variance
    from unbag.bags._reports import largest_report as largest_report
    from unbag.bags._reports import mean_label_variance as mean_label_variance
    from unbag.bags._spread import WHOLE as WHOLE
    from unbag.bags._spread import all_equal as all_equal
    from unbag.bags._spread import least_variance as least_variance
    from unbag.bags._spread import reports_too_even as reports_too_even
    from unbag.bags._spread import spread_terms as spread_terms
    from unbag.bags._spread import too_even as too_even
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
