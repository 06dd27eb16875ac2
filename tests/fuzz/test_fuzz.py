"""Damage of every kind is refused clearly or changes nothing; `make fuzz` tries many more."""

import warnings

import numpy as np
import pytest

from fuzz.subjects import SUBJECTS

CASES = 12


@pytest.mark.parametrize("subject", SUBJECTS)
def test_damage_is_refused_or_changes_nothing(subject, tmp_path):
    outcomes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models from a handful of rows
        for seed in range(CASES):
            outcomes.append(SUBJECTS[subject](np.random.default_rng([seed]), tmp_path))
    assert set(outcomes) <= {"refused", "equal"}
