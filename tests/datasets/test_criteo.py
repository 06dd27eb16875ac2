"""The reader of Criteo's files, the made-up click stream with the same schema, and what is set
aside."""

import gzip
import json
import os
from itertools import pairwise
from pathlib import Path

import equinox as eqx
import numpy as np
import pytest
from scipy.special import logit

from unbag import models
from unbag.datasets import Quarantine, read_clicks, read_criteo, write_clicks
from unbag.datasets._click_stream import draw_clicks
from unbag.datasets._criteo import (
    BOUNDARIES,
    BUCKETS,
    DIMENSIONS,
    MISSING,
    TABLE,
    Records,
    encode,
    mix,
)
from unbag.training._validation import labelled_auc

REAL = Path(os.environ.get("UNBAG_DATA", "")) / "criteo" / "train-137k.tsv.gz"
# buckets and dimensions of the 26 categories as the paper's appendix prints them
PAPER = (
    "700 30, 500 30, 10000 70, 10000 70, 200 22, 20 10, 10000 70, 400 30, 10 10, 10000 70, 5000 "
    "50, 10000 70, 5000 50, 50 10, 5000 53, 10000 70, 10 10, 5000 50, 5000 50, 10 10, 10000 70, "
    "10 10, 10 10, 10000 70, 10 20, 10000 70"
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("criteo") / "train.txt"
    write_clicks(path, 1000, seed=3)
    return path


def naive(path):
    """Records one by one, as the module says they are encoded."""
    X, y = [], []
    for line in path.read_text().splitlines():
        label, *fields = line.split("\t")
        number = [
            0 if f == "" else 1 + int((int(f) + 1e-9 >= BOUNDARIES).sum()) for f in fields[:13]
        ]
        value = [MISSING if f == "" else int(f, 16) for f in fields[13:]]
        word = np.array([(v + (j << 33)) % 2**64 for j, v in enumerate(value, start=13)], np.uint64)
        X.append(number + (mix(word) % np.array(BUCKETS[13:], np.uint64)).tolist())
        y.append(float(label))
    return np.array(X), np.array(y)


def test_records_are_read_as_a_naive_reader_reads_them(file):
    X, y = naive(file)
    chunks = list(read_criteo(file, rows=300))
    assert [len(c.y) for c in chunks] == [300, 300, 300, 100]
    assert np.array_equal(np.concatenate([c.X for c in chunks]), X)
    assert np.array_equal(np.concatenate([c.y for c in chunks]), y)


def test_a_gzip_file_gives_the_same_chunks(file, tmp_path):
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(file.read_bytes()))
    both = read_criteo(file, rows=256), read_criteo(tmp_path / "train.txt.gz", rows=256)
    for a, b in zip(*both, strict=True):
        assert np.array_equal(a.X, b.X)
        assert np.array_equal(a.y, b.y)


@pytest.mark.parametrize("name", ["train.txt", "train.txt.gz"])
def test_reading_goes_on_from_any_position(file, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(file.read_bytes()) if name.endswith("gz") else file.read_bytes())
    chunks = list(read_criteo(path, rows=130))
    for before, after in pairwise(chunks):
        again = next(read_criteo(path, rows=130, start=before.position))
        assert np.array_equal(again.X, after.X)
        assert again.position == after.position


def test_bad_records_are_set_aside_with_their_reason_and_the_chunks_filled_up(file, tmp_path):
    lines = file.read_text().splitlines()
    X, _ = naive(file)
    word = lambda line, column, text: "\t".join(
        [*line.split("\t")[:column], text, *line.split("\t")[column + 1 :]]
    )
    bad = {
        "fields": lines[5][:60],
        "number": word(lines[0], 3, "many"),
        "category": word(lines[1], 20, "xyz"),
        "label": word(lines[2], 0, "2"),
    }
    for place, text in zip((10, 200, 400, 401), bad.values(), strict=True):
        lines.insert(place, text)
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    aside = Quarantine()
    chunks = list(read_criteo(tmp_path / "train.txt", rows=250, quarantine=aside))
    assert [len(c.y) for c in chunks] == [250] * 4
    assert np.array_equal(np.concatenate([c.X for c in chunks]), X)
    assert dict(aside.counts) == dict.fromkeys(bad, 1)
    kept = [json.loads(line) for line in aside.take_lines()]
    assert [row["record"] for row in kept] == list(bad.values())
    offset = int(kept[1]["where"].split()[-1])
    assert (tmp_path / "train.txt").read_bytes()[offset:].startswith(bad["number"].encode())
    assert kept[1]["reason"] == "a count must be a whole number or empty, 'many' given in I3"


def spoiled(file, tmp_path, tail):
    """200 good records with a bad one among them, and a tail."""
    lines = file.read_text().splitlines(keepends=True)[:200]
    (tmp_path / "spoiled.txt").write_text("".join([*lines[:50], "bad\n", *lines[50:], *tail]))
    return tmp_path / "spoiled.txt"


def test_bad_records_after_the_last_chunk_are_set_aside_once(file, tmp_path):
    path, aside = spoiled(file, tmp_path, ["bad\n", "worse\n"]), Quarantine()
    chunks = list(read_criteo(path, rows=100, quarantine=aside))
    assert [len(chunk.y) for chunk in chunks] == [100, 100, 0]
    assert sum(aside.counts.values()) == 3
    assert list(read_criteo(path, rows=100, quarantine=aside, start=chunks[-1].position)) == []
    assert sum(aside.counts.values()) == 3


