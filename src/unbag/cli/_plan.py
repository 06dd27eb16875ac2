"""`unbag plan`: how many bags of which size, from the rate, the noise and a wish."""

from __future__ import annotations

from math import ceil, inf, isfinite, log
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from unbag import losses, planning
from unbag._rules import broken, option_spelling
from unbag.cli._console import print_json, tell_warnings
from unbag.cli._options import AsJson, check_pair, noise_variance
from unbag.tables import count

SIZES = tuple(2**i for i in range(11))
RANGE = 3.0  # scores lie within so many standard deviations of their mean, for the fast rate


Kinds = Literal["binary", "total", "histogram"]
LOSSES = {"binary": "log loss", "total": "Poisson loss", "histogram": "cross entropy"}
# options that say nothing of marginal tables
OF_BAGS = (
    "kind", "events", "regret", "bags", "size", "larger_size", "score_sd", "models", "apart",
)  # fmt: skip


class Contest(NamedTuple):
    """What there is to choose among: how many models, and how far apart their scores are.

    Parameters
    ----------
    models : int
        How many.
    apart : float
        Root mean square difference of their scores.
    rate : float
        Mean label.
    kind : {"binary", "total", "histogram"}
        Of the reports.
    cap : float
        Totals: the largest count of an event.
    classes : int
        Histograms: how many.
    larger : float, optional
        Mean size of the larger half of the bags, where sizes vary.
    """

    models: int
    apart: float
    rate: float
    kind: Kinds = "binary"
    cap: float = 1.0
    classes: int = 2
    larger: float | None = None


def plan(
    ctx: typer.Context,
    rate: Annotated[float, typer.Option()],
    kind: Kinds = "binary",
    cap: float | None = None,
    classes: Annotated[int | None, typer.Option(min=2)] = None,
    noise: Annotated[float, typer.Option(min=0)] = 0.0,
    epsilon: Annotated[float | None, typer.Option(min=0.001)] = None,
    mechanism: str | None = None,
    delta: float | None = None,
    sensitivity: float | None = None,
    events: Annotated[int | None, typer.Option(min=1)] = None,
    regret: float | None = None,
    bags: Annotated[int | None, typer.Option(min=1)] = None,
    size: Annotated[int | None, typer.Option(min=1)] = None,
    larger_size: Annotated[float | None, typer.Option(min=1)] = None,
    score_sd: Annotated[float, typer.Option(min=0.01)] = 1.0,
    models: Annotated[int, typer.Option(min=2)] = 12,
    apart: Annotated[float, typer.Option(min=0.001)] = 0.5,
    marginals: Path | None = None,
    table: list[str] | None = None,
    given: list[str] | None = None,
    as_json: AsJson = False,
) -> None:
    """How many bags do I need, and of which size, at this noise? For the log loss; for
    totals the Poisson loss, and for histograms the cross entropy (within: of one class of this rate
    against the others).

    Within: half the width of the 95% interval around a model's loss. Guaranteed: the theorems'
    numbers for choosing among models, a worst case that needs far more bags than practice does.

    Example: unbag plan --rate 0.1 --noise 100 --events 1000000 --regret 0.02

    Parameters
    ----------
    rate
        share of events with a label 1, about; total: mean count
    kind
        what a report is: proportions, totals of counts, or histograms of classes
    cap
        total: the largest count of an event
    classes
        histogram: how many; 2
    noise
        variance of the noise on a bag's count
    events
        how many there are: compares bag sizes
    regret
        loss that you can accept to lose: how many bags?
    bags
        how many there are: how well is the loss known?
    size
        of a bag; by default the best at this noise
    larger_size
        mean size of the larger half of the bags, where sizes vary
    score_sd
        standard deviation of the scores (logits), about
    models
        to choose among
    apart
        how far the models' scores differ (root mean square)
    marginals
        events: which table of totals to ask for next?
    table
        marginals: keys of a candidate, as campaign,day, or campaign,day:8 with its noise
    given
        marginals: keys of a table that is there already
    """
    variance = noise_variance(noise or None, epsilon, mechanism, delta, sensitivity) or 0.0
    check_pair("cap", cap, "kind:total", kind == "total")
    check_pair("classes", classes, "kind:histogram", kind == "histogram")
    check_pair("table", table, "marginals", marginals)
    check_pair("given", given, "marginals", marginals)
    if marginals is not None:
        _refuse_bags(ctx)
        kind, cap = "binary", None
    contest = Contest(models, apart, rate, kind, _cap(kind, cap, rate), classes or 2, larger_size)
    known = _noise(rate, variance, score_sd, kind)
    if marginals is not None:
        from unbag.cli._marginals import in_words, ranked  # the learners take a second to import

        with tell_warnings():
            ranking = ranked(marginals, table or [], given or [], rate, variance)
        if as_json:
            print_json({"tables": ranking})
        else:
            print(in_words(ranking))
        return
    replies = answers(events, regret, bags, size, known, contest)
    if as_json:
        print_json(replies)
    else:
        print(_in_words(replies, variance, kind))


