"""A grid of pictures, made beside the window."""

import threading

import numpy as np

from napari_embedding_game.ui.images.picture_grid import SIDE, PictureGrid


class Slow:
    """Pictures that may only be made outside of the window's thread."""

    def __init__(self):
        self.made = []

    def __getitem__(self, row):
        assert threading.current_thread() is not threading.main_thread()
        self.made.append(row)
        return np.full((8, 8, 3), row % 256, np.uint8)


def test_each_picture_is_made_once_in_the_background(qtbot):
    view, pictures = PictureGrid(lambda rows: None), Slow()
    qtbot.addWidget(view)
    view.set_pictures(pictures)
    view.set_rows(np.arange(40)[::-1])

    def grey(place):
        picture = view.item(place).icon().pixmap(SIDE)
        return None if picture.isNull() else picture.toImage().pixelColor(9, 9).red()

    qtbot.waitUntil(lambda: grey(39) is not None)
    assert [grey(place) for place in (0, 39)] == [39, 0]
    view.set_rows(np.array([7, 300, 9]))
    qtbot.waitUntil(lambda: grey(1) is not None)
    assert [grey(place) for place in range(3)] == [7, 300 % 256, 9]
    assert sorted(pictures.made) == [*range(40), 300]
