"""Sweeps and sums on a real Ray cluster: two nodes on this machine, in processes of their own."""

import builtins
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cases.cli import run
from cases.sums import parts_of, world
from unbag.additive._sums import LocalParts, RayParts, fit_parts
from unbag.additive._terms import terms_of
from unbag.lab import EngineError, Plan, RayEngine, RunStore, _engines, run_plan
from unbag.lab._plan import RunSettings

on_ray = pytest.mark.skipif(
    not importlib.util.find_spec("ray"), reason="Ray is not installed: pip install 'unbag[ray]'"
)
pytestmark = pytest.mark.engines

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_DEDUP_LOGS": "0"}
QUIET |= {"RAY_task_oom_retries": "0"}  # a process reads it once
CLUSTER = """
import sys
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
node |= {"no_monitor": True, "include_log_monitor": False}  # which nobody reads here
cluster = Cluster(initialize_head=True, head_node_args=node)
for _ in range(int(sys.argv[1]) - 1):
    cluster.add_node(**node)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@contextmanager
def running_cluster(nodes, **settings):
    """The address of a cluster whose nodes have one CPU each."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as logs:
        env = {**os.environ, **QUIET, **settings, "RAY_TMPDIR": logs}
        words = [sys.executable, "-c", CLUSTER, str(nodes)]
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        try:
            yield next(
                line.strip()
                for line in process.stdout
                if re.fullmatch(r"[0-9.]+:[0-9]+", line.strip())
            )
        finally:
            process.communicate(timeout=60)


@pytest.fixture(scope="module", autouse=True)
def quiet():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUIET.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def cluster(quiet):
    with running_cluster(2) as address:
        yield address
        sys.modules["ray"].shutdown()


@pytest.fixture
def connected(cluster):
    """The cluster, to which this process stays connected: Ray starts workers anew for each
    connection, and they take seconds to import JAX and to compile."""
    import ray

    if not ray.is_initialized():
        ray.init(cluster, log_to_driver=False)
    return cluster


@pytest.fixture
def unconnected(quiet):
    import ray

    ray.shutdown()


# what `unbag reproduce --extra` would read: a task, and methods that meet with accidents
EXTRA = '''
import os, signal, time
from pathlib import Path
import jax.numpy as jnp
import numpy as np
from unbag import weights
from unbag.datasets import Dataset
from unbag.lab import add_method, add_task

FOLDER = Path({folder!r})

def toy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3)).astype(np.float32)
    y = (rng.uniform(size=1200) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(np.float32)
    return Dataset(X[:1000], y[:1000], X[1000:], y[1000:], ("a", "b", "c"))

def plain(score, batch, loss):
    W = weights.upm(batch.size, batch.report, batch.prior, weight=batch.weight)[batch.bag]
    return jnp.sum(W * loss.components(score) * batch.real[:, None])

def waits(score, batch, loss):
    """The first to come here writes its process number and waits for its end."""
    try:
        with (FOLDER / "pid").open("x") as file:
            file.write(str(os.getpid()))
        time.sleep(600)
    except FileExistsError:
        pass
    return plain(score, batch, loss)

def dies(score, batch, loss):
    """What the system does to a process that takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)

def fails(score, batch, loss):
    raise ValueError("no such luck")

def counted():
    data = toy()
    offset, offset_test = (0.3 * X[:, 1] for X in (data.X, data.X_test))
    return data._replace(offset=offset, offset_test=offset_test, kind="total", classes=0)

add_task("ray-toy", toy, model="linear")
add_task("ray-counts", counted, model="linear", kind="total")
for objective in (plain, waits, dies, fails):
    add_method(objective.__name__, objective)
'''
TOY = {"task": "ray-toy", "rates": (0.01, 0.1), "repetitions": 2, "epochs": 3}


@pytest.fixture
def extra(tmp_path):
    import runpy

    path = tmp_path / "extra.py"
    path.write_text(EXTRA.format(folder=str(tmp_path)))
    runpy.run_path(str(path))
    return path