def _refuse_bags(ctx: typer.Context) -> None:
    """Refuse options that a ranking of marginal tables does not use."""
    sources = {name: ctx.get_parameter_source(name) for name in OF_BAGS}
    wrong = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    if wrong:
        raise broken(
            "A ranking of marginal tables must come without what is asked of bags",
            f"{' and '.join(option_spelling(name, None) for name in wrong)} given too",
            "Leave it out, or {marginals}.",
        )


def _cap(kind: Kinds, cap: float | None, rate: float) -> float:
    """The largest label; the theorems for totals pay its square."""
    if kind != "total":
        return 1.0
    if cap is None:
        raise broken(
            "A plan for totals must know the largest count of an event",
            "none was given",
            "Give --cap.",
        )
    if not rate <= cap < inf:
        raise broken(
            "The largest count of an event must be at least the mean count",
            f"{cap:g} was given for a mean of {rate:g}",
            "Change --cap or --rate.",
        )
    return cap


def _noise(rate: float, noise: float, score_sd: float, kind: Kinds = "binary") -> planning.Noise:
    """For the log loss and the Poisson loss f2 is minus the score, whose mean is about the logit,
    or the logarithm, of the rate; counts are taken to have the variance of Poisson's."""
    if kind == "total":
        if not rate > 0:
            raise broken(
                "A mean count must be positive", f"{rate} was given", "It is the total per event."
            )
        return planning.Noise(label=rate, report=noise, mean_f2=-log(rate), var_f2=score_sd**2)
    if not 0 < rate < 1:
        raise broken(
            "A rate must lie between 0 and 1",
            f"{rate} was given",
            "It is the share of events with a label 1.",
        )
    return planning.Noise(
        label=rate * (1 - rate), report=noise, mean_f2=log((1 - rate) / rate), var_f2=score_sd**2
    )


