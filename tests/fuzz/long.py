"""`make fuzz`: many damaged cases of every subject and many kills; writes its figures.

Each subject runs in a process of its own, with a limit on memory and, for each case, on time, so
that what takes too much of either is counted and not waited for.
"""

import argparse
import csv
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "benchmarks" / "results" / "reliability.csv"
FIELDS = ["subject", "cases", "refused", "equal", "tracebacks", "hangs", "silent differences"]
MEMORY, SECONDS = 8 * 2**30, 60
CASES = {
    "Parquet files": 1000,
    "CSV files": 1000,
    "options": 200,
    "model files, damaged": 1000,
    "model files, crafted": 1000,
    "checkpoints": 200,
    "pages": 500,
}
STREAM = """
import sys
from cases.stream import SMALL, network, source
from unbag.stream import StreamLearner, run_stream
learner = StreamLearner(network(), folder=sys.argv[1], every=1, **SMALL)
run_stream(lambda position: source(position, 60), learner)
print(learner.chunks)
"""


class Hang(Exception):
    """A case took longer than a minute."""


def one_subject(name, cases, share):
    """The figures of one subject, in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from fuzz.subjects import SUBJECTS, SilentDifferenceError

    warnings.simplefilter("ignore")
    outcomes = Counter()
    signal.signal(signal.SIGALRM, _hang)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(max(int(cases * share), 1)):
            signal.alarm(SECONDS)
            try:
                outcome = SUBJECTS[name](np.random.default_rng([1, seed]), Path(folder))
            except SilentDifferenceError:
                outcome = "silent differences"
            except Hang:
                outcome = "hangs"
            except BaseException as error:
                outcome = "tracebacks"
                print(f"{name}, seed {seed}: {error!r}", file=sys.stderr)
            finally:
                signal.alarm(0)
            outcomes[outcome] += 1
    return {"subject": name, "cases": sum(outcomes.values())} | {f: outcomes[f] for f in FIELDS[2:]}


def _hang(*_):
    raise Hang


def kills(count):
    """Streams that are killed with SIGKILL at random moments until they end, and are then compared
    with one that never was."""
    rng, killed, same = np.random.default_rng(0), 0, 0
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place, "whole")
        _run(whole)
        number = 0
        while killed < count:
            number += 1
            folder = Path(place, f"killed{number}")
            while (process := _start(folder)) is not None:
                try:
                    process.wait(timeout=float(rng.uniform(2, 12)))
                    break
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    killed += 1
            same += _state(folder) == _state(whole)
    return {"subject": "kills of a stream", "cases": killed, "equal": killed * (same == number)}


def _start(folder):
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
    words = [sys.executable, "-c", STREAM, str(folder)]
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)


def _run(folder):
    assert _start(folder).wait() == 0


def _state(folder):
    from cases.stream import SMALL, network
    from fuzz.subjects import state_of
    from unbag.stream import StreamLearner

    learner = StreamLearner(network(), folder=folder, every=1, **SMALL)
    try:
        return state_of(learner), (folder / "metrics.jsonl").read_bytes()
    finally:
        learner.close()


def main():
    """Run every subject apart, then the kills, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the cases")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--only", help="one subject, in this process")
    chosen = parser.parse_args()
    if chosen.only:
        print(
            ",".join(
                str(v) for v in one_subject(chosen.only, CASES[chosen.only], chosen.share).values()
            )
        )
        return
    rows = []
    for name in CASES:
        begin = time.monotonic()
        words = [sys.executable, __file__, "--only", name, "--share", str(chosen.share)]
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
        done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True)
        values = next(csv.reader(done.stdout.splitlines()[-1:] or [""]))
        # the name of a subject may hold a comma
        row = dict(zip(FIELDS, [name, *values[-6:]], strict=False)) if done.returncode == 0 else {
            "subject": name, "tracebacks": f"ended with {done.returncode}"}  # fmt: skip
        rows.append(row)
        print(row, f"{time.monotonic() - begin:.0f} s", flush=True)
    if chosen.kills:
        rows.append(kills(chosen.kills))
        print(rows[-1], flush=True)
    with FIGURES.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
