"""The picture at the top of the README: totals in, probabilities out, judged without labels.

python docs/pictures/idea.py    # writes docs/pictures/idea.png
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import unbag
from unbag.datasets import read_adult

SIZE, SHOWN = 64, 9
BLUE, ORANGE, GREY = "#2a6fbb", "#d9772b", "#777777"


def totals(axes: plt.Axes, count: np.ndarray) -> None:
    """The reports of the first bags."""
    where = np.arange(SHOWN)[::-1]
    axes.barh(where, SIZE, color="#e9eef4")
    axes.barh(where, count[:SHOWN], color=BLUE)
    for y, c in zip(where, count, strict=False):
        axes.text(c + 1.5, y, f"{c:.0f} of {SIZE}", va="center", fontsize=8)
    axes.set_yticks(where, [f"bag {i + 1}" for i in range(SHOWN)])
    axes.set_xticks([])
    axes.set_title(f"In: {len(count)} totals of groups\n(who is in a bag, not who earns more)")


def probabilities(axes: plt.Axes, predicted: np.ndarray, truth: np.ndarray) -> None:
    """The predictions for people that nobody had labels of, by the label that was kept aside."""
    edges = np.linspace(0, 1, 31)
    for label, colour, words in ((0, GREY, "others"), (1, ORANGE, "earn over $50,000")):
        axes.hist(predicted[truth == label], edges, color=colour, alpha=0.65, label=words)
    axes.set(yscale="log", xlabel="predicted probability", ylabel="people")
    axes.legend(frameon=False, fontsize=8)
    axes.set_title("Out: a probability for each person\n(labels shown only to check)")


def judgement(axes: plt.Axes, fitted: unbag.Fitted, predicted: np.ndarray, truth: np.ndarray):
    """What the bags say of the model beside what the labels of other people say."""
    assert fitted.evaluation is not None
    score = np.log(predicted / (1 - predicted))
    labels = unbag.evaluate_labels(score, truth, scale="score")
    names = {"log_loss": "log loss", "brier": "Brier score", "auc": "AUC"}
    for y, (name, _) in enumerate(reversed(names.items())):
        e = fitted.evaluation[name]
        axes.plot([e.low, e.high], [y, y], color=BLUE, lw=5, alpha=0.4, solid_capstyle="butt")
        axes.plot(e.value, y, "|", color=BLUE, ms=14, mew=2)
        axes.plot(labels[name].value, y, "D", color=ORANGE, ms=6)
    axes.plot([], [], color=BLUE, lw=5, alpha=0.4, label="from totals, 95% interval")
    axes.plot([], [], "D", color=ORANGE, ms=6, label="from 16,281 labels")
    axes.set_yticks(range(len(names)), list(reversed(names.values())))
    axes.set(xlim=(0, 1), ylim=(-0.6, len(names) - 0.2))
    axes.legend(frameon=False, fontsize=8, loc="upper center")
    axes.set_title("And how good it is,\nwithout a label")


def main() -> None:
    """Fit the default model to bags of Adult and draw the three panels."""
    (people, rich), (others, truth) = read_adult(), read_adult("test")
    bags = unbag.random_bags(pa.table(people), rich, size=SIZE, seed=0)
    fitted = unbag.fit(bags)
    predicted = fitted.predict(pa.table(others))
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.1), layout="constrained")
    totals(axes[0], bags.report * bags.size)
    probabilities(axes[1], predicted, truth)
    judgement(axes[2], fitted, predicted, truth)
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.title.set_fontsize(10)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
