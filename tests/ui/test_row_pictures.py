"""Pictures of rows: the dataset's own, or cut out of the layers that are linked."""

from dataclasses import replace

import numpy as np
import pytest
from napari.layers import Image, Labels
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.data.label_objects import find_objects
from napari_embedding_game.ui.images.linked_layers import ObjectLayers
from napari_embedding_game.ui.images.object_colors import TOO_MANY
from napari_embedding_game.ui.images.picture_grid import fit_into_square, to_qimage
from napari_embedding_game.ui.images.row_pictures import make_row_pictures


@pytest.fixture
def linked():
    labels = np.kron(np.arange(1, 41).reshape(5, 8), np.ones((6, 6), int))
    image = labels.astype(np.float32)
    layers = (
        Image(image, name="a", colormap="red", contrast_limits=(0, 40)),
        Image(image, name="b", colormap="green", contrast_limits=(0, 40)),
    )
    return ObjectLayers(Labels(labels), layers)


@pytest.fixture
def objects(dataset, linked):
    return replace(dataset, source_objects=find_objects(linked.labels.data))


def middle(pictures, row):
    side = pictures[row].shape[0]
    return pictures[row][side // 2, side // 2].tolist()


def test_all_pictures_have_one_field_of_view(dataset):
    labels = np.zeros((200, 400), np.int32)
    for number in range(40):
        row, column = divmod(number, 10)
        side = 30 if number % 2 else 3  # slivers beside nuclei
        top, left = 50 * row + 5, 40 * column + 5
        labels[top : top + side, left : left + side] = number + 1
    image = Image((labels > 0).astype(float), contrast_limits=(0, 1))
    linked = ObjectLayers(Labels(labels), (image,))
    objects = replace(dataset, source_objects=find_objects(labels))
    pictures = make_row_pictures(objects, linked)
    small, large = (np.mean(pictures[row][..., 0] > 127) for row in (0, 1))
    assert small < 0.05
    assert large > 0.6


@pytest.fixture
def shown(qtbot, viewer, play, inspector, session, objects, linked):
    """The pictures of a cluster in the inspector."""
    viewer.layers.extend([linked.labels, *linked.images])
    session.load(objects)
    inspector.workspace.linked_layers.set_layers(linked)
    play()
    session.selection.select_cluster(3)
    model = inspector.details.thumbnails
    qtbot.waitUntil(lambda: model.count() == 10)
    return model


def test_they_follow_the_looks_of_the_image_and_channels_are_switched(
    qtbot, play, shown, session, objects, linked, inspector
):
    channels = inspector.details.channels
    inspector.show()
    bar = inspector.details.tabs.tabBar()
    place = bar.tabRect(0).center()
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=place)
    assert channels.isVisible()
    first, second = channels.menu().actions()
    assert [first.text(), second.text()] == ["a", "b"]
    first.trigger()
    assert middle(shown.pictures, 39) == pytest.approx([0, 255, 0], abs=3)
    first.trigger()
    second.trigger()
    assert middle(shown.pictures, 39) == pytest.approx([255, 0, 0], abs=3)
    second.trigger()
    assert middle(shown.pictures, 19)[:2] == pytest.approx([128, 128], abs=8)
    for image, color in zip(linked.images, ([0, 255, 0], [255, 255, 0]), strict=True):
        image.visible = False  # both: to see the labels alone
        assert middle(make_row_pictures(objects, linked), 39) == pytest.approx(
            color, abs=3
        )
    for image in linked.images:
        image.visible = True
    linked.images[0].gamma = 2
    qtbot.waitUntil(lambda: middle(shown.pictures, 19)[0] < 80)
    assert shown.count() == 10
    linked.images[0].data = np.zeros_like(linked.images[0].data)  # as a filter does
    qtbot.waitUntil(lambda: middle(shown.pictures, 39)[0] == 0)
    session.load(objects.subset(np.arange(40) > 0, reason="too small"))
    inspector.workspace.linked_layers.set_layers(linked)
    play()
    inspector.show()
    pictures = shown.pictures
    assert len(pictures.objects) == 39
    session.columns_changed.emit()
    assert shown.pictures is pictures  # not cut anew at each look at a game


def test_objects_that_were_edited_are_cut_out_lit_and_gone_to(
    qtbot, viewer, shown, linked, objects, session, inspector, dock
):
    layer, changes, said = linked.labels, [], []
    session.look.color_objects, own = True, Labels(layer.data).colormap
    session.message_changed.connect(said.append)
    layer.events.colormap.connect(changes.append)
    for _ in range(3):  # as a slider of clusters does
        session.columns_changed.emit()
        assert not changes
    inspector.show()
    layer.data[0:3, 0:6] = 0  # the first object is smaller
    edited = replace(objects, source_objects=find_objects(layer.data))
    inspector.workspace.map_tree.open_new_reading(edited)
    assert shown.pictures.objects is session.dataset.objects
    layer.data_setitem((np.array([0, 0]), np.array([0, 1])), 99)  # painted: a new one
    changes.clear()
    session.columns_changed.emit()
    qtbot.waitUntil(lambda: bool(changes))
    assert layer.colormap.map([99])[0, 3] > 0  # it is seen, in the layer's colour
    session.selection.select_points(np.array([7]))  # at the right end of the first row
    for order, center in (((0, 1), (2.5, 44.5)), ((1, 0), (44.5, 2.5))):
        viewer.dims.order = order
        dock.objects_view.show_selected_objects()
        assert viewer.scene.camera.center[-2:] == pytest.approx(center)
    layer.data_setitem((np.array([0]), np.array([5])), 70_000)
    for row in (8, 9):
        session.show_message("")
        session.selection.select_points(np.array([row]))
    assert [told for told in said if told] == [TOO_MANY]
    n = np.arange(99)
    np.testing.assert_array_equal(layer.colormap.map(n), own.map(n))


def test_a_layer_with_channels_first_shows_each_in_a_colour(objects, linked):
    labels = linked.labels.data
    stack = np.stack([labels == 1, labels == 2]).astype(np.float32)
    layer = Image(stack, name="stack", contrast_limits=(0, 1))
    of_layer = ObjectLayers(linked.labels, (layer,))
    pictures = make_row_pictures(objects, of_layer)
    colors = [middle(pictures, row) for row in range(3)]
    assert colors == [[255, 0, 255], [0, 255, 0], [0, 0, 0]]
    assert middle(make_row_pictures(objects, of_layer, {"stack 1"}), 0) == [0, 0, 0]


def test_a_large_picture_is_made_smaller_smoothly_a_small_one_keeps_its_pixels():
    def shades(height, width):
        stripes = np.full((height, width), [0, 255] * (width // 2), np.uint8)
        smaller = fit_into_square(to_qimage(stripes), 30)
        line = [smaller.pixelColor(x, 0).red() for x in range(smaller.width())]
        return {shade for shade in line if 0 < shade < 255}

    assert shades(10, 60)  # means of stripes
    assert not shades(10, 20)


def test_pictures_that_fail_are_told_of(qtbot, play, dock, inspector):
    class Gone:
        def __getitem__(self, row):
            raise OSError(f"no page {row}")

    play()
    view = inspector.details.thumbnails
    view.set_pictures(Gone())
    view.set_rows(np.arange(40))
    message = inspector.clusters.message
    qtbot.waitUntil(lambda: "no page 0" in message.text())
    assert "Open the image and its labels again" in message.text()
