"""The number of clusters, chosen by a slider or typed."""

import numpy as np

from napari_embedding_game.session.clusters.cluster_book import ClusterBook
from napari_embedding_game.ui.inspector.cluster_slider import (
    ClusterSlider,
    slider_stops,
)


def test_the_slider_and_its_number_merge_landmarks(qtbot):
    book = ClusterBook(60)
    labels = (np.arange(60) % 12).astype(np.int32)
    book.receive(labels, 12, lambda n: (np.arange(12) % n).astype(np.int32))
    slider = ClusterSlider(book)
    qtbot.addWidget(slider)
    slider.number.setValue(5)
    assert len(book.clusters) == book.n_clusters == 5
    slider.slider.setValue(slider.slider.maximum())
    qtbot.waitUntil(lambda: book.n_clusters is None)
    assert len(book.clusters) == 12
    book.undo()
    assert slider.number.value() == book.n_clusters or book.n_clusters is None
    slider.close()


def test_stops_are_close_among_the_small():
    stops = slider_stops(200)
    assert stops[0] == 2
    assert stops[-1] == 200
    assert (np.diff(stops) > 0).all()
    assert 20 in stops or np.abs(stops - 20).min() <= 1
