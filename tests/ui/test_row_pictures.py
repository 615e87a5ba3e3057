"""Pictures of rows: the dataset's own, or cut out of the layers that are linked."""

from dataclasses import replace

import numpy as np
import pytest
from napari.layers import Image, Labels
from qtpy.QtCore import QObject

from napari_embedding_game.data.label_objects import find_objects
from napari_embedding_game.ui.images.linked_layers import Linked
from napari_embedding_game.ui.images.picture_grid import PICTURE_ROLE
from napari_embedding_game.ui.images.row_pictures import (
    AppearanceWatch,
    common_field,
    pictures_of,
    size_of,
)


@pytest.fixture
def linked():
    labels = np.kron(np.arange(1, 41).reshape(5, 8), np.ones((6, 6), int))
    image = labels.astype(np.float32)
    layers = (
        Image(image, colormap="red", contrast_limits=(0, 40)),
        Image(image, colormap="green", contrast_limits=(0, 40)),
    )
    return Linked(Labels(labels), layers)


@pytest.fixture
def objects(dataset, linked):
    return replace(dataset, source_objects=find_objects(linked.labels.data))


def middle(pictures, row):
    side = pictures[row].shape[0]
    return pictures[row][side // 2, side // 2]


def test_objects_are_cut_out_in_the_colours_of_the_layers(objects, linked):
    pictures = pictures_of(objects, linked)
    np.testing.assert_allclose(middle(pictures, 39), [255, 255, 0], atol=3)
    red, green, _ = middle(pictures, 19)
    assert abs(int(red) - 128) < 8
    assert red == green


def test_all_pictures_have_one_field_of_view_which_is_told(
    qtbot, dataset, inspector, session
):
    labels = np.zeros((200, 400), np.int32)
    for number in range(40):
        row, column = divmod(number, 10)
        side = 30 if number % 2 else 3  # slivers beside nuclei
        top, left = 50 * row + 5, 40 * column + 5
        labels[top : top + side, left : left + side] = number + 1
    image = Image((labels > 0).astype(float), contrast_limits=(0, 1))
    layer = Labels(labels, scale=(0.5, 0.5), units=("micrometer",) * 2)
    linked = Linked(layer, (image,))
    image.scale = layer.scale
    image.units = layer.units
    objects = replace(dataset, source_objects=find_objects(labels))
    assert common_field(objects.objects) == 36
    pictures = pictures_of(objects, linked)
    small, large = (np.mean(pictures[row][..., 0] > 127) for row in (0, 1))
    assert small < 0.05
    assert large > 0.6
    told = "Each picture shows 36 × 36 pixels, 18 µm a side."
    assert size_of(objects, linked) == told
    assert size_of(dataset, linked) == ""
    session.load(objects)
    inspector.workspace.linked.set(linked)
    view = inspector.details.thumbnails
    qtbot.waitUntil(lambda: view.size_label.text() == told)


def test_a_shifted_image_is_cut_where_it_lies(objects, linked):
    image = linked.images[0]
    image.data = np.pad(image.data, ((7, 0), (0, 0)))
    image.translate = (-7, 0)
    linked.images[1].visible = False
    np.testing.assert_allclose(
        middle(pictures_of(objects, linked), 39), [255, 0, 0], atol=3
    )
    image.translate = (500, 0)
    assert middle(pictures_of(objects, linked), 39).tolist() == [0, 0, 0]


def test_a_hidden_image_is_left_out_unless_all_are(objects, linked):
    linked.images[0].visible = False
    np.testing.assert_allclose(
        middle(pictures_of(objects, linked), 39), [0, 255, 0], atol=3
    )
    linked.images[1].visible = False
    np.testing.assert_allclose(
        middle(pictures_of(objects, linked), 39), [255, 255, 0], atol=3
    )


def test_rows_without_layers_or_images_have_none(dataset, objects, linked):
    assert pictures_of(dataset, linked) is None
    assert pictures_of(objects, None) is None
    images = np.zeros((40, 8, 8), np.uint8)
    assert pictures_of(replace(dataset, images=images), None) is images


def test_a_change_of_contrast_is_told_once_it_rests(qtbot, linked):
    told = []
    owner = QObject()
    watch = AppearanceWatch(owner, lambda: told.append(1))
    watch.watch(linked)
    for high in (10, 20, 30):
        linked.images[0].contrast_limits = (0, high)
    qtbot.waitUntil(lambda: told == [1])
    watch.watch(None)
    linked.images[0].contrast_limits = (0, 5)
    qtbot.wait(400)
    assert told == [1]


def test_the_inspector_shows_them_anew(
    qtbot, play, inspector, session, objects, linked
):
    session.load(objects)
    inspector.workspace.linked.set(linked)
    play()
    session.selection.select(3)
    model = inspector.details.thumbnails.pictures
    qtbot.waitUntil(lambda: model.rowCount() == 10)
    before = model._pictures
    linked.images[0].gamma = 2
    qtbot.waitUntil(lambda: model._pictures is not before)
    assert model.rowCount() == 10
    assert middle(model.pictures, 39)[0] > 0
    linked.images[0].data = np.zeros_like(linked.images[0].data)  # as a filter does
    qtbot.waitUntil(lambda: middle(model.pictures, 39)[0] == 0)


def test_a_layer_with_channels_first_shows_each_in_a_colour(objects, linked):
    labels = linked.labels.data
    stack = np.stack([labels == 1, labels == 2]).astype(np.float32)
    layer = Image(stack, contrast_limits=(0, 1))
    pictures = pictures_of(objects, Linked(linked.labels, (layer,)))
    assert middle(pictures, 0).tolist() == [255, 0, 255]
    assert middle(pictures, 1).tolist() == [0, 255, 0]
    assert middle(pictures, 2).tolist() == [0, 0, 0]


def test_an_image_of_another_shape_shows_none_of_the_objects(objects, linked):
    layer = Image(np.ones((3, 9, 9), np.float32), contrast_limits=(0, 1))
    pictures = pictures_of(objects, Linked(linked.labels, (layer,)))
    assert middle(pictures, 0).tolist() == [0, 0, 0]


def test_pictures_that_fail_are_told_of(qtbot, play, dock, inspector):
    class Gone:
        def __getitem__(self, row):
            raise OSError(f"no page {row}")

    play()
    view = inspector.details.thumbnails
    view.pictures.set_pictures(Gone())
    view.set_rows(np.arange(40))
    view.pictures.index(0).data(PICTURE_ROLE)
    message = inspector.clusters.message
    qtbot.waitUntil(lambda: "no page 0" in message.text())
    assert not message.isHidden()
    assert "open the image and its labels again" in message.text()
