"""How fast is a stream, and does it grow? Methods against labels, the reader against pyarrow,
memory, and lazy Adam.

The paper's network on made-up clicks. Methods learn the same chunks in turns, so that whatever else
the machine does hits all of them. "learn" is a whole chunk: predict, evaluate, make bags, one pass
of Adam. The reader turns a file of Criteo's format into bucket numbers; pyarrow alone reads the
same file into columns of its own choice.

    python benchmarks/stream.py [--rounds 5] [--rows 65536] [--only step] [--out
    benchmarks/results/stream.csv]
"""

import argparse
import csv
import resource
import tempfile
import time
from functools import partial
from itertools import islice
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from pyarrow import csv as arrow_csv
from rich.console import Console
from rich.table import Table

from unbag import models
from unbag.datasets import BUCKETS, DIMENSIONS, read_clicks, read_criteo, write_clicks
from unbag.datasets._criteo import NAMES
from unbag.stream import StreamLearner

METHODS = ("labels", "upm", "easy", "matching", "likelihood", "anchored")


def _run_ready(run, given) -> None:
    jax.block_until_ready(run(*given))


def timed(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def throughput(rows: int, rounds: int, size: int) -> list[tuple]:
    """Events per second of each method, and the median ratio of its time to that of labels in the
    same round."""
    network = models.embedding_network(BUCKETS, DIMENSIONS, key=0)
    learners = {method: StreamLearner(network, method=method, size=size) for method in METHODS}
    chunks = list(read_clicks(rows=rows, chunks=rounds + 1))
    for learner in learners.values():
        learner.learn(chunks[0])  # compiles
    times = np.zeros((rounds, len(METHODS)))
    for number, chunk in enumerate(chunks[1:]):
        order = np.roll(np.arange(len(METHODS)), number)
        for i in order:
            times[number, i] = timed(lambda i=i, chunk=chunk: learners[METHODS[i]].learn(chunk))
    ratio = np.median(times / times[:, :1], axis=0)
    return [
        (f"learn: {m}, k={size}", rows / np.median(t), r)
        for m, t, r in zip(METHODS, times.T, ratio, strict=True)
    ]


def reading(rows: int, rounds: int) -> list[tuple]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        write_clicks(path, rows)
        ours = lambda: list(read_criteo(path))
        options = (
            arrow_csv.ReadOptions(column_names=list(NAMES)),
            arrow_csv.ParseOptions(delimiter="\t"),
        )
        arrow = lambda: arrow_csv.read_csv(path, *options)
        ours(), arrow()
        times = np.array([(timed(arrow), timed(ours)) for _ in range(rounds)])
    ratio = np.median(times[:, 1] / times[:, 0])
    a, b = np.median(times, axis=0)
    return [("read: pyarrow alone", rows / a, 1.0), ("read: to bucket numbers", rows / b, ratio)]


def resident() -> float:
    """Megabytes in use now."""
    text = Path("/proc/self/statm")
    if not text.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(text.read_text().split()[1]) * resource.getpagesize() / 2**20


def memory(rows: int, size: int) -> list[tuple]:
    """After 10 and after 100 chunks, half of them with reports that come late."""
    network = models.embedding_network(BUCKETS, (4,) * len(BUCKETS), key=0, widths=(16,))
    with tempfile.TemporaryDirectory() as folder:
        learner = StreamLearner(network, size=size, folder=folder, chunk=rows, waiting=4 * rows)
        found = []
        for number, chunk in enumerate(islice(read_clicks(rows=rows), 100), start=1):
            if number % 2:
                learner.learn(chunk)
            else:
                bag = np.arange(rows) // size + number * rows
                learner.events(chunk.X, bag)
                report = chunk.y.reshape(-1, size).mean(axis=1)
                learner.report(np.unique(bag), report, position=chunk.position)
            if number in (10, 100):
                found.append((f"memory after {number} chunks, MB", resident(), np.nan))
        learner.close()
    return found


def storing(rows: int, rounds: int, size: int) -> list[tuple]:
    """Events per second through the store against events per second learned, and a checkpoint.

    "store" is all that an event goes through on disk: written when it arrives, read when its report
    comes, deleted. Ratios are to the time that the paper's network takes to learn the same chunk.
    """
    network = models.embedding_network(BUCKETS, DIMENSIONS, key=0)
    chunks = list(read_clicks(rows=rows, chunks=rounds + 1))
    bag = np.arange(rows) // size
    with tempfile.TemporaryDirectory() as folder:
        learner = StreamLearner(network, method="upm", size=size, folder=folder, every=10**6)
        learner.learn(chunks[0])  # compiles
        store = learner._store
        times = []
        for number, chunk in enumerate(chunks[1:]):
            score, own = np.zeros(rows), (bag + number * rows).tolist()
            learn = timed(lambda chunk=chunk: learner.learn(chunk))
            write = timed(lambda X=chunk.X, s=score, b=own: learner._buffer.add_events(b, X, s))
            for name in dict.fromkeys(own):
                learner._buffer.add_report(name, 0.25)
            take = timed(lambda: learner._buffer.take(rows))
            times.append((learn, write + take, timed(learner.checkpoint)))
        pages, page = (
            store.db.execute(f"PRAGMA {x}").fetchone()[0] for x in ("page_count", "page_size")
        )
        learner.close()
    learn, through, kept = np.median(times, axis=0)
    ratio = np.median([(b / a, c / a) for a, b, c in times], axis=0)
    return [
        (f"store: learn, upm, k={size}", rows / learn, 1.0),
        (f"store: write, read and delete, k={size}", rows / through, ratio[0]),
        (f"store: checkpoint of {pages * page / 2**20:.0f} MB, seconds", kept, ratio[1]),
    ]


def adam(rows: int, rounds: int) -> list[tuple]:
    """A step of dense Adam on the embeddings against one that touches only the rows used; the
    gradient is given.

    Lazy Adam is another algorithm: rows that are not used do not move by their momentum, and their
    moments do not decay. How far the two are apart after a few steps is told too, as a share of the
    distance that dense Adam moved.
    """
    tables = models.embedding_network(BUCKETS, DIMENSIONS, key=0).tables
    X = [jnp.asarray(chunk.X) for chunk in islice(read_clicks(rows=4096), rounds + 3)]
    rng = np.random.default_rng(0)
    used = [jnp.asarray(rng.normal(size=(4096, d)) * 1e-3, jnp.float32) for d in DIMENSIONS]
    dense_rule = optax.scale_by_adam()

    @partial(jax.jit, donate_argnums=(0, 1))
    def dense(tables, state, X):
        slope = tuple(
            jnp.zeros_like(t).at[X[:, j]].add(g)
            for j, (t, g) in enumerate(zip(tables, used, strict=True))
        )
        updates, state = dense_rule.update(slope, state)
        return tuple(t - 1e-3 * u for t, u in zip(tables, updates, strict=True)), state

    @partial(jax.jit, donate_argnums=(0, 1))
    def lazy(tables, state, X):
        count, m, v = state
        new = [], [], []
        for j, (t, g) in enumerate(zip(tables, used, strict=True)):
            row, where = jnp.unique(
                X[:, j], size=min(4096, len(t)), fill_value=len(t), return_inverse=True
            )
            slope = jnp.zeros((len(row), t.shape[1])).at[where].add(g)
            a = 0.9 * m[j].at[row].get(mode="fill", fill_value=0) + 0.1 * slope
            b = 0.999 * v[j].at[row].get(mode="fill", fill_value=0) + 0.001 * slope**2
            scaled = (a / (1 - 0.9 ** (count + 1))) / (
                jnp.sqrt(b / (1 - 0.999 ** (count + 1))) + 1e-8
            )
            for store, old, change in zip(new, (t, m[j], v[j]), (None, a, b), strict=True):
                put = old.at[row].add(-1e-3 * scaled, mode="drop") if change is None else None
                store.append(put if change is None else old.at[row].set(change, mode="drop"))
        return tuple(new[0]), (count + 1, tuple(new[1]), tuple(new[2]))

    copy = lambda: tuple(jnp.array(t) for t in tables)
    zeros = lambda: tuple(jnp.zeros_like(t) for t in tables)
    one, two = (copy(), dense_rule.init(tables)), (copy(), (jnp.float32(0), zeros(), zeros()))
    times = []
    for number, x in enumerate(X):
        start = time.perf_counter()
        one = jax.block_until_ready(dense(*one, x))
        middle = time.perf_counter()
        two = jax.block_until_ready(lazy(*two, x))
        if number >= 3:
            times.append((middle - start, time.perf_counter() - middle))
    gap = sum(float(jnp.sum((a - b) ** 2)) for a, b in zip(one[0], two[0], strict=True))
    moved = sum(float(jnp.sum((a - b) ** 2)) for a, b in zip(one[0], tables, strict=True))
    a, b = np.median(times, axis=0) * 1e3
    return [
        ("adam: dense, ms", a, 1.0),
        ("adam: rows used only, ms", b, float(np.median([y / x for x, y in times]))),
        ("adam: distance apart / moved", float(np.sqrt(gap / moved)), np.nan),
    ]


def parts(rows: int) -> list[tuple]:
    """Where a chunk's time goes, in seconds: making, predicting, evaluating, learning."""
    from unbag.bags import random_bags
    from unbag.stream._monitor import Monitor, label_metrics

    chunk = next(read_clicks(rows=rows))
    learner = StreamLearner(
        models.embedding_network(BUCKETS, DIMENSIONS, key=0), method="upm", size=64
    )
    learner.learn(chunk)
    score, bags = learner.predict(chunk.X), random_bags(None, chunk.y, size=64, seed=0)
    look = lambda: (Monitor(8).observe(score[bags.rows], bags, 1), label_metrics(score, chunk.y))
    steps = {
        "make the made-up clicks": lambda: next(read_clicks(rows=rows)),
        "predict": lambda: learner.predict(chunk.X),
        "evaluate": look,
        "all of learn": lambda: learner.learn(chunk),
    }
    return [
        (f"seconds: {name}", float(np.median([timed(work) for _ in range(3)])), np.nan)
        for name, work in steps.items()
    ]


def step_parts(batch: int = 4096) -> list[tuple]:
    """Where the time of one step goes: each part compiled by itself, ratio to the step of all of
    them."""
    model = models.embedding_network(BUCKETS, DIMENSIONS, key=0)
    X, optimizer = jnp.asarray(next(read_clicks(rows=batch)).X), optax.adam(1e-3)
    y = jnp.asarray(np.random.default_rng(0).uniform(size=batch) < 0.25, jnp.float32)
    columns = lambda m: jnp.concatenate(
        [table[X[:, i]] for i, table in enumerate(m.tables)], axis=1
    )
    loss = lambda m: jnp.mean(optax.sigmoid_binary_cross_entropy(m(X), y))
    dense, slope, state = columns(model), jax.grad(loss)(model), optimizer.init(model)

    def step(m, s):
        updates, s = optimizer.update(jax.grad(loss)(m), s)
        return optax.apply_updates(m, updates), s

    work = {
        "all": (jax.jit(step), model, state),
        "rows of the tables": (jax.jit(columns), model),
        "forward, dense layers": (jax.jit(lambda m: m.head(dense)), model),
        "forward and backward": (jax.jit(jax.grad(loss)), model),
        "Adam": (jax.jit(lambda g, s, m: optimizer.update(g, s, m)), slope, state, model),
    }
    seconds = {}
    for name, (run, *given) in work.items():
        jax.block_until_ready(run(*given))
        seconds[name] = np.median([timed(partial(_run_ready, run, given)) for _ in range(9)])
    return [
        (f"step of {batch}, ms: {name}", 1000 * s, s / seconds["all"])
        for name, s in seconds.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2**16)
    parser.add_argument(
        "--only", nargs="*", help="memory, reading, store, adam, throughput, chunk, step"
    )
    parser.add_argument(
        "--out", type=Path, help="rows of what was measured take the place of old ones"
    )
    options = parser.parse_args()
    some = max(options.rounds, 3)
    measures = {
        "memory": lambda: memory(4096, 64),
        "reading": lambda: reading(min(options.rows, 2**16), some),
        "store": lambda: storing(options.rows, some, 64),
        "adam": lambda: adam(options.rows, some),
        "throughput": lambda: throughput(options.rows, options.rounds, 64),
        "chunk": lambda: parts(options.rows),
        "step": step_parts,
    }
    found = [row for name in options.only or measures for row in measures[name]()]
    table = Table("what", "value", "time ratio", title=f"a stream with chunks of {options.rows}")
    for what, value, ratio in found:
        table.add_row(
            what,
            f"{value:,.3g}" if value < 100 else f"{value:,.0f}",
            "" if np.isnan(ratio) else f"{ratio:.3f}",
        )
    table.caption = (
        "learn, read and store in events per second; ratio to labels, pyarrow, learning, dense, "
        "step; goal for learn 1.05"
    )
    Console().print(table)
    if options.out:
        rows = {w: (f"{v:.5g}", "" if np.isnan(r) else f"{r:.4f}") for w, v, r in found}
        if options.out.exists():
            with options.out.open(newline="") as file:
                rows = {w: old for w, *old in list(csv.reader(file))[1:]} | rows
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["what", "value", "time_ratio"])
            writer.writerows((w, *values) for w, values in rows.items())


if __name__ == "__main__":
    main()
