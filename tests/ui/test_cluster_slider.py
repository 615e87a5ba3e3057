"""The number of clusters, chosen by a slider or typed."""

import numpy as np
import scipy.sparse as sp

from napari_embedding_game.core.inspect.clusters import merge_tree
from napari_embedding_game.session.clusters.clusters import Clusters
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.ui.inspector.cluster_slider import (
    ClusterSlider,
    slider_stops,
)


def merging_of(n_landmarks):
    graph = sp.diags([1.0, 1.0], [-1, 1], shape=(n_landmarks, n_landmarks)).tocsr()
    return Merging(graph, merge_tree(graph, np.full(n_landmarks, 5)))


def test_the_slider_and_its_number_merge_landmarks(qtbot):
    book = Clusters(60)
    labels = (np.arange(60) % 12).astype(np.int32)
    book.receive(labels, 12, merging_of(12))
    slider = ClusterSlider(book)
    qtbot.addWidget(slider)
    slider.number.setValue(5)
    assert len(book.clusters) == book.n_clusters == 5
    slider.slider.setValue(slider.slider.maximum())
    qtbot.waitUntil(lambda: book.n_clusters is None)
    assert len(book.clusters) == 12
    slider.close()


def test_stops_are_close_among_the_small():
    stops = slider_stops(200)
    assert stops[0] == 2
    assert stops[-1] == 200
    assert (np.diff(stops) > 0).all()
    assert 20 in stops or np.abs(stops - 20).min() <= 1