def test_bad_records_after_a_chunk_are_left_to_whoever_goes_on_after_it(file, tmp_path):
    path, aside = spoiled(file, tmp_path, ["bad\n"] * 120), Quarantine()
    chunks = read_criteo(path, rows=100, quarantine=aside)
    assert [len(next(chunks).y) for _ in range(2)] == [100, 100]
    with pytest.raises(ValueError, match="100 records in a row"):
        next(chunks)
    assert dict(aside.counts) == {"fields": 1}


def test_a_last_line_without_its_end_counts(file, tmp_path):
    (tmp_path / "train.txt").write_bytes(file.read_bytes().rstrip(b"\n"))
    assert sum(len(c.y) for c in read_criteo(tmp_path / "train.txt", rows=999)) == 1000


def test_the_table_is_the_papers_and_fits_the_network():
    assert BUCKETS[:13] == (42,) * 13
    assert sum(DIMENSIONS) == 13 * 10 + 9 * 70 + 53 + 4 * 50 + 3 * 30 + 22 + 20 + 7 * 10
    network = eqx.filter_eval_shape(models.embedding_network, BUCKETS, DIMENSIONS, key=0)
    assert [table.shape for table in network.tables] == list(zip(BUCKETS, DIMENSIONS, strict=True))
    assert [layer.weight.shape[1] for layer in network.head.layers] == [256, 128, 64, 1]
    scores = eqx.filter_eval_shape(network, encode(draw_clicks(0, 5, seed=0)[0]))
    assert scores.shape == (5,)


def test_the_table_equals_the_one_in_the_paper():
    assert tuple(tuple(map(int, row.split())) for row in PAPER.split(", ")) == TABLE


def test_boundaries_are_logarithmic_and_missing_numbers_apart():
    assert np.allclose(np.diff(np.log(BOUNDARIES)), np.log(1e7) / 39)
    integers = np.full((7, 13), MISSING)
    integers[:, 0] = [MISSING, -3, 0, 1, 2, 10**7, 10**9]
    records = Records(np.zeros(7), integers, np.zeros((7, 26), int))
    assert encode(records)[:, 0].tolist() == [0, 1, 1, 2, 3, 41, 41]


def test_the_file_is_found_in_the_data_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train\.txt must lie at"):
        read_criteo(folder=tmp_path)
    (tmp_path / "criteo").mkdir()
    write_clicks(tmp_path / "criteo" / "train-part.txt", 3)
    assert len(next(read_criteo(folder=tmp_path)).y) == 3


@pytest.mark.skipif(not REAL.exists(), reason="UNBAG_DATA has no criteo/train-137k.tsv.gz")
def test_the_real_sample_has_two_chunks_and_a_rest():
    aside = Quarantine()
    chunks = list(read_criteo(REAL, quarantine=aside))
    assert [len(c.y) for c in chunks] == [65536, 65536, 6067]
    assert np.mean(np.concatenate([c.y for c in chunks])) == pytest.approx(0.257, abs=0.002)
    assert not aside.counts
    assert (np.concatenate([c.X for c in chunks]).max(axis=0) < BUCKETS).all()


def test_made_up_clicks_have_the_stated_probability_and_a_rate_that_drifts():
    chunks = list(read_clicks(seed=1, rows=20_000, chunks=4, day=80_000))
    rate = [c.truth.mean() for c in chunks]
    assert np.mean(rate) == pytest.approx(0.25, abs=0.02)
    assert max(rate) - min(rate) > 0.05
    y, p = (
        np.concatenate(column) for column in zip(*((c.y, c.truth) for c in chunks), strict=True)
    )
    band = np.digitize(p, [0.1, 0.2, 0.3, 0.5])
    n = np.bincount(band)
    error = (np.bincount(band, weights=y) - np.bincount(band, weights=p)) / np.sqrt(
        np.bincount(band, weights=p * (1 - p))
    )
    assert (n > 1000).all()
    assert np.abs(error).max() < 4  # five bands, four sigma
    assert 0.74 < labelled_auc(logit(p)[None], y)[0] < 0.84


def test_made_up_categories_follow_a_power_law_and_new_ones_appear():
    first, last = (draw_clicks(k * 20_000, 20_000, seed=1, day=20_000)[0] for k in (0, 3))
    seen, count = np.unique(first.categories[:, 2], return_counts=True)
    top = np.sort(count)[::-1]
    assert top[:10].sum() > 5 * top[90:100].sum()
    assert len(seen) > 1000
    assert not np.isin(last.categories[:, 2], seen).all()
    assert np.isin(
        last.categories[:, 5], first.categories[:, 5]
    ).all()  # few categories, none of them new


def test_made_up_clicks_are_not_linear_in_the_features():
    from unbag.datasets._click_stream import _effect, _strength

    categories = np.random.default_rng(0).integers(0, 2**32, size=(50, 26))
    assert np.std(_effect(categories, np.arange(26), 0) @ _strength()) > 0.5
    same = lambda c: _effect((c[:, 0] & 15) * 16 + (c[:, 1] & 15), np.array([200]), 0)
    values = same(categories)
    assert np.abs(values).max() < np.sqrt(3) + 1e-9
    assert np.std(values) > 0.5
