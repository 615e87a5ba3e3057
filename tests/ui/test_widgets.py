"""Labels from a reference: on the map of its viewer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write_result
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.ui.canvas.layers import REFERENCE
from napari_embedding_game.ui.game_dock import MAP, GameDock
from napari_embedding_game.ui.widgets import reference
from napari_embedding_game.ui.widgets.reference import ReferenceWidget
from worlds import click


@pytest.fixture
def widget(qtbot, viewer, session, dock, play):
    """The widget, beside the dock with 40 cells of two kinds on a map."""
    session.load(worlds.prepared(worlds.cells(40, "AB", column="cell_type")))
    play()
    widget = ReferenceWidget(viewer)
    qtbot.addWidget(widget)
    widget.resize(400, 700)
    widget.show()
    return widget


@pytest.fixture
def chosen(qtbot, widget, session, answer, tmp_path):
    """The widget with the map, saved as a reference, that was chosen."""
    path = answer(tmp_path / "reference.h5ad")
    result = session.to_result()
    snapshot = replace(result.snapshot, embedding=session.dataset.X[:, :2])
    result = replace(result, snapshot=snapshot)
    write_result(session.dataset, result, path)
    assert not widget.predict_button.isVisible()
    click(widget.open_button)
    assert widget.open_button.isHidden()
    qtbot.waitUntil(widget.predict_button.isVisible)
    return widget


def test_a_reference_colours_the_map_by_its_labels(
    qtbot, chosen, session, dock, inspector
):
    assert chosen.label_choice.currentText() == "cell_type"
    assert chosen.state.text() == "reference.h5ad: 40 cells. Choose what is predicted."
    click(chosen.predict_button)
    qtbot.waitUntil(lambda: session.look.color_by == "cell_type_predicted")
    obs = session.dataset.obs
    right = obs["cell_type_predicted"].astype(str) == obs["cell_type"].astype(str)
    assert right.mean() > 0.9
    assert chosen.state.text().startswith("cell_type of reference.h5ad for 40 cells: ")
    inspector.show(MAP)
    assert dock.display_controls.color_by.value == "cell_type_predicted"
    assert "cell_type_predicted_confidence" in dock.display_controls.color_by.choices
    session.selection.select_cluster(0)
    inspector.show()
    assert "cell_type_predicted" in inspector.details.column.choices
    for without_genes in worlds.rows(np.eye(40)), None:
        session.load(without_genes)
        assert chosen.state.text() == reference.NO_GENES


def test_cells_are_placed_among_those_of_the_reference(
    qtbot, chosen, session, dock, viewer, workspace
):
    own = session.snapshot.embedding
    click(chosen.place_button)
    qtbot.waitUntil(lambda: session.placed_on is not None)
    assert session.look.color_by == "cell_type_predicted_or_unlike"
    assert "to go back" in chosen.state.text()
    names = [layer.name for layer in viewer.layers]
    assert names == ["cells of the reference", "embedding", "landmarks"]
    layers = dock.controller.scene.map_layers
    # The same cells: each lies about where it lies in the reference, in a full colour.
    apart = np.abs(layers.find_points_layer(REFERENCE).data - layers.points.data)
    assert np.median(apart) < 0.05 * np.ptp(layers.points.data)
    grey = layers.find_points_layer(REFERENCE).face_color[:, :3]
    assert (grey == grey[0, 0]).all()
    assert dock.close()
    again = GameDock(viewer, workspace, warm_up=False)
    qtbot.addWidget(again)
    assert len(viewer.layers["cells of the reference"].data) == 40
    again.data_controls.breadcrumb.buttons[0].click()
    assert session.snapshot.embedding is own
    assert "cells of the reference" not in viewer.layers
    again.close()


def test_cells_come_onto_a_published_map(
    qtbot, widget, session, play, answer, tmp_path
):
    atlas = worlds.cells(40, "AB", column="cell_type")
    atlas.obsm["X_pca"] = atlas.X.toarray()[:, :8]
    session.load(from_anndata(atlas, "cells"))
    play()
    places = atlas.obsm["X_umap"] = 3 * atlas.obsm["X_pca"][:, :2]
    atlas.write_h5ad(answer(tmp_path / "atlas.h5ad"))
    click(widget.open_button)
    qtbot.waitUntil(lambda: "atlas.h5ad: 40 cells" in widget.state.text())
    click(widget.place_button)
    qtbot.waitUntil(lambda: session.placed_on is not None)
    cells = session.placed_on.cells
    for axis, given in enumerate(places.T):
        assert np.corrcoef(cells[:, axis], given)[0, 1] > 0.99999
        published = session.dataset.obs[f"X_umap of atlas.h5ad {axis + 1}"]
        assert np.corrcoef(published, given)[0, 1] > 0.9  # they are the same cells


def test_what_fails_is_told_and_it_can_be_cancelled(
    qtbot, chosen, session, dataset, monkeypatch
):
    asked = []

    def predict(dataset, reference, label, *, correct_batch):
        asked.append((Path(reference.path).name, label, correct_batch))
        yield Stage("Placing the new cells", 0.5)
        if len(asked) == 1:
            raise DataError("No gene fits: choose another file.")
        while True:
            yield Stage("Placing the new cells", 0.5)

    monkeypatch.setattr(reference, "predict_labels", predict)
    chosen.label_choice.setCurrentText("embedding_game_cluster")
    chosen.correct_box.setChecked(True)
    click(chosen.predict_button)
    qtbot.waitUntil(lambda: "No gene fits" in chosen.state.text())
    assert asked == [("reference.h5ad", "embedding_game_cluster", True)]
    click(chosen.predict_button)
    qtbot.waitUntil(lambda: chosen.state.text() == "Placing the new cells (50%) …")
    assert chosen.predict_button.isHidden()
    click(chosen.cancel_button)
    assert "Choose what is predicted" in chosen.state.text()
    click(chosen.predict_button)
    session.load(dataset)  # no genes
    assert chosen.open_button.isHidden()
    assert session.dataset.added == {}
