"""Packages that not every machine has."""

import pytest


def needs(package):
    """The package; where it is not installed, the test that asks is skipped.

    One reason for each package: the end of a run then has one line for it (`conftest.py`).
    """
    return pytest.importorskip(package, reason=f"{package} is not installed")
