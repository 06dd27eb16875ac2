"""What each process of tests/test_parallel.py runs: train on all devices, and where there is one
process also on one of them; write the parameters.

python parallel_training.py FOLDER DEVICES [ADDRESS PROCESSES NUMBER]
"""

import os
import pickle
import sys
import warnings
from pathlib import Path

METHODS = ("upm", "anchored", "matching", "likelihood")
BY_PROCESSES = ("upm", "likelihood")  # sums over all instances, and sums over each bag


def main(folder, devices, *others):
    warnings.simplefilter("error")
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={devices}"
    import jax

    if others:
        jax.distributed.initialize(
            others[0], num_processes=int(others[1]), process_id=int(others[2])
        )
    import numpy as np

    import unbag

    number, processes = jax.process_index(), jax.process_count()
    assert len(jax.devices()) == int(devices) * processes
    split = (
        {} if others else {"microbatch": 40}
    )  # bags larger than the memory are tested in one process
    rng = np.random.default_rng(0)
    X = rng.normal(size=(520, 3)).astype(np.float32)
    y = (rng.uniform(size=520) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    bags = unbag.random_bags(
        X[:400], y[:400], size=7, seed=0
    )  # 7 rows on 2 or 4 devices: bags lie across them
    held_out = unbag.random_bags(X[400:], y[400:], size=7, seed=0)
    model = unbag.models.mlp(3, (4,), key=0)
    found = {"start": flat(model)}
    for method in BY_PROCESSES if others else METHODS:
        options = {"epochs": 2, "batch": 100, "learning_rate": 0.02}
        options |= {"held_out": held_out, "test": (X[400:], y[400:])} if method == "upm" else {}
        run = unbag.train(model, bags, method, devices="all", **split, **options)
        found |= {f"{method}-all": flat(run.model)}
        found |= {f"{method}-{name}-all": values for name, values in run.history.items()}
        if not others:
            run = unbag.train(model, bags, method, **options)
            found |= {f"{method}-one": flat(run.model)}
            found |= {f"{method}-{name}-one": values for name, values in run.history.items()}
    found |= stream(model, X, y, "all", devices="all", **split)
    if not others:
        found |= stream(model, X, y, "one")
    Path(folder, f"evaluator-{number}").write_bytes(pickle.dumps(evaluate(bags, number, processes)))
    np.savez(Path(folder, f"{number}.npz"), **found)


def flat(model):
    import jax
    import numpy as np

    return np.concatenate(
        [np.ravel(leaf) for leaf in jax.tree.leaves(model) if isinstance(leaf, jax.Array)]
    )


def stream(model, X, y, name, **options):
    from unbag.datasets import Chunk
    from unbag.stream import StreamLearner

    learner = StreamLearner(model, size=7, batch=100, rate=0.02, **options)
    for start in (0, 260):
        learner.learn(Chunk(X[start : start + 260], y=y[start : start + 260]))
    return {
        f"stream-{name}": flat(learner.model),
        f"stream-predict-{name}": learner.predict(X[:101]),
    }


def evaluate(bags, number, processes):
    """What this process saw of its own bags, and of all."""
    import numpy as np

    from unbag.metrics import Evaluator

    own = bags.take(np.arange(number, len(bags), processes))
    return tuple(Evaluator().update(2 * part.X[:, 0], part) for part in (own, bags))


if __name__ == "__main__":
    main(*sys.argv[1:])
