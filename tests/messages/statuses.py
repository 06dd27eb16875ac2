"""Bad input of statuses, and the whole message that it gets."""

from cases.statuses import BAG, NAN, SOME, STATUSES
from unbag import Bags
from unbag.boosting import BagObjective

MESSAGES = [
    (
        lambda: Bags(BAG, [0.5, 0.5, 0.5], status=["observed", "late", "pending"]),
        "A status must be one of observed, suppressed_by_size, suppressed_by_value, pending, "
        "interval: bag 1 has late (1 such bag). A report that arrived is observed; leave status "
        "out when all arrived.",
    ),
    (
        lambda: Bags(BAG, [0.5, NAN, NAN], status=["observed", "interval", "suppressed_by_value"]),
        "A report must not be hidden for its value, because leaving it out biases the result: "
        "whether it is hidden depends on the labels: bag 1 has interval (2 such bags). Ask for "
        "noisy counts or larger bags, so that none is hidden, or accept the bias with "
        "accept_bias=True.",
    ),
    (
        lambda: Bags(BAG, [NAN, NAN, 1.0], status=STATUSES),
        "A report must be finite: bag 0 has nan (1 such bag). Say with status= which bags are "
        "suppressed or pending, or fix the export; never write 0 for them.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5, 0.5], status=["observed"]),
        (
            "status must have one entry for each bag: 1 given for 3 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: Bags(BAG, [NAN] * 3, status=["pending"] * 3).prior,
        "Bags must have at least one observed report: all 3 are suppressed, hidden or pending. "
        "Wait for reports, or make the bags larger.",
    ),
    (
        lambda: Bags(BAG, [0.5, NAN, 1.0], stratum=[0, 1, 0], status=STATUSES).reported(),
        "A stratum must have at least one observed report, or a known prior: stratum 1 has none "
        "of 1 (1 such stratum). Leave its bags out, merge it with another, or give prior=.",
    ),
    (
        lambda: BagObjective(SOME),
        "A bag to boost from must have an observed report, because its rows are the rows of the "
        "booster's data: bag 1 has pending (1 such bag). Give bags.reported(), and train on its "
        "X.",
    ),
]