def rows_of(store):
    rows = store.runs().drop_columns("seconds").to_pylist()
    return {tuple(row[name] for name in RunSettings._fields): row for row in rows}


def kill_who_waits(folder):
    """Kill, once it is there, the worker that wrote its number; how it went is in the list."""
    killed = []

    def wait():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not killed:
            text = (folder / "pid").read_text() if (folder / "pid").exists() else ""
            if text:
                os.kill(int(text), signal.SIGKILL)
                killed.append(int(text))
            time.sleep(0.05)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, killed


@on_ray
def test_groups_that_cannot_be_made_are_told_and_the_others_kept(
    unconnected, cluster, extra, tmp_path, capsys
):
    store = RunStore(tmp_path / "store")
    plan = Plan(**TOY, methods=("dies", "fails", "plain"), sizes=(20,))
    with pytest.raises(EngineError) as error:
        run_plan(plan, store, engine=RayEngine(cluster, retries=1))
    told = str(error.value)
    assert told.startswith("2 groups could not be made, all others are in the store: ray-toy ")
    assert "ray-toy fails:log bags of 20 (ValueError: no such luck)" in told
    assert (
        "ray-toy dies:log bags of 20 (its worker died, again and again; mostly that is for lack "
        "of memory. Train fewer runs at once with rates_together and repetitions_together, or "
        "state more CPUs for a task)" in told
    )
    assert {row["method"] for row in rows_of(store).values()} == {"plain"}
    assert capsys.readouterr().out == ""
    for group in plan.groups():
        with store.claim(group.identity()) as free:
            assert free


@on_ray
def test_a_sweep_on_two_nodes_with_a_worker_killed_makes_the_runs_of_this_process(
    connected, extra, tmp_path
):
    here, there = RunStore(tmp_path / "here"), RunStore(tmp_path / "there")
    plan = Plan(**TOY, methods=("waits", "upm"), sizes=(5, 20))
    run_plan(
        Plan(**{**TOY, "repetitions": 1}, methods=("upm",), sizes=(20,)), there
    )  # some of it is there already
    thread, killed = kill_who_waits(tmp_path)
    made = run_plan(plan, there, engine=RayEngine(connected))
    thread.join()
    assert len(killed) == 1
    assert killed[0] != os.getpid()
    assert made == plan.count() - 2
    assert run_plan(plan, there, engine=RayEngine(connected)) == 0
    run_plan(plan, here)
    found, expected = rows_of(there), rows_of(here)
    assert found.keys() == expected.keys()
    assert len(found) == plan.count()
    for settings, row in expected.items():
        # workers have one thread, which orders sums of the last bits in its own way
        curves = {name for name, value in row.items() if isinstance(value, list)}
        assert {**found[settings], **dict.fromkeys(curves)} == {**row, **dict.fromkeys(curves)}
        for name in curves:
            assert found[settings][name] == pytest.approx(row[name], rel=1e-5, nan_ok=True), name


@on_ray
def test_a_worker_gives_every_model_the_offset_once(connected, extra, tmp_path):
    here, there = RunStore(tmp_path / "here"), RunStore(tmp_path / "there")
    plan = Plan("ray-counts", methods=("upm",), sizes=(20,), rates=(0.1,), repetitions=1, epochs=3)
    run_plan(plan, there, engine=RayEngine(connected))
    run_plan(plan, here)
    assert rows_of(there) == rows_of(here)


@on_ray
def test_workers_with_another_unbag_are_refused(connected, extra, tmp_path, monkeypatch):
    """The driver has another source than its workers, which look for themselves."""
    other = other_source(tmp_path / "unbag")
    usual = importlib.util.find_spec
    look = lambda name, *rest: other if name == "unbag" else usual(name, *rest)
    monkeypatch.setattr(importlib.util, "find_spec", look)
    words = ["reproduce", "ray-toy", "--extra", extra, "--method", "plain", "--size", 20]
    words += ["--engine", "ray", "--address", connected, "--store", tmp_path / "store"]
    line = next(
        line for line in run(*words, code=1).stderr.splitlines() if line.startswith("error: ")
    )
    assert re.fullmatch(
        r"error: 1 groups could not be made, all others are in the store: .* \(Workers must have the "
        r"unbag of the driver: source \w{12} given here and source \w{12}\. Install the same on all "
        r"nodes; what is in the store stays\.\)\.",
        line,
    )
    assert RunStore(tmp_path / "store").finished() == set()