def answers(
    events: int | None,
    regret: float | None,
    bags: int | None,
    size: int | None,
    noise: planning.Noise,
    contest: Contest,
) -> dict[str, Any]:
    """What was asked: `sizes` for events, `needed` and `needed_by_size` for a regret, `supported`
    for bags.

    Each says of so many bags of a size within how much they tell the loss. The best size is always
    told; it has the narrowest interval for the same events.

    >>> known = planning.Noise(0.18, 0.0, 1.2, 2.0)
    >>> reply = answers(None, None, 500, 64, known, Contest(12, 0.5, 0.25))["supported"]
    >>> round(reply["within"], 3)
    0.053
    """
    if regret is not None and not regret > 0:
        raise broken("A regret must be positive", f"{regret:g} given", "Give {regret:0.01}, say.")
    if events is None and regret is None and bags is None:
        raise broken(
            "A plan must be asked something",
            "none of --events, --regret and --bags was given",
            "Give one or more.",
        )

    def within(instances: int, k: int) -> float:
        return planning.interval_width(instances, k, noise) / 2

    best = round(planning.best_bag_size(noise))
    size = size or best
    there = sorted({*SIZES, best, size})
    replies: dict[str, Any] = {"best_size": best, "noise_variance": noise.report}
    if events is not None:
        replies["sizes"] = [
            {"size": k, "bags": events // k, "within": within(events, k)}
            for k in there
            if events >= 2 * k
        ]
    if regret is not None:
        # the variance falls like 1 / instances
        enough = {k: max(2, ceil((within(1, k) / regret) ** 2 / k)) for k in there}
        rows = {k: {"size": k, "bags": n, "within": regret} for k, n in enough.items()}
        slow, fast = _by_theorems(regret, _problem(size, contest), noise, contest.kind)
        guaranteed = {"guaranteed_bags": slow, "guaranteed_fast_bags": fast}
        replies |= {"needed": rows[size] | guaranteed, "needed_by_size": list(rows.values())}
    if bags is not None:
        known, promise = within(bags * size, size), None
        if not noise.report:  # the theorem is for exact reports
            promise = planning.regret_supported(bags, _problem(size, contest))
        row = {"size": size, "bags": bags, "within": known}
        replies["supported"] = row | {"guaranteed_regret": promise}
    return replies


def _by_theorems(
    regret: float, problem: planning.Problem, noise: planning.Noise, kind: Kinds
) -> tuple[int | None, int | None]:
    """Bags that the theorems ask for, and where fewer are enough if the best possible predictor is
    among the models; they are for exact reports, and the paper has no fast rate for histograms."""
    slow = planning.bags_needed(regret, problem)  # also refuses a regret that is not positive
    if noise.report:
        return None, None
    if kind == "histogram":
        return slow, None
    # the curvature of the loss over the scores that there are about
    loss, reach = {"binary": losses.log, "total": losses.poisson}[kind], RANGE * noise.var_f2**0.5
    scores = (-noise.mean_f2 - reach, -noise.mean_f2 + reach)
    curvature = planning.sandwich(loss, scores, kind=kind)
    if min(curvature.c1, curvature.c2) <= 0:  # scores so large that the loss is a straight line
        return slow, None
    fast = planning.bags_needed(regret, problem, curvature=curvature)
    if fast >= slow:
        return slow, None
    return slow, fast


def _problem(size: int, contest: Contest) -> planning.Problem:
    """Scores that differ by `apart`: f1 and f2 of the log loss differ by no more, as their slopes
    are at most 1; f1 of the Poisson loss, exp(score), by `cap` times as much. Of the cross entropy
    each component does, about, and the largest of a row by no more than all of them together."""
    square, cap = contest.apart**2, contest.cap
    if contest.larger is not None and contest.larger < size:
        raise broken(
            "The larger half of the bags must have a mean size of at least that of the smaller",
            f"{contest.larger:g} given for {size}",
            "Raise --larger-size, or lower --size.",
        )
    spread: Any = planning.ModelSpread((cap**2) * square, square, square)
    further: dict[str, Any] = {"prior": contest.rate / cap, "cap": cap}
    if contest.kind == "histogram":
        spread = planning.HistogramSpread(*[contest.classes * square] * 2)
        further = {"classes": contest.classes}
    return planning.Problem(
        models=contest.models, size=size, spread=spread, means_size=contest.larger, **further
    )


def _in_words(replies: dict[str, Any], noise: float, kind: Kinds) -> str:
    loss, best = LOSSES[kind], count(replies["best_size"], "event")
    lines = [f"Best size at noise variance {noise:g}: {best} a bag."]
    if "sizes" in replies:
        title = f"With these events: bags, and how well they tell the {loss}"
        lines += ["", title, f"{'size':>8} {'bags':>12} within"]
        lines += ["{size:>8,} {bags:>12,} {within:.4f}".format(**row) for row in replies["sizes"]]
    if "needed" in replies:
        size, bags, within, slow, fast = replies["needed"].values()
        lines += ["", f"{bags:,} bags of {size:,} tell the {loss} to within {within:g}. By size:"]
        lines += [f"{'size':>8} {'bags':>12} {'events':>14}"]
        for row in replies["needed_by_size"]:
            k, n = row["size"], row["bags"]
            lines += [f"{k:>8,} {n:>12,} {k * n:>14,}"]
        if slow is not None:
            asked = f"The theorem for choosing asks for {slow:,} bags of {size:,}"
            if fast is not None:
                asked += f", or {fast:,} if the best possible predictor is among the models"
            lines += [f"{asked}."]
    if "supported" in replies:
        size, bags, within, guaranteed = replies["supported"].values()
        lines += ["", f"{bags:,} bags of {size:,} tell the {loss} to within {within:.4f}."]
        if guaranteed is not None:
            promise = "nothing: it needs more bags"
            if isfinite(guaranteed):
                promise = f"a regret below {guaranteed:.4g}"
            lines += [f"The theorem for choosing guarantees {promise}."]
    if noise:
        lines += ["The theorem is for exact reports; with noise it says nothing."]
    elif kind == "histogram" and {"needed", "supported"} & set(replies):
        lines += ["For histograms this is an order of magnitude: the paper hides its constants."]
    return "\n".join(lines)
