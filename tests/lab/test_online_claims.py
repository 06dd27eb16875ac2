"""The verdict on the paper's claim about streams."""

from dataclasses import replace

import pytest

from unbag.lab import _online
from unbag.lab._catalogue import Way


def runs(loss, repetitions, auc=0.7):
    """At a rate inside the grid, below the trivial log 2."""
    names = ("label_log_loss", "label_auc", "prior_of_chunk")
    for seed in range(repetitions):
        levels = (loss + 0.001 * seed, auc, 0.5)
        values = {name: [level] * 9 for name, level in zip(names, levels, strict=True)}
        yield {"rate": 0.2, "repetition": seed, **values}


@pytest.mark.parametrize("repetitions, verdict, reason", [
    (5, "supported", "for it at 256"),
    (1, "undecided", "undecided at 256: 1 repetition"),
    (0, "undecided", "undecided at 256: not run"),
])  # fmt: skip
def test_a_method_with_too_few_repetitions_is_not_beaten(repetitions, verdict, reason, monkeypatch):
    """PM may be better than GeneralUPM, which is better than EasyLLP."""
    monkeypatch.setattr(_online, "PAPER_EVENTS", 0)
    own = {"sizes": (256,), "rates": (0.1, 0.2, 0.3), "repetitions": 5}
    plan = _online.online_preset("smoke", model="paper", **own)
    counts = {"upm": (0.5, 5), "easy": (0.65, 5, 0.71), "matching": (0.6, repetitions)}
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


@pytest.mark.parametrize("auc, once, verdict, reason", [
    (0.71, 0.5, "supported", "for it at 256"),
    (0.7, 0.5, "undecided", "for it at 256; by AUC EasyLLP is not ahead of PM at 256"),
    (0.71, 0.6, "undecided",
     "for it at 256; GeneralUPM is not ahead of PM over the entire duration at 256"),
])  # fmt: skip
def test_all_parts_of_the_claim_on_a_stream_must_hold(auc, once, verdict, reason, monkeypatch):
    monkeypatch.setattr(_online, "PAPER_EVENTS", 0)
    own = {"sizes": (256,), "rates": (0.1, 0.2, 0.3), "repetitions": 5}
    plan = _online.online_preset("smoke", model="paper", **own)
    made = {"upm": runs(0.5, 5), "easy": runs(0.65, 5, auc), "matching": runs(0.6, 5)}
    results = {
        _online.Cell(Way(method, "log"), 256, "chunk"): list(each) for method, each in made.items()
    }
    for run in results[_online.Cell(Way("upm", "log"), 256, "chunk")]:
        run["label_log_loss"][3] += once - 0.5  # as PM in one chunk
    found = _online.judge_online(plan, results)
    assert (found.verdict, found.why) == (verdict, reason)