def other_source(folder):
    """Where to import an unbag from that has one file only."""
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    return importlib.util.spec_from_file_location("unbag", folder / "__init__.py")


@on_ray
def test_sums_on_two_workers_are_those_of_one_process(connected, tmp_path):
    import ray

    bags = world()
    terms, _ = terms_of(bags.X)
    parts = parts_of(bags, terms)
    far = RayParts.of(parts)
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers lack the tests
    workers = set(far.map(partial(process_of, folder=str(tmp_path))))
    assert os.getpid() not in workers
    assert len(workers) == 2
    model, here = (fit_parts(where, terms, "binary") for where in (far, LocalParts(parts)))
    np.testing.assert_allclose(model.b, here.b, rtol=1e-9, atol=1e-12)


def process_of(part, folder):
    """The process that works on a part; it waits until a second one has taken a part."""
    Path(folder, str(os.getpid())).touch()
    deadline = time.monotonic() + 60
    while len(os.listdir(folder)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    return os.getpid()


@on_ray
def test_a_task_that_runs_out_of_memory_is_told(unconnected, extra, tmp_path):
    starved = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "100"}
    plan = Plan(**TOY, methods=("plain",), sizes=(20,))
    with (
        running_cluster(1, **starved) as address,
        pytest.raises(EngineError, match="ran out of memory, again and again"),
    ):
        run_plan(plan, RunStore(tmp_path), engine=RayEngine(address, retries=0))


@on_ray
@pytest.mark.parametrize("address", ["127.0.0.1:{free}", "nowhere"])
def test_an_address_at_which_nothing_listens_is_refused_at_once(
    unconnected, address, extra, tmp_path, monkeypatch
):
    import ray

    def asked(*words, **options):
        raise AssertionError("Ray would try for many minutes")

    monkeypatch.setattr(ray, "init", asked)
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    engine = RayEngine(address.format(free=free), patience=0.5)
    with pytest.raises(ConnectionError) as error:
        run_plan(
            Plan(**TOY, methods=("plain",), sizes=(20,)),
            RunStore(tmp_path / "store"),
            engine=engine,
        )
    assert str(error.value).startswith(
        "An address must be that of a Ray cluster, as host:6379: none answers at "
    )
    assert str(error.value).endswith(
        "). Start one with ray start --head, or leave the address out to use this machine."
    )


def test_what_ray_is_missing_is_told_with_the_extra_to_install(extra, tmp_path, monkeypatch):
    usual = builtins.__import__

    def without_ray(name, *rest):
        if name == "ray":
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_ray)
    words = ["reproduce", "ray-toy", "--method", "plain", "--size", 20, "--store", tmp_path]
    assert (
        "error: The engine ray must have Ray, which is not installed. Run pip install 'unbag[ray]'."
        in run(*words, "--engine", "ray", code=1).stderr
    )


def test_a_fingerprint_has_all_sources_in_it(tmp_path, monkeypatch):
    before = _engines.fingerprint()
    assert before == _engines.fingerprint()
    source = Path(_engines.__file__).parents[1]
    shutil.copytree(
        source, tmp_path / "unbag", ignore=shutil.ignore_patterns("files", "__pycache__")
    )
    found = importlib.util.spec_from_file_location("unbag", tmp_path / "unbag" / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    assert _engines.fingerprint() == before
    (tmp_path / "unbag" / "lab" / "plans.py").write_text("")
    assert _engines.fingerprint()["source"] != before["source"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert _engines._differ(before, _engines.fingerprint()) == (
        f"Workers must have the unbag of the driver: unbag {before['unbag']}, jax "
        f"{before['jax']}, numpy {before['numpy']}, source {before['source']} given here and unbag "
        "not installed, jax none, numpy none, source none. Install the same on all nodes; what is in "
        "the store stays."
    )
