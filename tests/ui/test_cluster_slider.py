"""The number of clusters, and what takes long about it."""

import threading

import numpy as np
import pytest

from napari_embedding_game.session.clusters import cluster_book
from napari_embedding_game.session.clusters.cluster_book import ClusterBook
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.ui.inspector import cluster_slider
from napari_embedding_game.ui.inspector.cluster_slider import (
    ClusterSlider,
    slider_stops,
)

L = 12


class Slow(Merging):
    """Finds Leiden's clusters only outside of the window's thread."""

    def __init__(self):
        super().__init__(None, None)
        self.gate = threading.Event()
        self.is_broken = False

    def _divide(self, n_clusters, grouping):
        if grouping == "leiden":
            assert threading.current_thread() is not threading.main_thread()
            self.gate.wait(5)
            if self.is_broken:
                raise RuntimeError("no memory")
        return (np.arange(L) % n_clusters).astype(np.int32)


@pytest.fixture
def merging():
    return Slow()


@pytest.fixture
def book(merging):
    book = ClusterBook(60)
    book.receive((np.arange(60) % L).astype(np.int32), L, merging)
    return book


@pytest.fixture
def slider(qtbot, monkeypatch, book, merging):
    for module in (cluster_slider, cluster_book):
        monkeypatch.setattr(module, "has_leiden", lambda: True)
    slider = ClusterSlider(book)
    qtbot.addWidget(slider)
    yield slider
    merging.gate.set()
    slider.close()


def choose(slider, n_clusters, grouping="leiden"):
    slider.number.setValue(n_clusters)
    slider.grouping.setCurrentIndex(slider.grouping.findData(grouping))


def test_nested_clusters_are_there_at_once(slider, book):
    choose(slider, 5, "merge")
    assert len(book.clusters) == book.n_clusters == 5


def test_leiden_clusters_are_found_in_the_background(qtbot, slider, book, merging):
    choose(slider, 5)
    assert (book.grouping, book.n_clusters) == ("merge", 5)
    assert book.wanted == (5, "leiden")  # the game may find them, too
    book.changed.emit()  # as each frame of a running game does
    assert slider.grouping.currentData() == "leiden"
    merging.gate.set()
    qtbot.waitUntil(lambda: book.grouping == "leiden")
    assert len(book.clusters) == 5
    choose(slider, 4)
    qtbot.waitUntil(lambda: len(book.clusters) == 4)
    book.undo()  # has been found before
    assert book.grouping == "merge"


def test_the_newest_wish_wins(qtbot, slider, book, merging):
    choose(slider, 5)
    choose(slider, 3, "merge")
    assert book.wanted == (3, "merge")
    merging.gate.set()
    qtbot.wait(50)
    assert (book.grouping, len(book.clusters)) == ("merge", 3)
    assert slider.number.value() == 3


def test_of_a_game_that_went_on_they_are_found_anew(qtbot, slider, book, merging):
    choose(slider, 5)
    later = Slow()
    later.gate.set()
    book.receive(book.labels * 0 + np.arange(60, dtype=np.int32) % L, L, later)
    merging.gate.set()
    qtbot.waitUntil(lambda: book.grouping == "leiden")
    assert later.knows(5, "leiden")


def test_what_cannot_be_found_leaves_all_as_it_was(qtbot, slider, book, merging):
    choose(slider, 5, "merge")
    merging.is_broken = True
    choose(slider, 5)
    merging.gate.set()
    qtbot.waitUntil(lambda: slider.grouping.currentData() == "merge")
    assert book.wanted == (5, "merge")


def test_stops_are_close_among_the_small():
    stops = slider_stops(200)
    assert stops[0] == 2
    assert stops[-1] == 200
    assert (np.diff(stops) > 0).all()
    assert 20 in stops or np.abs(stops - 20).min() <= 1
