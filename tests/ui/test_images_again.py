"""A session is opened whose images were moved, renamed or changed meanwhile."""

from dataclasses import replace

import numpy as np
import pytest
import tifffile
from npe2 import PluginManager, PluginManifest
from qtpy.QtWidgets import QApplication

from napari_embedding_game.ui.game_dock import MAP
from worlds import click

SIDE = 40


def cells():
    """25 labelled boxes."""
    labels = np.zeros((SIDE, SIDE), np.uint16)
    for number in range(25):
        row, column = 8 * (number // 5), 8 * (number % 5)
        labels[row : row + 4 + number % 3, column : column + 5] = number + 1
    return labels


def picture(seed=0):
    return np.random.default_rng(seed).random((SIDE, SIDE)).astype(np.float32)


def shown(widget):
    """Whether a person who scrolls to it sees a widget."""
    return widget.isVisibleTo(widget.window())


def nothing_goes_on_for_ever(viewer):
    inserted = []
    viewer.layers.events.inserted.connect(inserted.append)
    for _ in range(200):
        QApplication.processEvents()
    assert not inserted


@pytest.fixture
def desk(load, qtbot, answer, viewer, dock, session, tmp_path):
    """What a person does: save the session, close all layers, open it again."""
    path = tmp_path / "saved.zip"

    class Desk:
        def measure(self):
            dock.data_fold.set_expanded(True)
            load(lambda: click(dock.data_controls.measure_panel.measure_button))
            self.run()

        def run(self):
            click(dock.run_controls.run_button)
            qtbot.waitUntil(lambda: session.state == "finished")

        def save(self):
            with qtbot.waitSignal(dock.controller.writing.saved, timeout=20_000):
                dock.controller.writing.save(path)
            viewer.layers.clear()
            qtbot.waitUntil(lambda: self.linked is None)

        def open(self):
            answer(path)
            dock.data_controls.start_panel.ask_and_open_file()
            qtbot.waitUntil(
                lambda: (
                    not dock.data_controls.cancel_button.isVisibleTo(dock.data_controls)
                )
            )

        @property
        def linked(self):
            return dock.controller.workspace.linked_layers.current

    return Desk()


@pytest.fixture
def readers():
    """napari's own readers, which else come with a window."""
    manager = PluginManager.instance()
    is_new = "napari" not in manager
    if is_new:
        manager.register(PluginManifest.from_distribution("napari"))
    yield
    if is_new:
        manager.unregister("napari")


@pytest.fixture
def files(tmp_path, viewer, readers):
    """An image and labels in files that were opened in napari."""
    found = {"image": tmp_path / "dapi.tif", "labels": tmp_path / "cells.tif"}
    tifffile.imwrite(found["image"], picture())
    tifffile.imwrite(found["labels"], cells())
    for kind, path in found.items():
        viewer.open(path, plugin="napari", layer_type=kind)
    return found


def test_files_that_are_still_there_are_opened_again(
    viewer, dock, desk, files, tmp_path
):
    for layer in viewer.layers:
        layer.scale = (0.5, 0.5)
    desk.measure()
    desk.save()
    other = tmp_path / "other" / "dapi.tif"
    other.parent.mkdir()
    tifffile.imwrite(other, picture(1))
    viewer.open(other, plugin="napari")
    desk.open()
    (image,), labels = desk.linked.images, desk.linked.labels
    np.testing.assert_array_equal(image.data, picture())  # not the other's
    assert labels is viewer.layers["cells"]
    np.testing.assert_array_equal(labels.data, cells())
    assert labels.scale.tolist() == image.scale.tolist() == [0.5, 0.5]
    assert not shown(dock.data_controls.relink_panel)


@pytest.mark.parametrize("kind", ["cells", "dapi"])
def test_a_layer_that_is_removed_while_the_selection_is_seen_is_named(
    qtbot, viewer, dock, inspector, session, desk, files, kind
):
    desk.measure()
    session.selection.select_points(np.arange(9))
    inspector.show()
    assert not shown(dock.data_controls.relink_panel)
    viewer.layers.remove(kind)
    qtbot.waitUntil(lambda: shown(dock.data_controls.relink_panel.text))
    assert f"'{kind}'" in dock.data_controls.relink_panel.text.text()
    viewer.open(files["labels" if kind == "cells" else "image"], plugin="napari")
    added = viewer.layers[-1]
    if kind == "cells":
        viewer.layers.remove(added)
        viewer.open(files["labels"], plugin="napari", layer_type="labels")
    qtbot.waitUntil(lambda: not shown(dock.data_controls.relink_panel))
    assert [layer.name for layer in desk.linked.images] == ["dapi"]


def test_a_renamed_image_is_linked_by_a_click(
    qtbot, viewer, dock, inspector, session, desk, files
):
    desk.measure()
    desk.save()
    renamed = files["image"].rename(files["image"].with_name("DNA & 1.tif"))
    desk.open()
    told = dock.data_controls.relink_panel.text
    assert "The image 'dapi' (from" in told.text()
    assert shown(told)
    session.selection.select_points(np.arange(9))
    inspector.show(MAP)
    nothing_goes_on_for_ever(viewer)
    assert not shown(dock.data_controls.relink_panel.button)
    viewer.open(renamed, plugin="napari")
    button = dock.data_controls.relink_panel.button
    qtbot.waitUntil(lambda: shown(button))
    assert button.text() == "This is the image: DNA && 1"  # else Qt shows no "&"
    click(button)
    assert desk.linked.images == (viewer.layers["DNA & 1"],)
    assert not shown(dock.data_controls.relink_panel)
    inspector.show()
    pictures = inspector.details.thumbnails
    qtbot.waitUntil(lambda: sorted(pictures.rows) == list(range(9)))
    # What was said is kept for the next time.
    desk.save()
    desk.open()
    assert [layer.name for layer in desk.linked.images] == ["DNA & 1"]


def test_what_is_missing_is_linked_once_it_is_open(
    qtbot, viewer, dock, inspector, session, desk
):
    viewer.add_image(picture(), name="dapi")
    viewer.add_labels(cells(), name="cells")
    desk.measure()
    desk.save()
    desk.open()
    told, layers = (
        dock.data_controls.relink_panel.text,
        dock.controller.scene.map_layers,
    )
    session.selection.select_points(np.arange(9))
    qtbot.waitUntil(lambda: inspector.report is not None)
    assert desk.linked is None
    assert "The labels 'cells' of these objects" in told.text()
    # Who saves now does not lose what the file said.
    saved = dock.workspace.map_tree.to_saved_session()
    assert saved.maps[0].view["layers"]["images"][0]["name"] == "dapi"
    viewer.add_labels(np.roll(cells(), 3), name="cells")
    qtbot.settle()
    assert desk.linked is None
    layer = viewer.add_labels(cells(), name="whatever")
    qtbot.waitUntil(lambda: desk.linked is not None)
    assert desk.linked.labels is layer
    assert told.text().startswith("The image 'dapi' of these objects is")
    assert layers.points.data[:, 1].min() > SIDE  # the map makes room for them
    dapi = viewer.add_image(picture(), name="dapi")
    qtbot.waitUntil(lambda: desk.linked.images == (dapi,))
    assert dock.data_controls.relink_panel.isHidden()
    pictures = inspector.details.thumbnails
    qtbot.waitUntil(lambda: sorted(pictures.rows) == list(range(9)))
    viewer.layers.clear()
    qtbot.waitUntil(lambda: desk.linked is None)
    for hostile in (3, {"labels": 3, "images": "x"}, {"images": [7]}):
        of_map = saved.maps[0]
        of_map = replace(of_map, view={**of_map.view, "layers": hostile})
        dock.workspace.map_tree.restore(replace(saved, maps=(of_map,)))
        dock.data_controls.relink_panel.open_missing_layers()
        assert told.text().startswith("The labels of these objects are not")


def test_other_data_end_the_search(qtbot, viewer, dock, session, dataset, desk, files):
    desk.measure()
    desk.save()
    files["image"].unlink()
    desk.open()
    assert shown(dock.data_controls.relink_panel)
    viewer.add_image(picture(1), name="gfp")
    desk.measure()
    assert [layer.name for layer in desk.linked.images] == ["gfp"]
    assert not shown(dock.data_controls.relink_panel)
    session.selection.select_points(np.arange(9))
    nothing_goes_on_for_ever(viewer)
    assert [layer.name for layer in desk.linked.images] == ["gfp"]
    desk.save()
    files["labels"].unlink()
    desk.open()
    assert shown(dock.data_controls.relink_panel)
    session.load(dataset)
    assert dock.data_controls.relink_panel.isHidden()
    viewer.add_labels(cells())
    qtbot.settle()
    assert desk.linked is None


def test_labels_that_changed_on_disk_are_told_and_measured_again(
    load, qtbot, viewer, dock, session, desk, files
):
    desk.measure()
    session.clusters.make_group(np.arange(5, 12), "dark")
    desk.save()
    labels = cells()
    labels[1, 1] = 0  # the box of label 1 stays
    labels[labels == 7] = 0
    labels[38:, 30:34] = 99
    tifffile.imwrite(files["labels"], labels)
    desk.open()
    again = dock.data_controls.relink_panel
    qtbot.waitUntil(lambda: shown(again.text))
    assert again.text.text() == (
        "8.0% of the objects have changed in the labels 'cells' since they were read."
    )
    assert len(session.dataset.obs) == 25
    load(lambda: click(again.button))
    obs, names = session.dataset.obs, session.clusters.clustering.names_by_point
    assert obs["label"].tolist() == np.unique(labels)[1:].tolist()
    assert obs["label"][names == "dark"].tolist() == [6, *range(8, 13)]
    assert not shown(again.text)


@pytest.fixture
def plate(tmp_path):
    """A folder of two images with their labels."""
    folder = tmp_path / "plate 1"
    folder.mkdir()
    for number in (1, 2):
        tifffile.imwrite(folder / f"field{number}.tif", picture(number))
        tifffile.imwrite(folder / f"field{number}_labels.tif", cells())
    return folder


def test_the_images_of_a_plate_are_found_again(
    load, qtbot, answer, dock, session, desk, plate, lit
):
    answer(plate)
    load(dock.data_controls.start_panel.ask_and_open_folder)
    desk.run()
    desk.save()
    desk.open()
    assert (
        dock.data_controls.relink_panel.text.text()
        == f"Opening the images of {plate} again …"
    )
    qtbot.waitUntil(lambda: desk.linked is not None)
    assert not shown(dock.data_controls.relink_panel)
    map_before = session.snapshot
    desk.save()
    moved = plate.rename(plate.with_name("moved"))
    desk.open()
    told = f"The images of {plate} are not open: locate their folder."
    assert dock.data_controls.relink_panel.text.text() == told
    (other := answer(plate.with_name("plate 2"))).mkdir()
    tifffile.imwrite(other / "field9.tif", picture(9))
    tifffile.imwrite(other / "field9_labels.tif", cells())
    click(dock.data_controls.relink_panel.button)
    text = dock.data_controls.relink_panel.text
    qtbot.waitUntil(lambda: "The images of plate 2 are not those" in text.text())
    assert desk.linked is None
    answer(moved)
    assert dock.data_controls.relink_panel.button.text() == "Locate folder…"
    click(dock.data_controls.relink_panel.button)
    qtbot.waitUntil(lambda: desk.linked is not None)
    assert not shown(dock.data_controls.relink_panel)
    np.testing.assert_array_equal(session.snapshot.embedding, map_before.embedding)
    session.selection.select_points(np.array([30]))
    assert lit(desk.linked.labels) == [6]
    desk.save()
    labels = cells()
    tifffile.imwrite(moved / "field2_labels.tif", np.where(labels == 3, 0, labels))
    for name in ("field1b", "field1b_labels"):  # came later, and is of another map
        tifffile.imwrite(moved / f"{name}.tif", labels)
    desk.open()
    again = dock.data_controls.relink_panel
    qtbot.waitUntil(lambda: "2.0% of the objects have changed" in again.text.text())
    load(lambda: click(again.button))
    assert len(session.dataset.obs) == 49
