import numpy as np
import pytest
from sklearn.datasets import make_blobs

from napari_embedding_game.core.affinities import edges
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph import knn_graph
from napari_embedding_game.session.merging import Merging, has_leiden


@pytest.fixture(scope="module")
def blobs():
    """Four blobs on two landmarks each, and a ninth landmark without points."""
    X, truth = make_blobs(400, 5, centers=4, cluster_std=0.5, random_state=1)
    halves = np.empty_like(truth)
    for blob in range(4):
        inside = truth == blob
        halves[inside] = 2 * blob + (X[inside, 0] > np.median(X[inside, 0]))
    found = edges(knn_graph(X.astype(np.float32), 8), "fuzzy")
    return found, halves.astype(np.int32), truth


@pytest.mark.parametrize(
    "grouping",
    [
        "merge",
        pytest.param(
            "leiden", marks=pytest.mark.skipif(not has_leiden(), reason="no leidenalg")
        ),
    ],
)
def test_landmarks_of_a_blob_come_together(blobs, grouping):
    weighted, labels, truth = blobs
    merging = Merging.of(weighted, labels, 9)
    clusters = merging(4, grouping)
    assert clusters[8] == -1
    of_points = clusters[labels]
    assert len(set(zip(truth.tolist(), of_points.tolist(), strict=True))) == 4
    assert merging(4, grouping) is clusters


def test_a_moment_later_the_clusters_are_the_same(blobs):
    weighted, labels, _ = blobs
    first = Merging.of(weighted, labels, 9)
    again = Merging.of(weighted, labels, 9, first)
    np.testing.assert_array_equal(again(4, "merge"), first(4, "merge"))


def test_split(blobs):
    weighted, labels, truth = blobs
    merging = Merging.of(weighted, labels, 9)
    two_blobs = np.unique(labels[truth < 2])
    parts = merging.split(two_blobs)
    assert len(set(zip(truth[truth < 2], parts[labels[truth < 2]], strict=True))) == 2
    with pytest.raises(InputError, match="cannot be split"):
        merging.split(two_blobs[:1])
