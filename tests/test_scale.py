"""The measurement of growth runs, goes on where it stopped, and has measured what the page says."""

import numpy as np
import pytest
import scale

BAGS = scale.WARM // scale.BAG
RESULTS = {
    "check": lambda usable: usable is True,
    "join": lambda bags: bags == BAGS,
    "features": lambda rows: rows == scale.WARM,
    "weights": lambda target: 0 < abs(target) < scale.WARM,
    "sql": lambda done: done == (BAGS, None),
    "disk": lambda weights: weights == {"additive": 1.0},
    "additive": lambda score: -1 < score < 1,  # the truth is 0
    "trees": lambda rounds: max(rounds) <= scale.ROUNDS,
    "labels": lambda trees: trees == 5 * scale.ROUNDS,
    "predict": lambda rows: rows == scale.WARM,
    "epoch": lambda history: len(history["train"]) == 1,
    "evaluate": lambda log_loss: 0.3 < log_loss < np.log(2),
    "losses": lambda log_loss: 0.3 < log_loss < np.log(2),
    "tournament": lambda chosen: 0 < chosen < scale.MODELS - 1,  # the truth lies inside
}


@pytest.mark.parametrize("station", scale.STATIONS)
def test_every_station_does_its_work(station, tmp_path):
    result = scale.STATIONS[station](tmp_path, scale.WARM)()
    assert RESULTS[station](result), result


def test_the_exponent_of_a_power_is_found():
    rows = np.array([1e5, 1e6, 1e7])
    assert scale.exponent(rows, 3 * rows**1.5) == pytest.approx(1.5)


def test_what_is_measured_is_not_measured_again(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(scale, "OUT", tmp_path / "scale.csv")
    asked = []
    nothing = dict.fromkeys(scale.FIELDS, "1")

    def measure(station, rows, _):
        asked.append((station, rows))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return nothing | {"station": station, "rows": rows}

    monkeypatch.setattr(scale, "measure_apart", measure)
    words = [
        "scale.py",
        "--sizes",
        "10",
        "100",
        "--stations",
        "sql",
        "join",
        "--folder",
        str(tmp_path),
    ]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(KeyboardInterrupt):
        scale.main()
    scale.main()
    assert asked == [("sql", 10), ("join", 10), ("sql", 100), ("sql", 100), ("join", 100)]
    assert len(scale.known()) == 4


def test_the_figures_have_every_station_at_every_size():
    found = {(line["station"], int(line["rows"])) for line in scale.known()}
    sizes = [10**5, 10**6, 10**7]
    expected = {(s, n) for s in scale.STATIONS for n in sizes}
    expected |= {(s, 10**8) for s in scale.STREAMS}
    assert found == expected - {("disk", 10**7)}  # some ten passes more take minutes
