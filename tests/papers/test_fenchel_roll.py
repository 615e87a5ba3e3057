import numpy as np

from napari_embedding_game.papers.reproductions.fenchel_roll import (
    roll,
    sensitivity,
)
from napari_embedding_game.papers.reproductions.frame import Inputs, reproduce
from napari_embedding_game.papers.reproductions.table import find


def test_quick_run(tmp_path):
    facts = reproduce(find("fenchel-roll"), Inputs(quick=True), tmp_path)
    assert facts["passed"]
    summary, each = (table["rows"] for table in facts["tables"])
    assert [row["method"] for row in summary] == ["LE", "ALE", "VRLE"]
    assert all(0 <= row["sensitivity to t"] <= 1 for row in summary)
    assert len(each) == 15


def test_the_sheet_says_how_long_the_roll_is():
    X, sheet = roll(4000, 0)
    order = np.argsort(sheet[:, 0])
    steps = np.linalg.norm(np.diff(X[order, :2], axis=0), axis=1)
    np.testing.assert_allclose(steps.sum(), np.ptp(sheet[:, 0]), rtol=1e-4)
    np.testing.assert_array_equal(X[:, 2], sheet[:, 1])


def test_sensitivity_knows_the_same_map():
    map_ = np.random.default_rng(0).normal(size=(50, 2))
    turned = 3 * map_ @ np.array([[0.6, 0.8], [0.8, -0.6]]) + 7
    assert sensitivity([map_, turned, map_]) < 1e-12
    other = np.random.default_rng(1).normal(size=(50, 2))
    assert sensitivity([map_, other]) > 0.5
    assert sensitivity([map_]) == 0
