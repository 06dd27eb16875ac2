"""Shapes are types, and they are checked here: see the annotations in `unbag._arrays`."""

import atexit
import gc
import os
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

# Much of the time of the suite is XLA compiling small programs. They are compiled in the cheapest
# way, and kept in one folder: workers, subprocesses, the tests after `small_memory` and the next run
# load what one of them has compiled.
COMPILED, MOST_COMPILED = Path(__file__).parents[1] / ".pytest_cache" / "compiled", 200 * 2**20
STARTED_HERE = "PYTEST_XDIST_WORKER" not in os.environ
OWN_FOLDER = STARTED_HERE and "JAX_COMPILATION_CACHE_DIR" not in os.environ
CHEAP = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
FLAGS = f"{os.environ.get('XLA_FLAGS', '')} {CHEAP}"
SETTINGS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",  # no line of Python for each operation
    # each core has a worker of its own; threads of theirs would wait for each other in busy loops
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAY_worker_niceness": "0",  # 15 as a rule: beside other programs a test then takes minutes
}


def compile_cheaply():
    """Settings for this process and those that it starts, before NumPy and JAX are imported."""
    if OWN_FOLDER:
        COMPILED.mkdir(parents=True, exist_ok=True)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(COMPILED)
    os.environ.update(SETTINGS)
    # XLA ends a process that names a flag it does not have, so another process tries it
    trial = [sys.executable, "-c", "import jax; jax.devices()"]
    known = subprocess.run(trial, env={**os.environ, "XLA_FLAGS": FLAGS}, capture_output=True)
    if known.returncode == 0:
        os.environ["XLA_FLAGS"] = FLAGS


def keep_bytecode():
    """Two workers and hundreds of subprocesses import the same files: compile them once, also where
    the environment says otherwise."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


if STARTED_HERE:
    compile_cheaply()
keep_bytecode()
# a full collection walks through all modules of JAX, PyTorch and Ibis: a quarter of the time of
# tests that make many small objects
gc.set_threshold(50_000, 20, 50)

import hypothesis  # noqa: E402
import jaxtyping  # noqa: E402
import pytest  # noqa: E402

# the same examples in every run, and as much time as a busy machine takes; `make fuzz` looks further
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same")

collect_ignore_glob = ["cases/*", "messages/[!t]*"]  # no doctests, and slow to import
LARGE = 2 * 2**30
CHECKED = [  # the files of weights too: the package imports them when they are asked for
    "unbag._arrays", "unbag.weights", "unbag.weights._linear", "unbag.weights._pseudo_labels",
    "unbag.matching", "unbag.likelihood", "unbag.medians",
]  # fmt: skip
hook = jaxtyping.install_import_hook(CHECKED, "beartype.beartype")
for name in CHECKED:
    import_module(name)

hook.uninstall()


def resident_memory():
    """Bytes that this process holds; where the system has no such file, more than any limit."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return float("inf")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def pytest_sessionfinish(exitstatus):
    """Forget the compiled programs after a failure, as one that a killed process left half written
    could be its cause, and when they are many; a folder of the user's is kept."""
    programs = list(COMPILED.iterdir()) if OWN_FOLDER else []
    failed = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if failed or sum(path.stat().st_size for path in programs) > MOST_COMPILED:
        for path in programs:  # not the folder: another run may be using it
            path.unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter):
    """One line for each missing package, or other reason, in place of one for each place."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.getreports("skipped")
    )
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"skipped {count}: {reason}")


@pytest.fixture(autouse=True, scope="module")
def small_memory():
    """Forget what JAX compiled once this process is large: thousands of small programs add up to
    gigabytes."""
    yield
    if "jax" in sys.modules and resident_memory() > LARGE:
        sys.modules["jax"].clear_caches()


def pytest_collection_finish():
    """What was imported by now stays until the end: the collector need not walk through it."""
    gc.freeze()
    atexit.register(gc.unfreeze)


def pytest_collection_modifyitems(items):
    """Files with long tests come first, so that no worker is left with one at the end; before them
    those that need Spark, one after the other, so that they share one Java. Long simulations, and
    code that runs as a user would run it, need no shapes checked."""
    slow = [item for item in items if item.get_closest_marker("slow")]
    for item in slow:
        item.fixturenames.append("unchecked_shapes")
    engines = [item for item in items if item.get_closest_marker("engines")]
    for item in engines:
        item.fixturenames.append("own_garbage")
    long_files = {item.path for item in (*slow, *engines)}
    on_spark = {item for item in engines if "spark" in item.name}
    items.sort(key=lambda item: (item not in on_spark, item.path not in long_files))


@pytest.fixture
def own_garbage():
    """Collect what an engine leaves before the next test, to which its warnings would be put."""
    yield
    gc.collect()


@pytest.fixture
def unchecked_shapes():
    """Let wrong shapes through to the messages that users see."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
