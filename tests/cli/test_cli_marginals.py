"""`unbag plan --marginals` ranks tables that could be asked for."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from unbag.cli import app
from unbag.learners import rank_tables


@pytest.fixture
def events(tmp_path):
    rng = np.random.default_rng(0)
    codes = {"shop": 6, "day": 5, "age": 4}
    table = {name: [f"{name} {i}" for i in rng.integers(0, n, 2000)] for name, n in codes.items()}
    path = tmp_path / "events.parquet"
    pyarrow.parquet.write_table(pa.table(table), path)
    return path


def test_tables_are_ranked_as_in_python(events):
    words = ["plan", "--rate", "0.1", "--noise", "2", "--marginals", str(events)]
    words += ["--table", "shop,day", "--table", "age", "--given", "shop"]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    expected = rank_tables(
        events, [("shop", "day"), "age"], rate=0.1, noise=2, given=["shop"], given_noise=2
    )
    printed = json.loads(result.stdout)["tables"]
    assert [one["name"] for one in printed] == [one.name for one in expected]
    np.testing.assert_allclose(
        [one["reduction"] for one in printed], [one.reduction for one in expected], rtol=1e-4
    )
    text = CliRunner().invoke(app, words).stdout
    assert "variance less" in text
    assert "by_shop_day" in text


def test_candidates_and_their_keys_must_be_there(events):
    words = ["plan", "--rate", "0.1", "--marginals", str(events)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code != 0
    assert "--table" in result.stderr
    result = CliRunner().invoke(app, [*words, "--table", "shopp"])
    assert result.exit_code != 0
    assert "Did you mean 'shop'" in result.stderr
