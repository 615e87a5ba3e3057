"""An image read on the pixels of labels that lie elsewhere."""

import numpy as np
import pytest
from scipy import ndimage

from napari_embedding_game.data.images.measure import measure
from napari_embedding_game.data.images.resampled import PlacedImage
from napari_embedding_game.data.read_options import ReadOptions


@pytest.fixture
def image():
    return np.random.default_rng(0).random((30, 40)).astype(np.float32)


@pytest.mark.parametrize(
    ("scale", "offset"),
    [((1, 1), (3, -2)), ((1, 1), (0.25, 1.5)), ((2, 0.5), (0, 1)), ((-1, 1), (20, 0))],
)
def test_same_values_as_scipy(image, scale, offset):
    placed = np.asarray(PlacedImage(image, (14, 36), scale, offset))
    grid = np.indices((14, 36)).astype(float)
    places = [o + s * g for o, s, g in zip(offset, scale, grid, strict=True)]
    expected = ndimage.map_coordinates(image, places, order=1, mode="nearest")
    inside = np.all(
        [
            (p >= -0.5) & (p <= n - 0.5)
            for p, n in zip(places, image.shape, strict=True)
        ],
        axis=0,
    )
    np.testing.assert_allclose(placed[inside], expected[inside], rtol=1e-5)
    assert np.isnan(placed[~inside]).all()


@pytest.mark.parametrize(
    "key",
    [(slice(2, 9), slice(3, 5)), (4, slice(None)), (slice(0, 0), 1), ..., (..., 3), 5],
)
def test_a_part_is_that_of_the_whole(image, key):
    placed = PlacedImage(image, (20, 20), (1.5, 1), (-3, 0.5))
    np.testing.assert_array_equal(placed[key], np.asarray(placed)[key])


def test_no_more_is_read_than_is_asked_for(image):
    class Lazy:
        shape, dtype, read = (3000, 4000), np.dtype(np.uint16), 0

        def __getitem__(self, place):
            found = np.zeros([part.stop - part.start for part in place], np.uint16)
            Lazy.read += found.size
            return found

    placed = PlacedImage(Lazy(), (3000, 4000), (1, 1), (10, 10))
    assert placed[100:110, 200:220].shape == (10, 20)
    assert placed.dtype == np.float32
    assert Lazy.read == 200


@pytest.mark.parametrize("channels", [0, -1])
def test_channels_stay_whole(channels):
    image = np.random.default_rng(0).integers(0, 255, (6, 8, 3)).astype(np.uint8)
    image = np.moveaxis(image, -1, channels)
    placed = PlacedImage(image, (6, 8), (1, 1), (2, 0), channels, fill=0)
    assert placed.shape == image.shape
    assert placed.dtype == np.uint8
    rows = np.moveaxis(np.asarray(placed), channels, -1)
    np.testing.assert_array_equal(rows[:4], np.moveaxis(image, channels, -1)[2:])
    assert not rows[4:].any()


def test_objects_are_measured_where_the_image_lies(labels):
    image = np.random.default_rng(0).random(labels.shape)
    placed = PlacedImage(image[7:, 3:], labels.shape, (1, 1), (-7, -3))
    found = measure(placed, labels, options=ReadOptions(missing="drop"))
    expected = measure(image, labels)
    # Label 7 lies in the corner that the image does not show.
    assert found.obs["label"].tolist() == [2, 3, 11]
    for name in ("intensity_mean", "intensity_max", "area"):
        mine, theirs = (
            dict(zip(one.profile_names, one.profile.T, strict=True))[name]
            for one in (found, expected)
        )
        np.testing.assert_allclose(mine, theirs[[0, 1, 3]], rtol=1e-5)
