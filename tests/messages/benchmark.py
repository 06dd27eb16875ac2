"""Bad input of benchmarks, and the whole message that it gets."""

import tempfile
from pathlib import Path

from unbag.lab import (
    Benchmark,
    BenchmarkRun,
    add_learner,
    as_learner,
    benchmark_preset,
    leaderboard,
    of_blocks,
    read_benchmark,
)


def read_text(text):
    """A file of results with this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "theirs.csv"
        path.write_text(text)
        return read_benchmark(path)


RUN = BenchmarkRun("moon", "random", 8, 0, 0, "", "a", test_loss=0.5)

MESSAGES = [
    (
        lambda: benchmark_preset("week"),
        "A preset must be one of quick, rates, noise, bags, laptop, night: 'week' given. Choose one of "
        "these.",
    ),
    (
        lambda: Benchmark(bags_by=("alphabet",)),
        "A way to make bags must be one of random, naive, kmeans, feature, dirichlet, simple, "
        "intermediate, hard: 'alphabet' given. Choose one of these.",
    ),
    (
        lambda: Benchmark(sizes=(0, 8)),
        "Bag sizes, repetitions and noise of a benchmark must be positive: 0, 2 and 0 given. Raise them; "
        "an epsilon of 0 stands for exact counts.",
    ),
    (
        lambda: read_text("task,size,method\nadult,8,a\n"),
        "Results must have the columns task, size, method, test_loss: theirs.csv lacks test_loss. "
        "Add it.",
    ),
    (
        lambda: of_blocks(Benchmark(), [RUN]),
        "Results from outside must be of the benchmark's tasks, bags_by and sizes: none of 1 is. "
        "Name the blocks as the leaderboard does.",
    ),
    (
        lambda: leaderboard([RUN]),
        "A leaderboard must have two methods with runs in every block: 1 given. Run more methods.",
    ),
    (
        lambda: as_learner(3),
        "A learner to add must be a learner, a module of PyTorch, or have fit and predict_proba: "
        "int given. See docs/adding.md.",
    ),
    (
        lambda: add_learner("em", 3),
        "A learner to add must have a new name of letters, digits and _: 'em' given. Choose another.",
    ),
]
