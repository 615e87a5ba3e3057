import numpy as np
import pytest

from napari_embedding_game.data import row_images


@pytest.mark.parametrize("side", [8, 28, 32])
def test_square_rows_of_bytes_are_pictures(side):
    rows = np.arange(2 * side**2).reshape(2, -1).astype(np.uint8)
    pictures = row_images.thumbnails(rows)
    assert pictures.shape == (2, side, side)
    assert pictures[1, 0, 1] == rows[1, 1]
    assert pictures[1, 1, 0] == rows[1, side]


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((2, 9), np.uint8),
        np.zeros((2, 65), np.uint8),
        np.zeros((2, 64), np.float32),
    ],
)
def test_other_rows_are_none(rows):
    assert row_images.thumbnails(rows) is None


def test_other_numbers_are_scaled_from_lowest_to_highest():
    pictures = np.array([[[-1.0, 0.0], [1.0, np.nan]]])
    assert row_images.as_uint8(pictures).tolist() == [[[0, 128], [255, 0]]]
    assert row_images.as_uint8(np.full((1, 2, 2), 7.0)).max() == 0


def test_pixels_of_bytes_end_at_one():
    rows = row_images.pixels(np.array([[[0, 255], [51, 0]]], np.uint8))
    np.testing.assert_allclose(rows, [[0, 1, 0.2, 0]])
    assert rows.dtype == np.float32
