import numpy as np
import pytest

from napari_embedding_game.data.images.crops import (
    Channel,
    Thumbnails,
    planes,
    thumbnail,
)
from napari_embedding_game.data.label_objects import find_objects

RED, GREEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def picture(labels, row, channels=(), **options):
    return thumbnail(channels, labels, find_objects(labels), row, **options)


def test_limits_and_color(labels):
    image = np.where(labels == 3, 150, 50)
    shown = picture(labels, 1, [Channel(image, (100, 200), GREEN)], outline=None)
    assert shown.shape == (64, 64, 3)
    assert shown.dtype == np.uint8
    assert shown[32, 32].tolist() == [0, 128, 0]
    assert shown[2, 2].tolist() == [0, 0, 0]


def test_table_of_colors(labels):
    table = np.array([[0, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1]])
    for value, color in ((0.25, [128, 0, 0]), (0.5, [255, 0, 0]), (1.0, [255] * 3)):
        image = np.full(labels.shape, value)
        shown = picture(labels, 1, [Channel(image, (0, 1), table)], outline=None)
        assert shown[32, 32].tolist() == color


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_color_picture(labels, dtype):
    image = np.zeros((*labels.shape, 4), dtype)
    image[..., 1] = 255 if dtype == np.uint8 else 1
    shown = picture(labels, 1, [Channel(image, rgb=True)], outline=None)
    assert shown[32, 32].tolist() == [0, 255, 0]


def test_outline_goes_round_this_object_alone(labels):
    labels[14:16, 30:34] = 9  # a neighbour that touches it
    shown = picture(labels, 1, outline=(1, 1, 0))
    line = (shown == [255, 255, 0]).all(axis=2)
    rows, columns = np.nonzero(line)
    # The object is 20 wide in a field of 30, and 10 high.
    assert (columns.min(), columns.max()) == (
        pytest.approx(10, abs=2),
        pytest.approx(53, abs=2),
    )
    assert (rows.min(), rows.max()) == (
        pytest.approx(21, abs=2),
        pytest.approx(42, abs=2),
    )
    assert not line[32, 20:40].any()
    assert line[rows.min(), 15:50].all()
    assert not picture(labels, 1, outline=None).any()


def test_beyond_the_edge_is_black(labels):
    image = np.ones(labels.shape)
    shown = picture(labels, 2, [Channel(image, (0, 1))], margin=0.5, outline=None)
    assert shown[40, 40].tolist() == [255] * 3
    assert not shown[:, 0].any()
    assert not shown[0].any()


def test_field_of_view_lets_sizes_compare(labels):
    def area(row, **options):
        shown = picture(
            labels, row, [Channel(labels > 0, (0, 1))], outline=None, **options
        )
        return np.count_nonzero(shown[..., 0] > 127)

    assert area(3, field=30) < 0.7 * area(1, field=30)
    assert area(1, field=60) < 0.4 * area(1, field=30)
    assert area(0) == pytest.approx((64 / 8) ** 2, rel=0.5)


def test_large_objects_are_averaged_down():
    labels = np.ones((600, 600), int)
    image = np.indices((600, 600)).sum(axis=0) % 2
    shown = picture(labels, 0, [Channel(image, (0, 1))], margin=0, outline=None)
    assert np.ptp(shown[5:-5, 5:-5].astype(int)) < 30
    assert shown[32, 32, 0] == pytest.approx(127, abs=15)


def test_slice_of_a_stack_that_cuts_most(labels):
    thin = np.where(np.indices(labels.shape)[1] < 12, labels, 0)
    stack = np.stack([thin, labels, thin])
    image = np.zeros(stack.shape)
    image[1] = 1
    shown = picture(stack, 1, [Channel(image, (0, 1))], outline=None)
    assert shown[32, 32].tolist() == [255] * 3


def test_nothing_but_the_surroundings_is_read(labels):
    class Lazy:
        shape = (4000, 4000)
        read = 0

        def __getitem__(self, place):
            rows, columns = place
            Lazy.read += (rows.stop - rows.start) * (columns.stop - columns.start)
            return np.zeros((rows.stop - rows.start, columns.stop - columns.start))

    objects = find_objects(labels)
    thumbnail([Channel(Lazy())], labels, objects, 1)
    assert 0 < Lazy.read <= 30 * 30


def test_sequence_makes_each_once(labels):
    image = np.zeros(labels.shape)
    thumbnails = Thumbnails(
        [Channel(image, (0, 1))], labels, find_objects(labels), size=32
    )
    assert len(thumbnails) == 4
    first = thumbnails[0]
    assert first.shape == (32, 32, 3)
    assert thumbnails[0] is first
    assert len(list(thumbnails)) == 4
    with pytest.raises(IndexError):
        thumbnails[4]


@pytest.mark.parametrize("axis", [0, -1], ids=["first", "last"])
def test_channels_of_one_image_are_cut_one_by_one(labels, axis):
    image = np.stack([labels == 3, labels == 7], axis=axis).astype(float)
    red, green = planes(image, labels.shape)
    assert red.shape == labels.shape
    channels = [Channel(red, (0, 1), RED), Channel(green, (0, 1), GREEN)]
    assert picture(labels, 1, channels, outline=None)[32, 32].tolist() == [255, 0, 0]
    assert picture(labels, 2, channels, outline=None)[32, 32].tolist() == [0, 255, 0]
