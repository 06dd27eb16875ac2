"""How time and memory grow with the number of instances, station by station, each in a process of
its own.

    python benchmarks/scale.py [--sizes 100000 1000000 10000000] [--stations join sql ...] [--folder
    FOLDER]

Made-up clicks in bags of 64 with four numbers and a device each. What streams (check, features,
sql, losses) is also measured at 100,000,000 with --stream; the others hold their features in memory
by design. A line is written to benchmarks/results/scale.csv as soon as it is there, and is not
measured again. `before_mb` is the memory in use when the station's own work begins, its inputs
included, `peak_mb` the most in use until its end. `seconds` passed on the clock and `cpu_seconds`
on all cores together; `load` is the load average of the machine, which has `cores` cores: above
that number others took part of them, and only the CPU's seconds can be compared.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent / "results" / "scale.csv"
BAG, FEATURES, MODELS, CHUNK, LIMIT, WARM = 64, 4, 8, 2**16, "1GB", 2**14
ROUNDS = 10
FIELDS = (
    "station",
    "streams",
    "rows",
    "bags",
    "seconds",
    "cpu_seconds",
    "peak_mb",
    "before_mb",
    "load",
    "cores",
    "day",
)


def make_files(folder: Path, rows: int) -> tuple[Path, Path]:
    """Events and reports as Parquet, made once for each size."""
    import duckdb

    events, reports = folder / f"events-{rows}.parquet", folder / f"reports-{rows}.parquet"
    if not reports.exists():
        numbers = ", ".join(f"random()::float as x{j}" for j in range(FEATURES))
        with duckdb.connect(
            config={"memory_limit": LIMIT, "temp_directory": str(folder)}
        ) as connection:
            connection.execute(
                f"copy (select i // {BAG} as bag, {numbers}, ['phone', 'desk', 'tablet'][1 + i % "
                f"3] as device from range({rows}) t(i)) to '{events}' (row_group_size 122880)"
            )
            connection.execute(
                "copy (select i as bag, floor(random() * 20)::int as sales from "
                f"range({-(-rows // BAG)}) t(i)) to '{reports}'"
            )
    return events, reports


def make_bags(rows: int, seed: int = 0, *, features: bool = True):
    """Bags whose reports fit their features."""
    from unbag import Bags

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, FEATURES)).astype(np.float32)
    y = rng.random(rows, dtype=np.float32) < 1 / (1 + np.exp(2 - X.sum(axis=1) / 2))
    bag = np.arange(rows) // BAG
    report = np.bincount(bag, weights=y) / np.bincount(bag)
    return Bags(bag, report, X=X if features else None), X.sum(axis=1) / 2 - 2


def check(folder, rows):
    """Are the tables usable? The files are read in batches."""
    from unbag import check_tables

    paths = make_files(folder, rows)
    return lambda: check_tables(*paths, on="bag", total="sales").usable


def join(folder, rows):
    """From files to bags with a matrix of features."""
    import unbag

    paths = make_files(folder, rows)
    return lambda: len(unbag.join(*paths, on="bag", total="sales"))


def features(folder, rows):
    """The features of all events, batch by batch, as prediction makes them."""
    from unbag import plan_features

    events, _ = make_files(folder, rows)
    return lambda: sum(
        len(part.X) for part in plan_features(events, leave_out=["bag"]).batches(events)
    )


def weights(folder, rows):
    """The target and sample weight of each row, with NumPy: by bag, then for its rows."""
    from unbag import weights as methods

    bags, _ = make_bags(rows, features=False)

    def work():
        made = methods.pseudo_labels(methods.upm(bags.size, *bags.components()))
        target, _ = (by_bag[bags.bag] for by_bag in made)
        return target[0]

    return work


def sql(folder, rows):
    """From files to a file of targets, by DuckDB with a gigabyte."""
    from unbag.sql import write_targets

    paths, out = make_files(folder, rows), folder / f"targets-{rows}.parquet"
    return lambda: (
        write_targets(*paths, out, memory=LIMIT, on="bag", total="sales").bags,
        out.unlink(),
    )


def epoch(folder, rows):
    """One epoch of a linear model, anchored."""
    import unbag

    bags, _ = make_bags(rows)
    model = unbag.models.linear(FEATURES, key=0)
    return lambda: unbag.train(model, bags, learning_rate=0.01, epochs=1).history


def evaluate(folder, rows, *, ordered=True):
    """All metrics with their intervals, from chunks of scores; making the chunks is part of the
    time."""
    from unbag.metrics import Evaluator

    def work():
        evaluator = Evaluator(ordered=ordered)
        for number in range(-(-rows // CHUNK)):
            bags, score = make_bags(min(CHUNK, rows - number * CHUNK), number, features=False)
            evaluator = evaluator.update(score, bags)
        return evaluator.compute()["log_loss"].value

    return work


def losses(folder, rows):
    """The same without AUC and calibration, which need to know where each score lies."""
    return evaluate(folder, rows, ordered=False)


def tournament(folder, rows):
    """Eight models, as functions of the features."""
    import unbag

    bags, _ = make_bags(rows)
    models = [
        lambda X, c=c: X.sum(axis=1) * c - 2
        for c in np.linspace(0.1, 0.8, MODELS).astype(np.float32)
    ]
    return lambda: unbag.tournament(models, bags, beta=0.1, groups=60).chosen


def disk(folder, rows):
    """The additive model from files, as `unbag train --memory 1GB` makes it, in two folds."""
    from unbag.learners import fit_files

    paths = make_files(folder, rows)
    return lambda: fit_files(*paths, on="bag", total="sales", memory=LIMIT, folds=2).fitted.weights


def additive(folder, rows):
    """The additive model of bags in memory, one fit."""
    from unbag.learners import Additive

    bags, _ = make_bags(rows)
    return lambda: Additive().fit(bags).scores(np.ones((1, FEATURES)))[0]


def trees(folder, rows):
    """Boosted trees in five folds, ten rounds each."""
    from unbag.learners import Trees

    bags, _ = make_bags(rows)
    learner = Trees(rounds=ROUNDS, depth=(3,), patience=ROUNDS + 1)
    return lambda: learner.fit(bags).rounds


def labels(folder, rows):
    """Plain LightGBM on a label of each row, with the parameters and as many rounds as `trees`."""
    import lightgbm

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, FEATURES)).astype(np.float32)
    y = rng.random(rows, dtype=np.float32) < 1 / (1 + np.exp(2 - X.sum(axis=1) / 2))
    params = {"objective": "binary", "num_leaves": 8, "max_depth": 3, "max_bin": 63, "verbose": -1}
    params |= {"feature_fraction": 0.5, "num_threads": 1, "force_col_wise": True}
    return lambda: lightgbm.train(params, lightgbm.Dataset(X, y), 5 * ROUNDS).num_trees()


def predict(folder, rows):
    """Scores of the additive model, batch by batch from a file."""
    import unbag
    from unbag.learners import Additive

    events, _ = make_files(folder, rows)
    small = unbag.join(*make_files(folder, WARM), on="bag", total="sales")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these reports know nothing of the features
        model = Additive().fit(small.as_read())
    return lambda: sum(len(model.scores(batch)) for batch in small.plan.tables(events))


STATIONS = {
    f.__name__: f
    for f in (
        check,
        join,
        features,
        weights,
        sql,
        disk,
        additive,
        trees,
        labels,
        epoch,
        predict,
        evaluate,
        losses,
        tournament,
    )
}
STREAMS = ("check", "features", "predict", "sql", "losses")


def resident() -> float:
    """Megabytes in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def measure(station: str, rows: int, folder: Path) -> dict:
    STATIONS[station](folder, WARM)()  # imports, and compiles
    work = STATIONS[station](folder, rows)
    Path("/proc/self/clear_refs").write_text("5")  # the highest use so far is forgotten
    before, began, busy = resident(), time.perf_counter(), time.process_time()
    work()
    took, busy = time.perf_counter() - began, time.process_time() - busy
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    return {
        "seconds": f"{took:.3f}",
        "cpu_seconds": f"{busy:.3f}",
        "peak_mb": f"{peak:.0f}",
        "before_mb": f"{before:.0f}",
    }


