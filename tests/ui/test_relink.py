"""A restored session finds its image and its labels again."""

from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.session.file.saved_map import SavedSession


@pytest.fixture
def labels():
    labels = np.zeros((40, 40), np.int32)
    for number in range(25):
        row, column = 8 * (number // 5), 8 * (number % 5)
        labels[row : row + 3 + number % 3, column : column + 4] = number + 1
    return labels


@pytest.fixture
def image(labels):
    return np.random.default_rng(0).random(labels.shape)


@pytest.fixture
def saved(load, qtbot, viewer, dock, session, play, labels, image):
    """The session of measured objects whose layers have been closed since."""
    viewer.add_image(image, name="dapi")
    viewer.add_labels(labels, name="cells")
    load(dock.data.measure.measure.native.click)
    play()
    found = dock.workspace.maps.capture()
    viewer.layers.clear()
    return found


def bring_back(dock, saved: SavedSession):
    dock.controller.workspace.linked.set(None)
    dock.controller.workspace.maps.restore(saved)
    dock.data.relink.open_again()


def test_what_is_missing_is_told_and_linked_once_it_is_open(
    qtbot, viewer, dock, inspector, session, saved, labels, image
):
    bring_back(dock, saved)
    session.selection.select_points(np.arange(9))
    qtbot.waitUntil(lambda: inspector.report is not None)
    assert dock.controller.workspace.linked.current is None
    assert "The labels 'cells' of these objects" in dock.data.relink.text.text()
    # Who saves now does not lose what the file said.
    view = dock.workspace.maps.capture().maps[0].view
    assert view["layers"]["images"][0]["name"] == "dapi"
    viewer.add_labels(np.roll(labels, 3), name="cells")
    qtbot.wait(20)
    assert dock.controller.workspace.linked.current is None
    layer = viewer.add_labels(labels, name="whatever")
    qtbot.waitUntil(lambda: dock.controller.workspace.linked.current is not None)
    assert dock.controller.workspace.linked.current.labels is layer
    told = dock.data.relink.text.text()
    assert told.startswith("The image 'dapi' of these objects is")
    # The map makes room for them.
    layers = dock.controller.scene.layers
    assert layers.points.data[:, 1].min() > 40
    dapi = viewer.add_image(image, name="dapi")
    qtbot.waitUntil(lambda: dock.controller.workspace.linked.current.images == (dapi,))
    assert dock.data.relink.isHidden()
    pictures = inspector.details.thumbnails
    qtbot.waitUntil(lambda: sorted(pictures.rows) == list(range(9)))


@pytest.mark.parametrize("hostile", [3, {"labels": 3, "images": "x"}, {"images": [7]}])
def test_nonsense_in_a_session_file_is_passed_over(qtbot, viewer, dock, saved, hostile):
    one = replace(saved.maps[0], view={**saved.maps[0].view, "layers": hostile})
    bring_back(dock, replace(saved, maps=(one,)))
    told = dock.data.relink.text.text()
    assert told.startswith("The labels of these objects are not")


def test_other_data_end_the_search(
    qtbot, viewer, dock, session, saved, dataset, labels
):
    bring_back(dock, saved)
    session.load(dataset)
    assert dock.data.relink.isHidden()
    viewer.add_labels(labels)
    qtbot.wait(20)
    assert dock.controller.workspace.linked.current is None
