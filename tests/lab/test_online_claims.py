"""The verdict on the paper's claim about streams."""

from dataclasses import replace

import pytest

from unbag.lab import _online
from unbag.lab._catalogue import Way


def runs(loss, repetitions):
    """At a rate inside the grid, below the trivial log 2."""
    names = ("label_log_loss", "label_auc", "prior_of_chunk")
    for seed in range(repetitions):
        levels = (loss + 0.001 * seed, 0.7, 0.5)
        values = {name: [level] * 9 for name, level in zip(names, levels, strict=True)}
        yield {"rate": 0.2, "repetition": seed, **values}


@pytest.mark.parametrize("repetitions, verdict, reason", [
    (5, "supported", "for it at 256"),
    (1, "undecided", "undecided at 256: 1 repetitions"),
    (0, "undecided", "undecided at 256: 0 repetitions"),
])  # fmt: skip
def test_a_method_with_too_few_repetitions_is_not_beaten(repetitions, verdict, reason, monkeypatch):
    """PM may be better than GeneralUPM, which is better than EasyLLP."""
    monkeypatch.setattr(_online, "PAPER_EVENTS", 0)
    own = {"sizes": (256,), "rates": (0.1, 0.2, 0.3), "repetitions": 5}
    plan = _online.online_preset("smoke", model="paper", **own)
    counts = {"upm": (0.5, 5), "easy": (0.65, 5), "matching": (0.6, repetitions)}
    results = {
        _online.Cell(Way(method, "log"), 256, "chunk"): list(runs(*count))
        for method, count in counts.items()
        if count[1]
    }
    found = _online.judge_online(plan, results)
    assert found.verdict == verdict
    assert found.why == reason
    assert found.sees.startswith("at 256 PM 0.6" if repetitions else "at 256 EasyLLP 0.65")
    small = _online.judge_online(replace(plan, model="small"), results)
    assert (small.verdict, small.sees) == ("not comparable", found.sees)
    assert small.why == f"the paper has another network; {reason}"