def known() -> list[dict]:
    if not OUT.exists():
        return []
    with OUT.open() as file:
        return list(csv.DictReader(file))


def measure_apart(station: str, rows: int, folder: Path) -> dict:
    """One line, measured by a process of its own."""
    words = [
        sys.executable,
        __file__,
        "--cell",
        station,
        "--sizes",
        str(rows),
        "--folder",
        str(folder),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{station} at {rows:,} rows failed:\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    place = {
        "load": f"{os.getloadavg()[0]:.1f}",
        "cores": os.cpu_count(),
        "day": time.strftime("%Y-%m-%d"),
    }
    about = {
        "station": station,
        "streams": int(station in STREAMS),
        "rows": rows,
        "bags": -(-rows // BAG),
    }
    return about | found | place


def write_line(line: dict) -> None:
    new = not OUT.exists()
    with OUT.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(line)


def exponent(x, y) -> float:
    """b of y = a x^b, fitted on logarithms.

    >>> round(exponent([1, 10, 100], [2, 20, 200]), 6)
    1.0
    """
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0])


def growth(lines: list[dict]) -> list[tuple]:
    """Of each station: its largest line, and the exponents of the CPU's time and of peak memory
    over all sizes."""
    found = []
    for station in STATIONS:
        own = sorted(
            (line for line in lines if line["station"] == station),
            key=lambda line: int(line["rows"]),
        )
        if len(own) > 1:
            column = lambda name, own=own: [float(line[name]) for line in own]
            rows = column("rows")
            found.append(
                (
                    station,
                    own[-1],
                    exponent(rows, column("cpu_seconds")),
                    exponent(rows, column("peak_mb")),
                )
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--stations", nargs="+", choices=STATIONS, default=list(STATIONS))
    parser.add_argument(
        "--stream", action="store_true", help="also 100,000,000 rows for what streams"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "scale-of-unbag"
    )
    parser.add_argument(
        "--cell", choices=STATIONS, help="measure one station here, and print it as JSON"
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.cell:
        print(json.dumps(measure(options.cell, options.sizes[0], options.folder)))
        return
    cells = [(station, rows) for rows in options.sizes for station in options.stations]
    cells += [
        (station, 10**8) for station in options.stations if options.stream and station in STREAMS
    ]
    for station, rows in cells:
        if not any(line["station"] == station and int(line["rows"]) == rows for line in known()):
            line = measure_apart(station, rows, options.folder)
            write_line(line)
            print(*line.values(), flush=True)
    for station, line, time_grows, memory_grows in growth(known()):
        own = float(line["peak_mb"]) - float(line["before_mb"])
        print(
            f"{station:11s} {int(line['rows']):>11,} rows {float(line['cpu_seconds']):8.1f} s of "
            f"CPU  {own:7.0f} MB of its own  time ~ rows^{time_grows:.2f}  peak memory ~ "
            f"rows^{memory_grows:.2f}"
        )


if __name__ == "__main__":
    main()
