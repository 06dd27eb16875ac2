"""The race: what a user could take instead of unbag, loss and time, both sides in one run.

    python benchmarks/peers.py [--llp-learn PYTHON] [--out benchmarks/results/peers.csv]

Made Gaussian rows (16,384) and Adult (the same number) in random bags of 16, test log loss, and
seconds of CPU on one thread, each side in a process of its own: of the whole process, imports and
compiling included, and of the fit and its predictions (`fit`). llp-learn 1.6.0 pins PyTorch 2.0 and
runs in an environment of its own: make one with Python 3.10, `pip install llp-learn==1.6.0`, and
give its `python`. Without it these rows are skipped, and the table says so. All its methods with
probabilities run, networks with its own defaults and 20 epochs; `workers` are its default too.
"""

import argparse
import csv
import os
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
READ = """import os, sys
import numpy as np
d = np.load(sys.argv[1])
X, bag, report = d['X'], d['bag'], d['report']
{imports}
start = sum(os.times()[:4])
"""
WRITE = "np.save(sys.argv[2], np.asarray(score, float)); print(sum(os.times()[:4]) - start)\n"
TORCH = """torch.manual_seed(0)
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
LLP_LEARN = """clf = {name}({more}random_state=0)
clf.fit(X, bag, report)
"""
NETWORK = """clf.model.eval()
score = clf.model(torch.tensor(d['X_test'])).detach().numpy(); score = score[:, 1] - score[:, 0]
"""
LINEAR = "score = clf.model.decision_function(d['X_test'])\n"
UNBAG = """bags = unbag.bags.Bags(bag, report, X=X)
score = unbag.learners.{fit}.scores(d['X_test'])
"""
# without worker processes, which cost it three quarters of its CPU, and with them, its default
EPOCHS = "lr=3e-3, n_epochs=20, model_type='simple-mlp', device='cpu', n_jobs={workers}, "
MIXED = "consistency='none', choice='uniform', confidence_interval=0.005, "
NETWORKS = {  # class, worker processes, settings without a default
    "DLLP": ("DLLP", 0, ""),
    "MixBag": ("MixBag", 0, MIXED),
    "MixBag, workers": ("MixBag", -1, MIXED),
    "LLPFC": ("LLPFC", 0, ""),
    "LLPVAT": ("LLPVAT", 0, "xi=1e-6, eps=6.0, ip=1, "),
}
SIDES = {  # imports, code, environment
    "unbag.fit": ("import unbag", UNBAG.format(fit="fit(bags)"), "ours"),
    "unbag, additive": ("import unbag", UNBAG.format(fit="Additive().fit(bags)"), "ours"),
    "ridge on bag means": (
        "import unbag",
        UNBAG.format(fit="make_learner('bag_means').fit(bags)"),
        "ours",
    ),
    "PyTorch loop, matching": ("import torch", TORCH.replace("{loss}", PM), "ours"),
    "PyTorch loop, EasyLLP": ("import torch", TORCH.replace("{loss}", EASY), "ours"),
    "llp-learn, EM": (
        "from llp_learn.em import EM\nfrom sklearn.linear_model import LogisticRegression",
        LLP_LEARN.format(name="EM", more="LogisticRegression(), ") + LINEAR,
        "llp-learn",
    ),
} | {
    f"llp-learn, {side}": (
        f"import torch\nfrom llp_learn.{name.lower()} import {name}",
        LLP_LEARN.format(name=name, more=EPOCHS.format(workers=workers) + more) + NETWORK,
        "llp-learn",
    )
    for side, (name, workers, more) in NETWORKS.items()
}


def race(imports, code, python, folder):
    """Scores of the test rows, and seconds of CPU of the process and of its fit; None where it
    failed."""
    before, out = resource.getrusage(resource.RUSAGE_CHILDREN), folder / "score.npy"
    out.unlink(missing_ok=True)
    program = READ.replace("{imports}", imports) + code + WRITE
    words = [python, "-c", program, str(folder / "bags.npz"), str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        print(done.stderr[-600:], file=sys.stderr)
        return None, seconds, 0.0
    return np.load(out), seconds, float(done.stdout.split()[-1])


def rows_of(name, data, python, folder):
    """One row for each side."""
    bags = unbag.random_bags(data.X[:ROWS], data.y[:ROWS], size=SIZE, seed=0)
    X, X_test = np.asarray(bags.X, np.float32), np.asarray(data.X_test, np.float32)
    np.savez(folder / "bags.npz", X=X, bag=bags.bag, report=bags.report, X_test=X_test)
    for side, (imports, code, where) in SIDES.items():
        other = {"ours": sys.executable, "llp-learn": python}[where]
        row = {"task": name, "side": side, "loss": "", "seconds": "", "fit": "", "note": ""}
        if other is None:
            yield row | {"note": "skipped: llp-learn is not installed"}
            continue
        score, seconds, fit = race(imports, code, other, folder)
        if score is None:
            yield row | {"note": "failed"}
            continue
        loss = float(np.mean(losses.log.value(score, data.y_test)))
        yield row | {"loss": f"{loss:.4f}", "seconds": f"{seconds:.2f}", "fit": f"{fit:.2f}"}


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
