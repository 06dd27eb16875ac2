"""The paper's CNN on images: for each bag size and method, the rate is looked for in the first
repetition, and the best one is repeated. Runs that are there are not made again, and several
processes may share a store: each takes the next bag size and method that nobody works on.

    python tools/paper_cnn.py mnist 4 16 64 [--repetitions 5] [--start trivial] [--store results]
"""

import argparse
import os

import numpy as np

from unbag.lab import Plan, RunStore, run_plan
from unbag.lab._catalogue import smoothing_of

METHODS = ("upm", "matching", "easy", "anchored:square")
RATES = [float(f"{rate:.6g}") for rate in np.logspace(-7, -1, 16)]  # the paper's, as in plans
PLAN = {"model": "cnn", "batch": 256, "epochs": 60}


def loss_of(plan: Plan, store: RunStore) -> float:
    """The least test loss of a plan's only run, which is made if it is not there."""
    run_plan(plan, store)
    (way,), own = plan.ways, plan.experiment._asdict()
    own |= {"size": plan.sizes[0], "rate": plan.rates[0], "repetition": 0, "holdout": 0.0}
    own |= {**way._asdict(), "smoothing": smoothing_of(way, plan.smoothing)}
    (history,) = store.runs(("test_loss",), **own)["test_loss"].to_pylist()
    which = f"{own['task']} {way} {own['size']} {own['rate']:.3g}"
    print(f"{which}: {np.round(history, 4)}", flush=True)
    return min((loss for loss in history if np.isfinite(loss)), default=np.inf)


def best_rate(settings: dict, store: RunStore, first: float, most: int) -> float:
    """The rate that is better than both its neighbours in the first repetition, of at most so many
    rates."""
    losses: dict[int, float] = {}

    def at(place: int) -> float:
        if place not in losses and len(losses) < most and 0 <= place < len(RATES):
            losses[place] = loss_of(Plan(**settings, rates=[RATES[place]], repetitions=1), store)
        return losses.get(place, np.inf)

    place, last = int(np.argmin(np.abs(np.log(RATES) - np.log(first)))), None
    while place != last:
        last, place = place, min((place, place + 1, place - 1), key=at)
    return RATES[place]


def make_cell(settings: dict, store: RunStore, given: argparse.Namespace) -> None:
    """All runs of a bag size and method, unless another process makes them."""
    which = " ".join([given.task, given.start, *map(str, settings["sizes"] + settings["methods"])])
    with store.claim(f"cnn {which}".replace(" ", "-").replace(":", "-")) as mine:
        if not mine:
            return
        rate = best_rate(settings, store, given.rate, given.rates)
        for count in range(2, given.repetitions + 1):  # each is kept when it is there
            run_plan(Plan(**settings, rates=[rate], repetitions=count), store)
        print(f"{which}: {given.repetitions} at {rate:.3g}", flush=True)


def main() -> None:
    """Read the words and make the cells in their order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("sizes", nargs="+", type=int)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--start", default="usual")
    parser.add_argument("--rate", type=float, default=1e-3, help="the first that is tried")
    parser.add_argument("--rates", type=int, default=4, help="that are tried at most")
    parser.add_argument("--store", default="results")
    given = parser.parse_args()
    store = RunStore(given.store)
    for size in given.sizes:
        for method in given.methods:
            own = {"sizes": [size], "methods": [method]}
            make_cell({"task": given.task, "start": given.start, **PLAN, **own}, store, given)


if __name__ == "__main__":
    os.environ.setdefault("NPROC", "2")  # XLA waits for PyTorch in a second thread
    main()
