"""The race: what a user could take instead of unbag, loss and time, both sides in one run.

    python benchmarks/peers.py [--llp-learn PYTHON] [--out benchmarks/results/peers.csv]

Made Gaussian rows (16,384) and Adult (the same number) in random bags of 16, test log loss, and
seconds of CPU from the start of a process to its predictions, each side in a process of its own, so
that imports and compiling count and other work on the machine does not. llp-learn 1.6.0 pins
PyTorch 2.0 and runs in an environment of its own: make one with Python 3.10, `pip install
llp-learn==1.6.0`, and give its `python`. Without it these rows are skipped, and the table says so.
"""

import argparse
import csv
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import unbag
from unbag import losses
from unbag.datasets import load_adult, make_gaussian

ROWS, SIZE, GOAL = 16_384, 16, 50.0
READ = """import sys
import numpy as np
d = np.load(sys.argv[1])
X, bag, report = d['X'], d['bag'], d['report']
"""
WRITE = "np.save(sys.argv[2], np.asarray(score, float))\n"
TORCH = """import torch
torch.set_num_threads(1); torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
rows = torch.tensor(X[np.argsort(bag, kind='stable')]).reshape(len(report), -1, X.shape[1])
a, p = torch.tensor(report, dtype=torch.float32), float(report.mean())
for epoch in range(30):
    for numbers in torch.randperm(len(a)).split(64):
        z, y = net(rows[numbers]).squeeze(-1), a[numbers]
        {loss}
        adam.zero_grad(); loss.backward(); adam.step()
score = net(torch.tensor(d['X_test'])).squeeze(-1).detach().numpy()
"""
PM = (
    "h = z.sigmoid().mean(1).clamp(1e-6, 1 - 1e-6); "
    "loss = -(y * h.log() + (1 - y) * (1 - h).log()).mean()"
)
EASY = (
    "k = z.shape[1]; t = (k * (y - p) + p)[:, None]; "
    "loss = (torch.nn.functional.softplus(z) - t * z).mean()"
)
LLP_LEARN = """import torch
from llp_learn.{module} import {name}
clf = {name}(lr=3e-3, n_epochs=20, model_type='simple-mlp', hidden_layer_sizes=(32,), device='cpu',
             n_jobs=1, random_state=0{more})
clf.fit(X, bag, report); clf.model.eval()
score = clf.model(torch.tensor(d['X_test'])).detach().numpy(); score = score[:, 1] - score[:, 0]
"""
UNBAG = """import unbag
bags = unbag.bags.Bags(bag, report, X=X)
score = unbag.learners.{fit}.scores(d['X_test'])
"""
SIDES = {
    "unbag.fit": (UNBAG.format(fit="fit(bags)"), "ours"),
    "unbag, additive": (UNBAG.format(fit="Additive().fit(bags)"), "ours"),
    "ridge on bag means": (UNBAG.format(fit="make_learner('bag_means').fit(bags)"), "ours"),
    "PyTorch loop, matching": (TORCH.replace("{loss}", PM), "ours"),
    "PyTorch loop, EasyLLP": (TORCH.replace("{loss}", EASY), "ours"),
    "llp-learn, DLLP": (LLP_LEARN.format(module="dllp", name="DLLP", more=""), "llp-learn"),
    "llp-learn, MixBag": (
        LLP_LEARN.format(
            module="mixbag",
            name="MixBag",
            more=", consistency='none', choice='uniform', confidence_interval=0.005",
        ),
        "llp-learn",
    ),
}


def race(code, python, folder):
    """Scores of the test rows, and seconds of CPU of the process; None where it failed."""
    before, out = resource.getrusage(resource.RUSAGE_CHILDREN), folder / "score.npy"
    out.unlink(missing_ok=True)
    words = [python, "-c", READ + code + WRITE, str(folder / "bags.npz"), str(out)]
    done = subprocess.run(words, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        print(done.stderr[-600:], file=sys.stderr)
        return None, seconds
    return np.load(out), seconds


def rows_of(name, data, python, folder):
    """One row for each side."""
    bags = unbag.random_bags(data.X[:ROWS], data.y[:ROWS], size=SIZE, seed=0)
    X, X_test = np.asarray(bags.X, np.float32), np.asarray(data.X_test, np.float32)
    np.savez(folder / "bags.npz", X=X, bag=bags.bag, report=bags.report, X_test=X_test)
    for side, (code, where) in SIDES.items():
        other = {"ours": sys.executable, "llp-learn": python}[where]
        row = {"task": name, "side": side, "loss": "", "seconds": "", "note": ""}
        if other is None:
            yield row | {"note": "skipped: llp-learn is not installed"}
            continue
        score, seconds = race(code, other, folder)
        if score is None:
            yield row | {"note": "failed"}
            continue
        loss = float(np.mean(losses.log.value(score, data.y_test)))
        yield row | {"loss": f"{loss:.4f}", "seconds": f"{seconds:.1f}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--llp-learn", help="python of an environment with llp-learn")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    tasks = {"gaussian": make_gaussian(ROWS, 10_000, seed=0), "adult": load_adult()}
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            row
            for name, data in tasks.items()
            for row in rows_of(name, data, options.llp_learn, Path(folder))
        ]
    table = Table(*rows[0], title=f"bags of {SIZE}; goal: {GOAL:g} times as fast as llp-learn")
    for row in rows:
        table.add_row(*row.values())
    Console().print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
