"""A restored session finds its image and its labels again."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from napari_embedding_game.data.images.label_column import share_shown
from napari_embedding_game.data.label_objects import find_objects
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.ui.images import relink
from napari_embedding_game.ui.images.linked_layers import (
    OBJECTS_NAME,
    PICTURE_NAME,
    LinkedLayers,
    describe,
    show_pictures,
)
from napari_embedding_game.ui.images.relink import find, missing


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


def test_labels_are_known_by_their_pixels(labels):
    objects = find_objects(labels)
    assert share_shown(labels, objects) == 1
    assert share_shown(labels, objects.take(np.array([3, 7]))) == 1
    assert share_shown(np.roll(labels, 1, axis=0), objects) == 0
    assert share_shown(labels[:20], objects) == 0
    assert share_shown(np.stack([labels] * 2), objects) == 0
    assert share_shown(np.where(labels == 1, 0, labels), objects) == 24 / 25
    assert share_shown(np.zeros_like(labels), objects) == 0


def test_of_several_labels_the_one_of_the_same_name_is_taken(viewer, labels, image):
    objects = find_objects(labels)
    assert find(viewer, {}, objects) is None
    viewer.add_labels(np.roll(labels, 2), name="nuclei of another image")
    first = viewer.add_labels(labels, name="other")
    assert find(viewer, {"labels": {"name": "nuclei"}}, objects).labels is first
    second = viewer.add_labels(labels.copy(), name="nuclei")
    assert find(viewer, {"labels": {"name": "nuclei"}}, objects).labels is second
    dapi, _ = viewer.add_image(image, name="dapi"), viewer.add_image(image, name="gfp")
    viewer.add_image(image[:5], name="dapi")
    wanted = {"labels": {"name": "nuclei"}, "images": [{"name": "dapi"}]}
    assert find(viewer, wanted, objects).images == (dapi,)
    assert find(viewer, {}, objects).images == ()  # they may be two fields of view
    dapi.name = "dapi of the other nuclei"
    first.name = "other"
    second.name = "nuclei of another"
    assert find(viewer, {}, objects).images == (dapi,)
    dapi.name = "dapi"
    assert find(viewer, {"images": [{"name": "rfp"}]}, objects).images == ()
    stack = viewer.add_image(np.stack([image] * 3), name="rfp")
    assert find(viewer, {"images": [{"name": "rfp"}]}, objects).images == (stack,)


@pytest.mark.parametrize("hostile", [{}, {"labels": 3, "images": "x"}, {"images": [7]}])
def test_nonsense_in_a_session_file_is_passed_over(viewer, labels, hostile):
    viewer.add_labels(labels)
    assert find(viewer, hostile, find_objects(labels)) is not None
    assert missing(hostile, None).startswith("The labels of these objects are not")


@pytest.fixture
def saved(qtbot, viewer, dock, session, play, labels, image):
    """The session of measured objects whose layers have been closed since."""
    viewer.add_image(image, name="dapi")
    viewer.add_labels(labels, name="cells")
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=10_000):
        dock.data.measure.measure.native.click()
    play()
    found = dock.controller.session_store.capture()
    viewer.layers.clear()
    return found


def bring_back(dock, saved: SavedSession):
    dock.controller.workspace.linked.set(None)
    dock.controller.workspace.maps.restore(saved)
    dock.controller.relink.open_again()


def test_layers_that_are_open_are_linked(
    viewer, dock, session, saved, labels, image, lit
):
    layer = viewer.add_labels(labels, name="cells")
    dapi = viewer.add_image(image, name="dapi")
    bring_back(dock, saved)
    linked = dock.controller.workspace.linked.current
    assert (linked.labels, linked.images) == (layer, (dapi,))
    assert dock.data.relink.isHidden()
    session.selection.select_points(np.array([3]))
    assert lit(layer) == [4]


def test_what_is_missing_is_told_and_linked_once_it_is_open(
    qtbot, viewer, dock, inspector, session, saved, labels, image
):
    bring_back(dock, saved)
    session.selection.select_points(np.arange(9))
    qtbot.waitUntil(lambda: inspector.report is not None)
    assert dock.controller.workspace.linked.current is None
    assert dock.data.relink.text.text() == (
        "The labels 'cells' of these objects are not open: open them and their image, "
        "and they are linked by themselves."
    )
    assert not dock.data.drop.native.isVisible()
    # Who saves now does not lose what the file said.
    view = dock.controller.session_store.capture().maps[0].view
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
    layers = dock.controller.layers
    assert layers.points.data[:, 1].min() > 40
    np.testing.assert_allclose(
        layers.points.data, layers.to_world(session.snapshot.embedding), rtol=1e-5
    )
    dapi = viewer.add_image(image, name="dapi")
    qtbot.waitUntil(lambda: dock.controller.workspace.linked.current.images == (dapi,))
    assert dock.data.relink.isHidden()
    pictures = inspector.details.thumbnails.pictures
    qtbot.waitUntil(lambda: sorted(pictures.rows) == list(range(9)))


def test_other_data_end_the_search(
    qtbot, viewer, dock, session, saved, dataset, labels
):
    bring_back(dock, saved)
    session.load(dataset)
    assert dock.data.relink.isHidden()
    viewer.add_labels(labels)
    qtbot.wait(20)
    assert dock.controller.workspace.linked.current is None


def test_layers_are_described_by_name_and_file(viewer, session, labels, image):
    loaded = SimpleNamespace(image=image, labels=labels)
    linked = show_pictures(viewer, loaded)
    told = describe(linked)
    assert told["labels"]["sample"] == "nuclei"
    assert [one["name"] for one in told["images"]] == [linked.images[0].name]
    record = LinkedLayers()
    assert record.describe() == {}
    record.set(linked)
    assert record.describe() == told
    record.set(None)
    assert record.describe() == {}


class Sample:
    """Makes the picture of the sample in no time."""

    made = None

    def __init__(self, key):
        assert key == "nuclei"

    def read(self, options):
        yield Stage("Making the picture")
        return self.made


def test_the_picture_of_the_sample_is_made_again(
    qtbot, monkeypatch, viewer, dock, saved, labels, image
):
    monkeypatch.setattr(relink, "SampleSource", Sample)
    monkeypatch.setattr(Sample, "made", SimpleNamespace(image=image, labels=labels))
    layers = {"labels": {"name": OBJECTS_NAME, "sample": "nuclei"}}
    layers["images"] = [{"name": PICTURE_NAME}]
    one = replace(saved.maps[0], view={**saved.maps[0].view, "layers": layers})
    bring_back(dock, replace(saved, maps=(one,)))
    qtbot.waitUntil(lambda: dock.controller.workspace.linked.current is not None)
    assert [x.name for x in dock.controller.workspace.linked.current.images] == [
        PICTURE_NAME
    ]
    assert dock.data.relink.isHidden()
    viewer.layers.clear()
    monkeypatch.setattr(Sample, "made", SimpleNamespace(image=image, labels=labels.T))
    bring_back(dock, replace(saved, maps=(one,)))
    qtbot.waitUntil(lambda: dock.controller.relink._worker is None)
    assert dock.controller.workspace.linked.current is None  # another version's picture
    assert OBJECTS_NAME not in viewer.layers
