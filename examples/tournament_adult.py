"""Choose among a dozen linear models of Adult from bags alone, and say with what confidence.

    python examples/tournament_adult.py

A third of the bags (of 2 people) trains the models; a first tournament on them tells planning how
far apart the models are, and so which beta the other bags support, with a tenth to spare; the
others decide. Labels are looked at once, at the very end.
"""

import numpy as np
from rich.console import Console
from rich.table import Table

import unbag
from unbag import models
from unbag.datasets import load_adult

LOSS = unbag.losses.square


def dozen(bags):
    """Twelve linear models: three methods after few and many epochs, and some that nobody should
    choose."""
    start = unbag.losses.log.trivial_score(bags.prior)
    blank = models.linear(bags.X.shape[1], key=0, start=start)
    scores = {}
    for method in ("upm", "easy", "matching"):
        for epochs in (2, 10, 40):
            model = unbag.train(blank, bags, method, learning_rate=0.01, epochs=epochs).model
            scores[f"{method}, epoch {epochs}"] = lambda X, model=model: np.asarray(model(X))
    best = scores["upm, epoch 40"]
    scores["trivial"] = lambda X: np.full(len(X), start)
    scores["four times too sure"] = lambda X: 4 * best(X)
    scores["turned around"] = lambda X: -best(X)
    return scores


def main():
    console = Console()
    adult = load_adult()
    bags = unbag.random_bags(adult.X, adult.y, size=2, seed=0)
    training, held_out = bags.split(1 / 3, seed=0)
    models = dozen(training)

    rehearsal = unbag.tournament(models, training, beta=0.5, loss=LOSS)
    beta = 1.1 * unbag.planning.regret_supported(len(held_out), rehearsal.problem)
    console.print(
        f"Planning: {len(held_out)} bags of 2 support beta = {beta:.3f} for {len(models)} models."
    )

    result = unbag.tournament(models, held_out, beta=beta, loss=LOSS)
    truth = {
        name: float(LOSS.value(model(adult.X_test), adult.y_test).mean())
        for name, model in models.items()
    }
    chosen = result.names.index(result.chosen)
    table = Table(
        "model",
        "in the pool",
        "Q against the chosen",
        "C",
        "loss with labels",
        title="Adult, from bags of 2",
    )
    for i, name in enumerate(result.names):
        mark = "chosen" if name == result.chosen else "yes" if name in result.pool else "no"
        q, c = result.Q[i, chosen], result.C[i, chosen]
        table.add_row(name, mark, f"{q:+.4f}", f"{c:.4f}", f"{truth[name]:.4f}")
    console.print(table)
    console.print(str(result))
    regret = truth[result.chosen] - min(truth.values())
    console.print(
        f"The labels, looked at now: the chosen model's regret on test data is {regret:.4f}."
    )


if __name__ == "__main__":
    main()
