"""Parts of a graph of neighbours."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.quality import count_graph_parts


def test_far_groups_are_parts_and_near_ones_are_not():
    centers = np.array([[0, 0], [500, 0], [0, 500]])
    sizes = [60, 30, 10]
    X, _ = make_blobs(sizes, centers=centers, random_state=0)
    found = count_graph_parts(knn_graph(X, 5).indices, 5)
    assert (found.n_parts, found.n_neighbors) == (3, 5)
    assert found.outside == pytest.approx(0.4)
    joined = count_graph_parts(knn_graph(X / [[500, 500]] + X % 1, 12).indices, 12)
    assert (joined.n_parts, joined.outside) == (1, 0.0)


def test_one_link_in_one_direction_joins_and_none_leaves_apart():
    neighbors = np.array([[1, -1], [0, 2], [3, -1], [2, -1], [-1, -1]])
    found = count_graph_parts(neighbors, 2)
    assert (found.n_parts, found.outside) == (2, pytest.approx(0.2))
    assert count_graph_parts(np.full((4, 3), -1), 3).n_parts == 4
