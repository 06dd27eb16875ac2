"""What is known of each bag, checked without any instance."""

from dataclasses import fields, replace

import numpy as np
import pytest

from unbag import Bags, Refused, Reports, from_rows

BAG = np.array([0, 0, 1, 2, 2, 2])
NAMES = ["mon", "tue", "wed"]
NAN = np.nan

CASES = {
    "binary": {"report": [0.5, 1.0, 0.0]},
    "total with a cap": {"report": [0.5, 3.0, 0.0], "kind": "total", "cap": 3},
    "histogram": {"report": [[0.5, 0.5], [1, 0], [0, 1]], "kind": "histogram"},
    "noise": {"report": [0.5, 1.4, -0.2], "noise": [1, 2, 3]},
    "strata": {"report": [0.5, 1.0, 0.0], "stratum": [0, 1, 1], "stratum_names": ["n", "s"]},
    "a known prior": {"report": [0.5, 1.0, 0.0], "known_prior": 0.3},
    "a pending report": {"report": [0.5, NAN, 1.0], "status": ["observed", "pending", "observed"]},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_reports_alone_say_what_bags_say(case):
    reports, bags = Reports([2, 1, 3], **case), Bags(BAG, **case)
    for known in fields(Reports):
        np.testing.assert_equal(getattr(reports, known.name), getattr(bags, known.name))
    for name in ("observed", "strata", "prior"):
        np.testing.assert_equal(getattr(reports, name), getattr(bags, name))
    np.testing.assert_equal(reports.components(), bags.components())
    part, bags_of_part = reports.take([2, 0]), bags.take([2, 0])
    np.testing.assert_equal(part.report, bags_of_part.report)
    np.testing.assert_equal(part.prior, bags_of_part.reports.prior)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"size": [2, 0, 3]}, "A bag must hold at least one instance: bag tue has 0"),
        ({"report": [0.5, NAN, 1.0]}, "A report must be finite: bag tue has nan"),
        ({"report": [0.5, 1.0, 1.5]}, "must lie in [0, 1]: bag wed has 1.5"),
        ({"noise": [1, 1, -1]}, "A noise variance must be finite and not negative: bag wed has -1"),
        ({"status": ["observed", "late", "observed"]}, "interval: bag tue has late"),
        ({"status": ["interval", "observed", "observed"]}, "labels: bag mon has interval"),
        ({"stratum": [0, 0, -2]}, "A stratum number must not be negative: bag wed has -2"),
        ({"size": [2, 1]}, "size must have one entry for each bag: 2 given for 3 bags"),
    ],
)
def test_a_refusal_uses_the_names_of_the_user(wrong, message):
    known = {"size": [2, 1, 3], "report": [0.5, 1.0, 0.0], "names": NAMES}
    with pytest.raises(Refused) as error:
        Reports(**(known | wrong))
    assert message in str(error.value)


def test_bags_of_rows_refuse_by_the_names_of_bags_and_strata():
    with pytest.raises(Refused, match="bag tue has 2 "):
        from_rows(["mon", "tue"], {"mon": 0.5, "tue": 2.0})
    pending = from_rows(
        ["mon", "tue"],
        {"mon": 0.5},
        stratum={"mon": "north", "tue": "south"},
        status={"tue": "pending"},
    )
    with pytest.raises(Refused, match="stratum south has none of 1 "):
        pending.reports.check_observed()


def test_bags_can_be_replaced_in_part_and_keep_their_reports_in_step():
    bags = replace(Bags(BAG, [0.5, 1.0, 0.0], names=NAMES), noise=[1, 2, 3])
    assert bags.reports.noise.tolist() == bags.noise.tolist() == [1, 2, 3]
    assert repr(bags.reports) == "Reports(3 bags of 1 to 3; binary, prior 0.3333)"
