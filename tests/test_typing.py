"""What an editor or a type checker makes of a user's script."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import unbag
from cases.packages import needs
from unbag._lazy import public_list

ROOT = Path(__file__).parent.parent

RIGHT = """
import numpy as np

import unbag
from unbag import Bags, BagClassifier, Reports

X, y = np.zeros((100, 2)), np.tile([0, 1], 50)
bags: Bags = unbag.random_bags(X, y, size=10, seed=0)
reports: Reports = bags.reports
train, held_out = bags.split(0.8, seed=0)
model = BagClassifier(method="upm").fit(X, y)
probability = model.predict_proba(X)
w = unbag.weights.upm(bags.size, *bags.components())
run = unbag.train(unbag.models.linear(2, key=0), bags, "likelihood")
joined = unbag.join({}, {}, on="bag", total="sales")
evaluation = unbag.evaluate(run, held_out, level=0.9)
"""

WRONG = {
    "bags = unbag.random_bags(X, y, size='ten', seed=0)": "reportArgumentType",
    "bags = unbag.random_bags(X, y, sizes=10, seed=0)": "reportCallIssue",
    "Bags(np.zeros(3), np.zeros(3), 'ternary')": "reportArgumentType",
    "joined = unbag.join({}, {}, on='bag', totl='sales')": "reportCallIssue",
    "evaluation = unbag.evaluate(run, held_out, levels=0.9)": "reportCallIssue",
    "unbag.train(unbag.models.linear(2, key=0), bags, 'lazy')": "reportArgumentType",
    "unbag.randombags": "reportAttributeAccessIssue",
}


def errors_of(folder, script):
    """Line and rule of what pyright calls an error in a script outside the repository."""
    (folder / "script.py").write_text(script)
    config = {"include": ["script.py"], "extraPaths": [str(ROOT / "src")]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    words = ["-m", "pyright", "--outputjson", "-p", folder, "--pythonpath", sys.executable]
    printed = subprocess.run([sys.executable, *words], capture_output=True, text=True).stdout
    return {
        (each["range"]["start"]["line"], each["rule"])
        for each in json.loads(printed)["generalDiagnostics"]
        if each["severity"] == "error"
    }


def test_right_calls_pass_a_type_checker_and_wrong_ones_do_not(tmp_path):
    needs("pyright")
    first = RIGHT.count("\n")
    wrong = {(first + number, rule) for number, rule in enumerate(WRONG.values())}
    assert errors_of(tmp_path, RIGHT + "\n".join(WRONG)) == wrong


def test_the_package_says_that_it_is_typed_and_has_one_version():
    folder = Path(unbag.__file__).parent
    assert (folder / "py.typed").exists()
    assert unbag.__version__ == unbag._version.__version__
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()


SOURCES = {
    ".".join(path.relative_to(ROOT / "src").parent.parts): path.read_text()
    for path in (ROOT / "src").rglob("__init__.py")
}


@pytest.mark.parametrize("package", [p for p, text in SOURCES.items() if "unbag._lazy" in text])
def test_every_lazy_name_is_there_and_known_to_type_checkers(package):
    module = import_module(package)
    for name, origin in public_list(SOURCES[package]).items():
        assert f" {name} as {name}\n" in SOURCES[package]
        assert name in dir(module)
        if origin != package:
            assert getattr(module, name) is getattr(import_module(origin), name)
