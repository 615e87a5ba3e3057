"""A plate of 12 small fields, from its folder to the wells, as a person goes."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

import worlds
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui.images.linked_layers import FIELDS_KEY
from napari_embedding_game.ui.tasks.reading import request_labels_join
from napari_embedding_game.ui.widgets.plate import NO_PLATE, PlateWidget

LEFT = Qt.MouseButton.LeftButton
WELLS = [f"{row}{column:02d}" for row in "ABC" for column in range(1, 5)]


@pytest.fixture
def plate(tmp_path):
    """The folder of the fields, of 4 to 9 objects each."""
    folder = tmp_path / "plate"
    folder.mkdir()
    for place, well in enumerate(WELLS):
        worlds.write_field(folder, f"{well}_s1", place, 4 + place % 6, (60, 60))
    return folder


def test_twelve_fields_from_the_folder_to_their_wells_and_back(
    qtbot, person, person_at_the_window, plate
):
    session, viewer = person.session, person.viewer
    person.open_images(plate)
    dataset = session.dataset
    assert dataset.notes[0] == "Measured 78 objects of 12 images in 1 channel."
    counts = dataset.obs["well"].value_counts()
    assert counts.to_dict() == {w: 4 + i % 6 for i, w in enumerate(WELLS)}
    assert (dataset.obs["image"] == dataset.obs["well"].astype(str) + "_s1").all()
    person.run()
    # The plate: each well has as many points as its field has objects.
    details = person.inspector
    pane = person.open_widget(person_at_the_window.PLATE)
    person.wait(lambda: pane.canvas.axes is not None, "the plate")
    person.wait(lambda: not pane.visibleRegion().isEmpty(), "the plate before the map")
    assert pane.canvas.plot.shape == (3, 4)
    for place, well in enumerate(WELLS):
        text = pane.texts[divmod(place, 4)]
        assert well in text
        assert f"{counts[well]} points" in text
    person_at_the_window.repeat(
        lambda: QTest.mouseClick(
            pane.canvas.canvas, LEFT, pos=pane.canvas.position_to_pixel(1, 1)
        ),
        lambda: len(session.selection.rows) == 4 + 5 % 6,
        "well B02",
    )
    rows = session.selection.rows
    assert dataset.obs["well"].iloc[rows].unique().tolist() == ["B02"]
    worlds.drag(qtbot, pane, (-0.4, 0.6), (1.4, 2.4))
    wells = set(dataset.obs["well"].iloc[session.selection.rows])
    assert wells == {"B01", "B02", "C01", "C02"}  # in the rectangle
    session.selection.select_points(rows)
    # A picture of one of them opens its image, and lights it there.
    person.open_tab("Pictures")
    grid = details.thumbnails
    person.wait(lambda: grid.model().rowCount() == len(rows), "the pictures")
    place = grid.visualRect(grid.model().index(2, 0)).center()
    person_at_the_window.repeat(
        lambda: QTest.mouseClick(grid.viewport(), LEFT, pos=place),
        lambda: len(session.selection.rows) == 1,
        "the picture",
    )
    (row,) = session.selection.rows
    linked = person.dock.controller.workspace.linked_layers.current
    names = linked.labels.metadata[FIELDS_KEY]
    assert names[viewer.dims.current_step[0]] == dataset.obs["image"].iloc[row]
    assert viewer.dims.axis_labels[0] == dataset.obs["image"].iloc[row]
    file = FileSource(plate / "cells.csv")
    assert request_labels_join(file, viewer) is file  # its rows are of no twelve images
    # A label that is painted on is told by the name of its image.
    again = person.dock.data_controls.relink_panel
    assert again.isHidden()
    person.press_escape()
    viewer.layers.selection.active = linked.labels
    linked.labels.mode = "paint"
    linked.labels.selected_label, linked.labels.brush_size = 90, 5
    person.click_object(row, lambda: not again.isHidden())
    assert again.text.text().startswith("The labels 'plate (labels)' were edited")
    # The slider goes on to name the images when other data are on show.
    session.load(replace(dataset, source_objects=None))
    person.dock.controller.workspace.linked_layers.set_layers(None)
    viewer.dims.set_point(0, 3)
    assert viewer.dims.axis_labels[0] == names[3]
    viewer.add_image(np.zeros((3, 1, 9, 9)), name="others")
    for layer in [x for x in viewer.layers if FIELDS_KEY in x.metadata]:
        viewer.layers.remove(layer)
    assert viewer.dims.axis_labels[0] == "-4"


def test_the_plate_on_show_stays_when_a_column_comes(
    qtbot, session, dataset, viewer, workspace, answer, tmp_path
):
    wells = {"Well": ["A01", "A02", "B01", "B02"] * 10, "Plate": ["p1", "p2"] * 20}
    obs = dataset.obs.assign(**wells)
    session.load(replace(dataset, obs=obs, source_obs=obs))
    widget = PlateWidget(viewer)
    qtbot.addWidget(widget)
    widget.show()
    widget.plate_choice.setCurrentText("p2")
    session.add_columns(Dataset.with_map_column, "score", np.arange(40.0))
    assert widget.plate_choice.currentText() == "p2"
    worlds.drag(qtbot, widget, (0, 0), (1, 1))
    assert widget.state.text() == "Run the game first: a click then selects."
    path = answer(tmp_path / "plate.svg")
    widget.save_button.click()
    assert widget.state.text() == "Saved as plate.svg."
    assert ">p2<" in path.read_text()
    session.selection.select_points(np.arange(4))
    session.load(worlds.rows(np.eye(9)))  # of no wells, while some are selected
    assert widget.state.text() == NO_PLATE
