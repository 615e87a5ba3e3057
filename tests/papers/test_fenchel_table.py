import numpy as np
import pytest
from sklearn.datasets import load_digits

from napari_embedding_game.papers.reproductions.fenchel_table import (
    PAPER,
    SIZES,
    scores,
)
from napari_embedding_game.papers.reproductions.frame import Inputs, reproduce
from napari_embedding_game.papers.reproductions.table import find


@pytest.fixture
def data(tmp_path):
    """Digits of 8 x 8 pixels under the name of the large ones."""
    digits = load_digits()
    pixels = (digits.data * 15).astype(np.uint8)
    np.savez(tmp_path / "mnist_70k.npz", X=pixels, y=digits.target)
    return tmp_path


def test_quick_run(data, tmp_path):
    facts = reproduce(find("fenchel-table"), Inputs(data, quick=True), tmp_path / "out")
    assert [check["passed"] for check in facts["checks"]] == [None, None, None]
    rows = facts["tables"][0]["rows"]
    assert [row["k"] for row in rows] == [2, 3, 6, 12]
    for title in ("PCA", "gradient PCA", "random projection"):
        kept = [row[title] for row in rows]
        assert kept == sorted(kept)
    assert all(row["random projection"] < row["gradient PCA"] for row in rows)


def test_the_papers_table_is_whole():
    assert {len(column) for column in PAPER.values()} == {len(SIZES)}
    assert all(list(column) == sorted(column) for column in PAPER.values())


def test_all_dimensions_keep_all_neighbours():
    X = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)
    found = scores(X, 6, 0)
    assert found["pca"] > 0.999
    assert found["gradient_pca"] > 0.999
    assert found["random_projection"] < 0.999
