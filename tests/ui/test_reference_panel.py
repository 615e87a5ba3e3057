"""Labels from a reference in the dock: a file chosen, a label predicted, and told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write_h5ad
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.recipe import apply_recipe
from napari_embedding_game.data.stages import Stage, finish
from napari_embedding_game.ui.game_dock import GameDock

pytest.importorskip("scanpy", reason="the recipe is scanpy's")
ASKED = "napari_embedding_game.ui.controls.reference_panel.QFileDialog.getOpenFileName"
PREDICT = "napari_embedding_game.ui.controls.reference_panel.predict_labels"
LEFT = Qt.MouseButton.LeftButton
RECIPE = Recipe(min_genes=5, min_cells=2, n_top_genes=60, n_comps=6)
RATES = np.random.default_rng(5).gamma(0.6, 2, (2, 120))


@pytest.fixture
def panel(qtbot, session, dock, dataset, play):
    """The dock with 40 cells of two kinds on a map."""
    from anndata import AnnData

    from napari_embedding_game.data.formats.anndata import from_anndata

    rng = np.random.default_rng(0)
    kind = np.arange(40) % 2
    obs = pd.DataFrame({"cell_type": pd.Categorical(np.array(["T", "B"])[kind])})
    obs.index = [f"c{i}" for i in range(40)]
    counts = rng.poisson(RATES[kind]).astype(np.float32)
    names = pd.DataFrame(index=[f"g{i}" for i in range(120)])
    adata = AnnData(counts, obs, names)
    session.load(finish(apply_recipe(from_anndata(adata, "cells"), RECIPE)))
    play()
    dock.show()
    dock.look.reference.fold.expand(animate=False)
    qtbot.wait(50)  # until all is in its place
    return dock.look.reference


@pytest.fixture
def saved(session, panel, tmp_path):
    """The map as a file, with places that mean something."""
    path = tmp_path / "reference.h5ad"
    result = replace(session.result(), embedding=session.dataset.X[:, :2])
    write_h5ad(session.dataset, result, path)
    return path


@pytest.fixture
def chosen(qtbot, panel, saved, monkeypatch):
    """The panel with the reference that was chosen."""
    assert not panel.predict.isVisible()
    monkeypatch.setattr(ASKED, lambda *_: (str(saved), ""))
    QTest.mouseClick(panel.file, LEFT)
    assert not panel.file.isEnabled()
    qtbot.waitUntil(panel.predict.isEnabled)
    qtbot.wait(50)
    return panel


def test_a_reference_colours_the_map_by_its_labels(
    qtbot, chosen, session, dock, inspector
):
    assert chosen.label.currentText() == "cell_type"
    assert chosen.state.text() == "reference.h5ad: 40 cells. Choose what is predicted."
    QTest.mouseClick(chosen.predict, LEFT)
    qtbot.waitUntil(lambda: session.look.color_by == "cell_type_predicted")
    assert dock.look.color_by.value == "cell_type_predicted"
    obs = session.dataset.obs
    right = obs["cell_type_predicted"].astype(str) == obs["cell_type"].astype(str)
    assert right.mean() > 0.9
    assert chosen.state.text().startswith("cell_type of reference.h5ad for 40 cells: ")
    assert "cell_type_predicted" in inspector.details.column.choices
    assert "cell_type_predicted_confidence" in dock.look.color_by.choices
    assert not chosen.cancel.isVisible()


def test_cells_are_placed_among_those_of_the_reference(
    qtbot, chosen, session, dock, viewer, workspace, engine
):
    own = session.snapshot.embedding
    QTest.mouseClick(chosen.place, LEFT)
    qtbot.waitUntil(lambda: session.behind is not None)
    assert session.look.color_by == "cell_type_predicted_or_unlike"
    assert "takes you back" in chosen.state.text()
    names = [layer.name for layer in viewer.layers]
    assert names == ["cells of the reference", "embedding", "landmarks"]
    layers = dock.controller.layers
    # The same cells: each lies about where it lies in the reference, in a full colour.
    apart = np.abs(layers.behind.layer.data - layers.points.data)
    assert np.median(apart) < 0.05 * layers.side
    kinds = session.behind.codes
    pale = [layers.behind.layer.face_color[kinds == k] for k in (0, 1)]
    assert not np.allclose(pale[0][0], pale[1][0])
    session.look.color_by = "Cluster"
    grey = layers.behind.layer.face_color[:, :3]
    assert (grey == grey[0, 0]).all()
    QTest.mouseClick(dock.data.way.buttons[0], LEFT)
    assert session.snapshot.embedding is own
    assert "cells of the reference" not in viewer.layers


def test_a_dock_opened_again_and_a_layer_taken_away(
    qtbot, chosen, session, dock, viewer, workspace
):
    QTest.mouseClick(chosen.place, LEFT)
    qtbot.waitUntil(lambda: session.behind is not None)
    dock.close()
    assert "cells of the reference" not in viewer.layers
    again = GameDock(viewer, workspace, warm_up=False)
    qtbot.addWidget(again)
    assert len(viewer.layers["cells of the reference"].data) == 40
    viewer.layers.remove("cells of the reference")
    session.selection.select_points(np.arange(3))
    assert "cells of the reference" not in viewer.layers  # whoever removed it was right
    again.close()


def test_another_column_and_the_batch_are_asked_for(
    qtbot, chosen, session, monkeypatch
):
    asked = []

    def predict(dataset, reference, path, label, *, correct_batch):
        asked.append((path.name, label, correct_batch))
        yield Stage("Placing the new cells", 0.5)
        raise DataError("No gene fits: choose another file.")

    monkeypatch.setattr(PREDICT, predict)
    chosen.label.setCurrentText("embedding_game_cluster")
    QTest.mouseClick(chosen.correct, LEFT, pos=chosen.correct.rect().center())
    chosen.correct.setChecked(True)
    QTest.mouseClick(chosen.predict, LEFT)
    qtbot.waitUntil(lambda: "No gene fits" in chosen.state.text())
    assert asked == [("reference.h5ad", "embedding_game_cluster", True)]
    assert chosen.predict.isEnabled()
    assert session.look.color_by == "Cluster"


def test_it_can_be_cancelled_and_other_data_end_it(
    qtbot, chosen, session, dataset, monkeypatch
):
    def predict(*_, **__):
        while True:
            yield Stage("Placing the new cells", 0.5)

    monkeypatch.setattr(PREDICT, predict)
    QTest.mouseClick(chosen.predict, LEFT)
    qtbot.waitUntil(lambda: chosen.state.text() == "Placing the new cells (50%) …")
    assert not chosen.predict.isEnabled()
    QTest.mouseClick(chosen.cancel, LEFT)
    assert chosen.predict.isEnabled()
    assert "Choose what is predicted" in chosen.state.text()
    QTest.mouseClick(chosen.predict, LEFT)
    session.load(dataset)
    assert not chosen.isVisible()
    assert session.dataset.predicted == {}


def test_what_is_no_reference_is_told(qtbot, panel, tmp_path, monkeypatch):
    path = Path(tmp_path / "no.h5ad")
    path.write_bytes(b"none")
    monkeypatch.setattr(ASKED, lambda *_: (str(path), ""))
    QTest.mouseClick(panel.file, LEFT)
    qtbot.waitUntil(lambda: "no.h5ad" in panel.state.text() and panel.file.isEnabled())
    assert not panel.predict.isVisible()
    monkeypatch.setattr(ASKED, lambda *_: ("", ""))
    QTest.mouseClick(panel.file, LEFT)
    assert not panel._jobs.is_busy
