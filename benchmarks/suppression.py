"""What each way of reporting does to GeneralUPM's estimate of the log loss: python
benchmarks/suppression.py.

Bias is the mean of (loss estimated from what the source reports - loss from the labels) over
repetitions of 64 bags.
"""

import numpy as np

from unbag import Bags, losses, noise, random_bags, weights


def biases(source, *, repetitions=300, bags=64, sizes=(16,), shift=-2.5):
    """Mean and standard error of (loss estimated from what a source reports - loss from labels)."""
    error = np.zeros(repetitions)
    for r in range(repetitions):
        rng = np.random.default_rng([5, r])
        size = rng.choice(sizes, bags)
        score = 1.5 * rng.normal(size=size.sum()) + shift
        y = rng.uniform(size=len(score)) < 1 / (1 + np.exp(-score))
        kept = source(random_bags(score, y, size=size, seed=rng.integers(2**31)), rng).reported()
        W = weights.upm(kept.size, *kept.components())
        error[r] = (
            np.sum(W[kept.bag] * losses.log.components(kept.X)) - losses.log.value(score, y).mean()
        )
    return error.mean(), error.std(ddof=1) / np.sqrt(repetitions)


def with_laplace(bags, rng):
    return noise.noisy(bags, noise.laplace(epsilon=0.5), seed=rng)


def with_reports(bags, report):
    return Bags(bags.bag, report, X=bags.X, noise=bags.noise)


HARMLESS = {
    "exact": lambda bags, rng: bags,
    "Laplace noise, epsilon 0.5": with_laplace,
    "bags below 10 suppressed": lambda bags, rng: noise.thresholded(bags, minimum_size=10),
}
HARMFUL = {
    "Laplace noise, epsilon 0.5, then clipped to [0, 1]": lambda bags, rng: with_reports(
        bags, np.clip(with_laplace(bags, rng).report, 0, 1)
    ),
    "counts below 3 left out": lambda bags, rng: noise.hidden_below(bags, 3, accept_bias=True),
    "counts below 3 written as 0": lambda bags, rng: with_reports(
        bags, np.where(bags.report * bags.size < 2.9, 0, bags.report)
    ),
}

if __name__ == "__main__":
    print("| what is reported | bias | standard error |\n|---|---|---|")
    for name, source in (HARMLESS | HARMFUL).items():
        bias, error = biases(source, sizes=(8, 16, 24))
        print(f"| {name} | {bias:+.3f} | {error:.3f} |")
