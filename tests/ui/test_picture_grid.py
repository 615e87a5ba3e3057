"""A grid of pictures, made when they are first to be seen."""

import threading

import numpy as np
import pytest

from napari_embedding_game.ui.images.picture_grid import (
    PICTURE_ROLE,
    PictureGrid,
)


class Slow:
    """Pictures that may only be made outside of the window's thread."""

    def __init__(self):
        self.made = []

    def __getitem__(self, row):
        assert threading.current_thread() is not threading.main_thread()
        self.made.append(row)
        return np.full((8, 8, 3), row % 256, np.uint8)


@pytest.fixture
def view(qtbot):
    view = PictureGrid(lambda rows: None)
    qtbot.addWidget(view)
    view.resize(400, 150)
    return view


def test_only_pictures_in_view_are_made_and_in_the_background(qtbot, view):
    pictures = Slow()
    view.pictures.set_pictures(pictures)
    view.set_rows(np.arange(5000)[::-1])
    view.show()
    qtbot.waitUntil(lambda: len(pictures.made) >= 10)
    qtbot.wait(50)
    assert len(pictures.made) < 100
    assert pictures.made[-1] > 4900
    view.scrollToBottom()
    qtbot.waitUntil(lambda: 0 in pictures.made)
    index = view.pictures.index(4999)
    qtbot.waitUntil(lambda: index.data(PICTURE_ROLE) is not None)
    assert index.data(PICTURE_ROLE).pixelColor(0, 0).red() == 0
