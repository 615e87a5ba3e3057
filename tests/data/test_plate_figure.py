"""A plate as a figure in a file."""

import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plate_figure import (
    PlatePicture,
    draw_plate,
    write_plate,
)

pytest.importorskip("matplotlib")


def picture(**more):
    rgba = np.array([[1, 0, 0, 1], [0, 0, 1, 1]], np.float32)
    wells = ((0, 0), (2, 3))
    return PlatePicture(
        shape=(3, 4), wells=wells, rgba=rgba, title="Share $of$ 1", **more
    )


def test_wells_stand_where_they_are_on_the_plate():
    scale = np.ones((8, 4))
    figure = draw_plate(picture(scale=scale, limits=(0, 0.5), is_share=True))
    plate, bar = figure.axes
    empty, measured = plate.collections
    assert len(empty.get_offsets()) == 12
    assert measured.get_offsets().tolist() == [[0, 0], [3, 2]]
    assert plate.yaxis_inverted()  # row A is above
    assert [tick.get_text() for tick in plate.get_yticklabels()] == ["A", "B", "C"]
    figure.canvas.draw()
    assert bar.get_xticklabels()[0].get_text() == "0%"


def test_names_stay_text_and_the_ending_says_how(tmp_path):
    levels = (("_none", np.array([1, 0, 0, 1])), ("drug $x$", np.array([0, 0, 1, 1])))
    path = tmp_path / "plate.svg"
    write_plate(picture(levels=levels, plate="plate 7"), path)
    text = path.read_text()
    assert "drug $x$" in text
    assert "_none" in text
    assert "plate 7" in text
    with pytest.raises(DataError, match="is no figure"):
        write_plate(picture(levels=levels), tmp_path / "plate.gif")
