"""Rows that are clustered anew: blobs are found, and what cannot be is told."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph import exact
from napari_embedding_game.core.graph import rows as graph_rows
from napari_embedding_game.core.inspect.reclustering import recluster_rows

SIZES = (40, 70, 55)


@pytest.fixture(scope="module")
def blobs():
    """Three blobs of points, and which each is of."""
    rng = np.random.default_rng(0)
    of = np.repeat(np.arange(3), SIZES)
    middles = np.array([[0, 9, 0, 0], [9, 0, 0, 0], [0, 0, 9, 0]])
    rows = middles[of] + rng.normal(size=(len(of), 4))
    order = rng.permutation(len(of))
    return rows[order].astype(np.float32), of[order]


def is_same(parts, of):
    return len(set(zip(parts.tolist(), of.tolist(), strict=True))) == 3


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
def test_landmarks_find_blobs_the_largest_first(blobs, metric):
    rows, of = blobs
    if metric == "correlation":  # what all numbers of a row share says nothing
        rows = rows + 50 * np.random.default_rng(1).normal(size=(len(rows), 1))
    parts = recluster_rows(rows, 3, metric=metric)
    assert is_same(parts, of)
    assert np.bincount(parts).tolist() == [70, 55, 40]
    np.testing.assert_array_equal(parts, recluster_rows(rows, 3, metric=metric))
    of_sparse = recluster_rows(csr_matrix(rows), 3, metric=metric)
    np.testing.assert_array_equal(of_sparse, parts)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows_of_many_columns_stay_sparse(blobs, metric, monkeypatch):
    for each in (exact, graph_rows):
        monkeypatch.setattr(each, "MAX_DENSE", 1 << 22)
    rows, of = blobs
    more = csr_matrix((len(rows), 100_000), dtype=np.float32)
    tracemalloc.start()
    assert is_same(
        recluster_rows(hstack([csr_matrix(rows), more], "csr"), metric=metric), of
    )
    assert tracemalloc.get_traced_memory()[1] < 8 * np.prod(more.shape)
    tracemalloc.stop()


def test_what_cannot_be_clustered_is_told(blobs):
    rows, _ = blobs
    with pytest.raises(InputError, match="9 points are too few"):
        recluster_rows(rows[:9])
    with pytest.raises(InputError, match="1 parts cannot be made"):
        recluster_rows(rows, 1)
