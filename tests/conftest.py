"""Shapes are types, and they are checked here: see the annotations in `unbag._arrays`."""

import sys
from importlib import import_module

import jaxtyping
import pytest

CHECKED = ["unbag._arrays", "unbag.weights", "unbag.matching", "unbag.likelihood", "unbag.medians"]
hook = jaxtyping.install_import_hook(CHECKED, "beartype.beartype")
for name in CHECKED:
    import_module(name)

hook.uninstall()


@pytest.fixture(autouse=True, scope="module")
def small_memory():
    """Forget what JAX compiled for the module before: thousands of small programs add up to
    gigabytes."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture
def unchecked_shapes():
    """Let wrong shapes through to the messages that users see."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
