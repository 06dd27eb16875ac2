"""Rate, noise and a wish in, how many bags of which size out."""

from __future__ import annotations

from math import ceil, isfinite, log
from typing import Annotated, Any, NamedTuple

import typer

from unbag.commands.asking import AsJson
from unbag.commands.telling import plain_errors, print_json
from unbag.planning import Noise, Problem, Spread, bags_needed, best_bag_size, interval_width, regret_supported

SIZES = tuple(2**i for i in range(11))


class Row(NamedTuple):
    """So many bags of one size, and how far the log loss estimated from them may be from the true one."""

    size: int
    bags: int
    within: float


class Needed(NamedTuple):
    """Bags that tell the log loss to within a regret, and those that the tournament's theorem asks for (no noise)."""

    size: int
    bags: int
    within: float
    guaranteed_bags: int | None


class Supported(NamedTuple):
    """How well bags tell the log loss, and the regret that the tournament's theorem guarantees (no noise)."""

    size: int
    bags: int
    within: float
    guaranteed_regret: float | None


def plan(
    rate: Annotated[float, typer.Option(help="share of events with a label 1, about")],
    noise: Annotated[float, typer.Option(min=0, help="variance of the noise on a bag's count")] = 0.0,
    events: Annotated[int | None, typer.Option(min=1, help="how many there are: compares bag sizes")] = None,
    regret: Annotated[float | None, typer.Option(help="log loss that you can accept to lose: how many bags?")] = None,
    bags: Annotated[int | None, typer.Option(min=1, help="how many there are: how well is the loss known?")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="of a bag; by default the best at this noise")] = None,
    score_sd: Annotated[float, typer.Option(min=0.01, help="standard deviation of the scores (logits), about")] = 1.0,
    models: Annotated[int, typer.Option(min=2, help="to choose among")] = 12,
    apart: Annotated[float, typer.Option(min=0.001, help="how far the models' scores differ (root mean square)")] = 0.5,
    as_json: AsJson = False,
) -> None:
    """How many bags, and which size, at this noise? For binary labels and the log loss.

    Within: half the width of the 95% interval around a model's loss. Guaranteed: the theorem's number for choosing
    among models, a worst case that needs far more bags than practice does.

    Example: unbag plan --rate 0.1 --noise 100 --events 1000000 --regret 0.02
    """
    with plain_errors("plan"):
        found = answers(events, regret, bags, size, _noise(rate, noise, score_sd), (models, apart, rate))
    if as_json:
        print_json(found)
    else:
        print(_told(found, noise))


def _noise(rate: float, noise: float, score_sd: float) -> Noise:
    """For the log loss f2 is minus the score, whose mean is about the logit of the rate."""
    if not 0 < rate < 1:
        raise ValueError(f"A rate must lie between 0 and 1: {rate} came. It is the share of events with a label 1.")
    return Noise(label=rate * (1 - rate), report=noise, mean_f2=log((1 - rate) / rate), var_f2=score_sd**2)


def answers(
    events: int | None, regret: float | None, bags: int | None, size: int | None, noise: Noise, choice: tuple
) -> dict[str, Any]:
    """What was asked: `sizes` for events, `needed` for a regret, `supported` for bags; always the best size.

    >>> answers(None, None, 500, 64, Noise(0.18, 0.0, 1.2, 2.0), (12, 0.5, 0.25))["supported"].within.__round__(3)
    0.053
    """
    if events is None and regret is None and bags is None:
        raise ValueError("A plan must have a wish: none of --events, --regret and --bags came. Give one or more.")
    best = round(best_bag_size(noise))
    k = size or best
    found: dict[str, Any] = {"best_size": best}
    if events is not None:
        there = sorted({*SIZES, best, k})
        found["sizes"] = [Row(s, events // s, _within(events, s, noise)) for s in there if events >= 2 * s]
    if regret is not None:
        found["needed"] = _needed(regret, k, noise, choice)
    if bags is not None:
        guaranteed = None if noise.report else regret_supported(bags, _problem(k, choice))
        found["supported"] = Supported(k, bags, _within(bags * k, k, noise), guaranteed)
    return found


def _needed(regret: float, size: int, noise: Noise, choice: tuple) -> Needed:
    """The variance falls like 1 / instances; the theorem is for exact reports."""
    guaranteed = bags_needed(regret, _problem(size, choice))
    enough = ceil((_within(1, size, noise) / regret) ** 2 / size)
    return Needed(size, enough, regret, None if noise.report else guaranteed)


def _within(instances: int, size: int, noise: Noise) -> float:
    return interval_width(instances, size, noise) / 2


def _problem(size: int, choice: tuple) -> Problem:
    """Scores that differ by `apart`: f1 and f2 of the log loss differ by no more, as their slopes are at most 1."""
    models, apart, rate = choice
    return Problem(models=models, size=size, spread=Spread(apart**2, apart**2, apart**2), prior=rate)


def _told(found: dict[str, Any], noise: float) -> str:
    lines = [f"Best size at noise variance {noise:g}: {found['best_size']:,} events a bag."]
    if "sizes" in found:
        lines += [f"{'size':>8} {'bags':>12} {'within':>8}"]
        lines += [f"{row.size:>8,} {row.bags:>12,} {row.within:>8.4f}" for row in found["sizes"]]
    if "needed" in found:
        size, bags, within, guaranteed = found["needed"]
        lines += [f"{bags:,} bags of {size:,} tell the log loss to within {within:g}."]
        lines += [f"The theorem for choosing asks for {guaranteed:,} bags."] if guaranteed else []
    if "supported" in found:
        size, bags, within, guaranteed = found["supported"]
        lines += [f"{bags:,} bags of {size:,} tell the log loss to within {within:.4f}."]
        if guaranteed is not None:
            said = f"a regret below {guaranteed:.4g}" if isfinite(guaranteed) else "nothing: it needs more bags"
            lines += [f"The theorem for choosing guarantees {said}."]
    return "\n".join([*lines, *(["The theorem is for exact reports; with noise it says nothing."] if noise else [])])
