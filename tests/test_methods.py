"""The one table of methods, and that the packages read it."""

from typing import get_args

import pytest

import unbag
from unbag.bags import Kind, label_variance
from unbag.losses import LOSSES
from unbag.methods import FROM_BAGS, LINEAR, METHODS, Method, usual_loss


def test_the_table_has_every_method_and_a_usual_loss_for_each_kind_it_takes():
    assert tuple(METHODS) == get_args(Method)
    for name, facts in METHODS.items():
        assert facts.name == name
        assert facts.description
        for kind in facts.kinds:
            assert kind in LOSSES[facts.losses[kind]].forms
            assert usual_loss(name, kind) is LOSSES[facts.losses[kind]]


def test_a_method_of_your_own_is_used_with_the_loss_that_judges():
    for kind in get_args(Kind):
        assert usual_loss(len, kind) is usual_loss("upm", kind)


def test_the_linear_methods_are_those_of_the_weights():
    assert [name for name in FROM_BAGS if hasattr(unbag.weights, name)] == list(LINEAR)


def test_what_is_centred_by_other_bags_needs_random_bags():
    for facts in METHODS.values():
        assert facts.needs_random_bags or not facts.leave_one_out


@pytest.mark.parametrize("kind, expected", [("binary", 0.21), ("total", 0.3), ("histogram", 0.21)])
def test_the_variance_of_a_label_is_that_of_its_law(kind, expected):
    assert label_variance(0.3, kind) == pytest.approx(expected)
