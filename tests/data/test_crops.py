import numpy as np
import pytest

from napari_embedding_game.data.images.channels import split_into_channels
from napari_embedding_game.data.images.crops import Channel, Thumbnails
from napari_embedding_game.data.label_objects import find_objects

RED, GREEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def picture(labels, row, channels=(), field=30):
    return Thumbnails(channels, labels, find_objects(labels), field)[row]


def test_limits_and_colors(labels):
    image = np.where(labels == 3, 150, 50)
    shown = picture(labels, 1, [Channel(image, (100, 200), GREEN)])
    assert shown[32, 32].tolist() == [0, 128, 0]
    assert shown[2, 2].tolist() == [0, 0, 0]
    table = np.array([[0, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1]])
    for value, color in ((0.25, [128, 0, 0]), (0.5, [255, 0, 0]), (1.0, [255] * 3)):
        image = np.full(labels.shape, value)
        shown = picture(labels, 1, [Channel(image, (0, 1), table)])
        assert shown[32, 32].tolist() == color
    colored = np.full((*labels.shape, 3), [30_000, 15_000, 0], np.uint16)
    shown = picture(labels, 1, [Channel(colored, (0, 30_000), rgb=True)])
    assert shown[32, 32].tolist() == [255, 128, 0]


def test_outline_goes_round_this_object_alone(labels):
    labels[14:16, 30:34] = 9  # a neighbour that touches it
    shown = picture(labels, 1)
    line = (shown == [255, 255, 0]).all(axis=2)
    # The object is 20 wide in a field of 30, and 10 high.
    ends = [(along.min(), along.max()) for along in np.nonzero(line)]
    assert ends == [pytest.approx((21, 42), abs=2), pytest.approx((10, 53), abs=2)]
    assert not line[32, 20:40].any()
    assert line[ends[0][0], 15:50].all()


def test_beyond_the_edge_is_black(labels):
    image = np.ones(labels.shape)
    shown = picture(labels, 2, [Channel(image, (0, 1))], field=16)
    assert shown[40, 40].tolist() == [255] * 3
    assert not shown[:, 0].any()
    assert not shown[0].any()


def test_field_of_view_lets_sizes_compare(labels):
    def area(row, **options):
        shown = picture(labels, row, [Channel(labels > 0, (0, 1))], **options)
        return np.count_nonzero(shown[..., 0] > 127)

    assert area(3, field=30) < 0.7 * area(1, field=30)
    assert area(1, field=60) < 0.4 * area(1, field=30)
    assert area(0, field=8) == pytest.approx((64 / 8) ** 2, rel=0.5)
    whole = np.zeros((40, 60), int)
    whole[10:15, 20:40] = 1  # a square, whose pixels are four times as high as wide
    image = [Channel(whole, (0, 1))]
    square = Thumbnails(image, whole, find_objects(whole), 30, (4.0, 1.0))[0]
    rows, columns = (np.ptp(one) for one in np.nonzero(square[..., 0] > 127))
    assert rows == pytest.approx(columns, abs=4)


def test_slice_of_a_stack_that_cuts_most(labels):
    thin = np.where(np.indices(labels.shape)[1] < 12, labels, 0)
    stack = np.stack([thin, labels, thin])
    image = np.zeros(stack.shape)
    image[1] = 1
    shown = picture(stack, 1, [Channel(image, (0, 1))])
    assert shown[32, 32].tolist() == [255] * 3


def test_rows_that_are_no_object_are_black(labels):
    objects = find_objects(labels).take_or_empty(np.array([1, -1]))
    image = [Channel(np.ones(labels.shape), (0, 1))]
    thumbnails = Thumbnails(image, labels, objects, 30)
    assert [thumbnails[row].any() for row in (0, 1)] == [True, False]


@pytest.mark.parametrize("axis", [0, -1], ids=["first", "last"])
def test_channels_of_one_image_are_cut_one_by_one(labels, axis):
    image = np.stack([labels == 3, labels == 7], axis=axis).astype(float)
    red, green = split_into_channels(image, labels.shape)
    channels = [Channel(red, (0, 1), RED), Channel(green, (0, 1), GREEN)]
    assert picture(labels, 1, channels)[32, 32].tolist() == [255, 0, 0]
    assert picture(labels, 2, channels)[32, 32].tolist() == [0, 255, 0]
