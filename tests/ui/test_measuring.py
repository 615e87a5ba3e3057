"""From layers to objects as a person goes: menus, the layer list and the mouse."""

import imageio.v3 as imageio
import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

import worlds
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.sources import SampleSource

SHAPE = (60, 72)


@pytest.fixture
def viewer(make_napari_viewer):
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1300, 900)
    return viewer


@pytest.fixture
def dock(viewer, from_menu):
    title = "Map (Embedding Game)"
    from_menu(viewer.window.plugins_menu, "Embedding Game", title)
    dock = viewer.window.dock_widgets[title]
    yield dock
    dock.close()


@pytest.fixture
def loading(load):
    """Click on a button and wait for what it loads."""
    left = Qt.MouseButton.LeftButton
    return lambda button: load(lambda: QTest.mouseClick(button, left))


def field(seed):
    return worlds.field(seed, 20, SHAPE)


def means(image, labels):
    return [image[labels == label].mean() for label in np.unique(labels)[1:]]


def measured(dataset, name="intensity_mean"):
    return dataset.profile[:, dataset.profile_names.index(name)]


def tick(panel, text):
    """Click on the image of this name in the list."""
    listed = (
        panel.images_box.itemAt(i).widget() for i in range(panel.images_box.count())
    )
    (one,) = (one for one in listed if one.text().startswith(text))
    QTest.mouseClick(one, Qt.MouseButton.LeftButton, pos=QPoint(30, one.height() // 2))


def ticked(panel):
    return [
        image.name
        for image in panel.collect_ticked_images(panel.labels_choice.value).images
    ]


def test_a_mask_that_is_dropped_is_measured_as_labels(
    qtbot, viewer, dock, load, loading, person_at_the_window, monkeypatch, tmp_path
):
    image, labels = field(0)
    panel, files = dock.data_controls.measure_panel, {}
    for name, pixels in {
        "field.tif": image,
        "nuclei.tif": (image % 251).astype(np.uint8),  # no mask, a picture
        "field_mask.tif": labels,
        "seg.png": np.uint8(255) * (labels > 0),
    }.items():
        files[name] = tmp_path / name
        imageio.imwrite(files[name], pixels)

    def drop(name):
        person_at_the_window.drop_files(viewer, files[name])
        qtbot.waitUntil(lambda: files[name].stem in viewer.layers)

    drop("field.tif")
    qtbot.waitUntil(panel.text.isVisible)
    assert panel.text.text().startswith("To measure the objects of an image, open")
    assert not panel.can_measure
    drop("nuclei.tif")
    drop("field_mask.tif")
    qtbot.waitUntil(lambda: panel.can_measure)
    assert ticked(panel) == ["field"]
    assert panel.measure_button.isHidden()  # Run measures first
    with qtbot.waitSignal(dock.controller.reading.loaded):
        dock.controller.reading.load(SampleSource("digits"))
    assert panel.measure_button.isVisible()
    dataset = loading(panel.measure_button)
    # The image is the person's, and stays.
    np.testing.assert_array_equal(viewer.layers["field_mask"].data, labels)
    assert panel.labels_choice.value is viewer.layers["field_mask (labels)"]
    np.testing.assert_array_equal(panel.labels_choice.value.data, labels)
    listed = [panel.images_box.itemAt(i).widget().text() for i in range(2)]
    assert panel.images_box.count() == 2, listed  # not in the numbers of the objects
    assert dataset.obs["label"].tolist() == np.unique(labels)[1:].tolist()
    np.testing.assert_allclose(measured(dataset), means(image, labels), rtol=1e-5)
    drop("seg.png")
    qtbot.waitUntil(lambda: panel.labels_choice.value is viewer.layers["seg"])
    loading(panel.measure_button)
    numbers = viewer.layers["seg (labels)"].data
    assert len(np.unique(numbers[labels > 0])) == 20
    assert not numbers[labels == 0].any()

    def nuclei():
        yield Stage("Finding the nuclei")
        return ReadResult(worlds.measure(image, labels), image=image, labels=labels)

    monkeypatch.setattr(
        "napari_embedding_game.session.sources.measure_nuclei_in_stages", nuclei
    )
    before = list(viewer.layers)
    for _ in range(2):  # what is open already is not added again
        load(SampleSource("nuclei"))
        picture, objects = (one for one in viewer.layers if one not in before)
    current = dock.workspace.linked_layers.current
    assert (current.labels, *current.images) == (objects, picture)


def test_what_is_measured_and_in_which_image(qtbot, viewer, dock, loading):
    measures_are_chosen_and_objects_at_the_border_left_out_by_clicks(
        viewer, dock, loading
    )
    viewer.layers.clear()
    images_that_may_be_other_fields_are_left_to_the_person(viewer, dock, loading)
    viewer.layers.clear()
    an_image_is_measured_where_its_pixels_are_those_of_the_labels(
        qtbot, viewer, dock, loading
    )
    viewer.layers.clear()
    masks_are_measured_in_their_own_field_of_view(qtbot, viewer, dock, loading)


def measures_are_chosen_and_objects_at_the_border_left_out_by_clicks(
    viewer, dock, loading
):
    image, labels = field(0)
    labels[0:4, 0:6], labels[55:60, 66:72] = 99, 98
    viewer.add_image(image, name="DNA")
    viewer.add_labels(labels, name="cells")
    panel = dock.data_controls.measure_panel
    for group in ("shape", "texture", "neighbours"):
        QTest.mouseClick(panel.groups[group], Qt.MouseButton.LeftButton)
    QTest.mouseClick(panel.without_border, Qt.MouseButton.LeftButton)
    dataset = loading(panel.measure_button)
    names = {f"intensity_{name}" for name in ("mean", "std", "min", "max")}
    assert set(dataset.profile_names) == {*names, "nearest", "nearest_5"}
    on_border = {*labels[[0, -1]].flat, *labels[:, [0, -1]].flat} - {0}
    assert set(dataset.obs["label"]) == set(np.unique(labels)) - {0} - on_border
    told = f"Left out at the border of the image: {len(on_border)} objects."
    assert told in dock.data_controls.notes.text()
    for group in ("shape", "texture", "neighbours"):
        QTest.mouseClick(panel.groups[group], Qt.MouseButton.LeftButton)
    QTest.mouseClick(panel.without_border, Qt.MouseButton.LeftButton)
    clusters = dock.controller.session.clusters
    clusters.make_group(np.arange(5), "bright")
    loading(panel.measure_button)  # other measures of more objects
    assert [c.size for c in clusters.clusters if c.name == "bright"] == [5]


def images_that_may_be_other_fields_are_left_to_the_person(viewer, dock, loading):
    image, labels = field(0)
    viewer.add_image(image, name="plate A")
    viewer.add_image(field(1)[0], name="plate B")
    viewer.add_image(image[:10], name="small")
    viewer.add_labels(labels, name="cells")
    panel = dock.data_controls.measure_panel
    assert ticked(panel) == []
    assert panel.measure_button.text() == "Measure shape only"
    assert "2 images have the pixels of 'cells'" in panel.text.text()
    assert "small (has 10 × 72 pixels" in panel.images_box.itemAt(2).widget().text()
    tick(panel, "plate A")
    assert ticked(panel) == ["plate A"]
    assert panel.text.isHidden()
    dataset = loading(panel.measure_button)
    np.testing.assert_allclose(measured(dataset), means(image, labels), rtol=1e-5)
    # What was ticked stays, whatever is selected afterwards.
    viewer.layers.selection.active = viewer.layers["plate B"]
    assert ticked(panel) == ["plate A"]


def an_image_is_measured_where_its_pixels_are_those_of_the_labels(
    qtbot, viewer, dock, loading
):
    image, labels = field(0)
    laid = {"scale": [0.325] * 2, "translate": [1234.56, 7.1]}
    viewer.add_image(image, name="DNA", **laid)
    viewer.add_labels(labels, name="cells", **laid)
    panel = dock.data_controls.measure_panel
    assert ticked(panel) == ["DNA"]
    dataset = loading(panel.measure_button)
    area = measured(dataset, "area")
    pixels = np.bincount(labels.ravel())[3::3]
    np.testing.assert_allclose(area, 0.325**2 * pixels, rtol=1e-6)
    assert "perimeter" in dataset.profile_names  # also far from the origin
    for name, value, reason in (
        ("translate", (0, 1000), "lies elsewhere than 'cells'"),
        ("scale", (1, 1), "has a pixel size of 1, and 'cells' of 0.325"),
    ):
        setattr(viewer.layers["DNA"], name, value)
        panel.update_to_layers()
        assert reason in panel.images_box.itemAt(0).widget().text()
        assert ticked(panel) == []
    one = viewer.layers["DNA"]
    one.units, viewer.layers["cells"].units = ("nm", "nm"), ("um", "um")
    one.scale, one.translate = (325, 325), 1_000 * np.array(laid["translate"])
    panel.update_to_layers()
    assert ticked(panel) == ["DNA"]
    one.shear = viewer.layers["cells"].shear = [0.5]
    loading(panel.measure_button)
    assert "leave out the layer's shear" in dock.data_controls.notes.text()
    assert dock.workspace.linked_layers.current.images == (one,)
    viewer.layers.remove(one)
    qtbot.waitUntil(lambda: dock.workspace.linked_layers.current.images == ())
    assert panel.text.text() == "No image is ticked: only the shape is measured."


def masks_are_measured_in_their_own_field_of_view(qtbot, viewer, dock, loading):
    fields = [field(seed) for seed in range(3)]
    for number, (image, labels) in enumerate(fields, 1):
        viewer.add_image(image, name=f"field {number}")
        viewer.add_labels(labels, name=f"field {number} masks")
    panel = dock.data_controls.measure_panel
    assert panel.labels_choice.value.name == "field 3 masks"
    viewer.layers.selection.active = viewer.layers["field 2 masks"]
    assert panel.labels_choice.value.name == "field 2 masks"
    assert ticked(panel) == ["field 2"]
    loading(panel.measure_button)
    viewer.layers.selection.active = None  # what was chosen stays
    assert panel.labels_choice.value.name == "field 2 masks"
    run = dock.run_controls.run_button
    assert not run.isHidden()
    # What is measured takes the place of the data on show: nothing plays these.
    with qtbot.waitSignal(dock.controller.reading.loaded, timeout=20_000):
        QTest.mouseClick(panel.measure_button, Qt.MouseButton.LeftButton)
        assert run.isHidden()
        assert dock.run_controls.stage.text().startswith("The data are being read")
    assert not run.isHidden()
    assert dock.run_controls.stage.text().startswith("Ready")
    dataset = dock.controller.session.dataset
    np.testing.assert_allclose(measured(dataset), means(*fields[1]), rtol=1e-5)
    assert "Measured in 'field 2'." in dock.data_controls.notes.text()
    (image,) = dock.controller.workspace.linked_layers.current.images
    assert image.name == "field 2"
    viewer.layers.selection = {viewer.layers["field 1"], viewer.layers["field 3 masks"]}
    assert (panel.labels_choice.value.name, ticked(panel)) == (
        "field 3 masks",
        ["field 1"],
    )


def test_edited_labels_are_told_and_measured_again(
    viewer, dock, loading, load, look_at, qtbot
):
    image, labels = field(0)
    viewer.add_image(image, name="DNA")
    layer = viewer.add_labels(labels, name="cells")
    again = dock.data_controls.relink_panel
    QTest.mouseClick(
        dock.data_controls.measure_panel.measure_button, Qt.MouseButton.LeftButton
    )
    layer.fill((0, 0), 999)  # while they are measured
    qtbot.waitUntil(lambda: dock.controller.workspace.linked_layers.current is not None)
    assert not again.isHidden()
    layer.undo()
    dataset = loading(dock.data_controls.measure_panel.measure_button)
    assert again.isHidden()
    before = measured(dataset, "area").copy()
    layer.contour = 1  # a look is no edit
    assert again.isHidden()
    layer.mode, layer.selected_label, layer.brush_size = "paint", 3, 15
    inside = np.argwhere(labels == 3).mean(axis=0)
    viewer.reset_view()
    seen = look_at(viewer, dock)
    seen.click(*seen.pixels(inside, layer))
    assert not again.isHidden()
    told = "The labels 'cells' were edited since they were read"
    assert again.text.text().startswith(told)
    QTest.mouseClick(again.button, Qt.MouseButton.LeftButton)
    QTest.mouseClick(dock.data_controls.cancel_button, Qt.MouseButton.LeftButton)
    assert not again.isHidden()  # nothing was read
    area = measured(loading(again.button), "area")
    assert area[0] > before[0]
    np.testing.assert_array_equal(area[1:], before[1:])
    assert again.isHidden()
    assert dock.controller.workspace.linked_layers.current.images == (
        viewer.layers["DNA"],
    )
    layer.undo()
    assert not again.isHidden()
    more = labels.copy()
    more.flat[labels.argmin()] = 99  # one object more
    layer.data = more
    load(lambda: dock.controller.reading.reload_with_options())
    assert again.text.text().startswith(told)  # what it was read of is as it was
    layer.data = np.where(labels == 6, 0, labels)
    assert not again.isHidden()
    assert len(loading(again.button).obs) == 19
    viewer.layers["DNA"].translate = (5, 5)
    layer.data = np.where(labels == 9, 0, labels)
    notes = loading(again.button).notes
    assert notes[0] == "Only the shape was measured: no image was ticked."
