"""Stability, labels from a reference, figure page: each on the map of its viewer."""

import re
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QFileDialog

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import VolcanoPlot
from napari_embedding_game.data.export.writers import write
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.recipe import apply_recipe
from napari_embedding_game.data.stages import Stage, finish
from napari_embedding_game.ui.canvas.layers import BEHIND
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.widgets import reference, stability
from napari_embedding_game.ui.widgets.figure_page import NOTHING, FigurePageWidget
from napari_embedding_game.ui.widgets.reference import ReferenceWidget
from napari_embedding_game.ui.widgets.stability import StabilityWidget

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def opened(qtbot, viewer):
    """Open a widget on the viewer of the dock."""
    made = []

    def open_one(kind):
        widget = kind(viewer)
        qtbot.addWidget(widget)
        widget.resize(400, 700)
        widget.show()
        made.append(widget)
        return widget

    yield open_one
    for widget in made:
        widget.close()


def click(button):
    QTest.mouseClick(button, LEFT)


def test_stability_is_measured_beside_the_map_and_can_be_stopped(
    dock, play, session, qtbot, monkeypatch, opened
):
    widget = opened(StabilityWidget)
    assert not widget.button.isEnabled()
    play()
    before, waiting = session.snapshot, threading.Event()
    widget.seeds.setValue(2)
    real = stability.stability_job

    def slow_job(*args):
        stages = real(*args, engine=session._engine)

        def begun():
            waiting.wait(10)
            return (yield from stages())

        return begun

    monkeypatch.setattr(stability, "stability_job", slow_job)
    click(widget.button)
    assert widget.button.text() == "Stop"
    assert widget.bar.isVisible()
    click(widget.button)
    assert "Stopped" in widget.state.text()
    waiting.set()
    click(widget.button)
    qtbot.waitUntil(lambda: "each of 2 maps from other seeds" in widget.state.text())
    assert session.look.color_by == "Stability"
    assert len(session.dataset.obs["Stability"]) == 40
    assert session.snapshot is before


# Labels from a reference

RECIPE = Recipe(min_genes=5, min_cells=2, n_top_genes=60, n_comps=6)
RATES = np.random.default_rng(5).gamma(0.6, 2, (2, 120))


@pytest.fixture
def cells(session, dock, play):
    """The dock with 40 cells of two kinds on a map."""
    pytest.importorskip("scanpy", reason="the recipe is scanpy's")
    from anndata import AnnData

    from napari_embedding_game.data.formats.anndata import from_anndata

    kind = np.arange(40) % 2
    obs = pd.DataFrame({"cell_type": pd.Categorical(np.array(["T", "B"])[kind])})
    obs.index = [f"c{i}" for i in range(40)]
    counts = np.random.default_rng(0).poisson(RATES[kind]).astype(np.float32)
    names = pd.DataFrame(index=[f"g{i}" for i in range(120)])
    adata = AnnData(counts, obs, names)
    session.load(finish(apply_recipe(from_anndata(adata, "cells"), RECIPE)))
    play()


@pytest.fixture
def chosen(qtbot, cells, session, opened, monkeypatch, tmp_path):
    """The widget with the map, saved as a reference, that was chosen."""
    path = tmp_path / "reference.h5ad"
    result = replace(session.result(), embedding=session.dataset.X[:, :2])
    write(session.dataset, result, path)
    widget = opened(ReferenceWidget)
    assert not widget.predict.isVisible()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    click(widget.file)
    assert not widget.file.isEnabled()
    qtbot.waitUntil(widget.predict.isEnabled)
    return widget


def test_a_reference_colours_the_map_by_its_labels(
    qtbot, chosen, session, dock, inspector
):
    assert chosen.label.currentText() == "cell_type"
    assert chosen.state.text() == "reference.h5ad: 40 cells. Choose what is predicted."
    click(chosen.predict)
    qtbot.waitUntil(lambda: session.look.color_by == "cell_type_predicted")
    assert dock.look.color_by.value == "cell_type_predicted"
    obs = session.dataset.obs
    right = obs["cell_type_predicted"].astype(str) == obs["cell_type"].astype(str)
    assert right.mean() > 0.9
    assert chosen.state.text().startswith("cell_type of reference.h5ad for 40 cells: ")
    assert "cell_type_predicted" in inspector.details.column.choices
    assert "cell_type_predicted_confidence" in dock.look.color_by.choices


def test_cells_are_placed_among_those_of_the_reference(
    qtbot, chosen, session, dock, viewer, workspace
):
    own = session.snapshot.embedding
    click(chosen.place)
    qtbot.waitUntil(lambda: session.behind is not None)
    assert session.look.color_by == "cell_type_predicted_or_unlike"
    assert "takes you back" in chosen.state.text()
    names = [layer.name for layer in viewer.layers]
    assert names == ["cells of the reference", "embedding", "landmarks"]
    layers = dock.controller.layers
    # The same cells: each lies about where it lies in the reference, in a full colour.
    apart = np.abs(layers.other(BEHIND).data - layers.points.data)
    assert np.median(apart) < 0.05 * np.ptp(layers.points.data)
    kinds = session.behind.codes
    pale = [layers.other(BEHIND).face_color[kinds == k] for k in (0, 1)]
    assert not np.allclose(pale[0][0], pale[1][0])
    session.look.color_by = "Cluster"
    grey = layers.other(BEHIND).face_color[:, :3]
    assert (grey == grey[0, 0]).all()
    dock.close()
    again = GameDock(viewer, workspace, warm_up=False)
    qtbot.addWidget(again)
    assert len(viewer.layers["cells of the reference"].data) == 40
    again.data.way.buttons[0].click()
    assert session.snapshot.embedding is own
    assert "cells of the reference" not in viewer.layers
    again.close()


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
    chosen.label.setCurrentText("embedding_game_cluster")
    chosen.correct.setChecked(True)
    click(chosen.predict)
    qtbot.waitUntil(lambda: "No gene fits" in chosen.state.text())
    assert asked == [("reference.h5ad", "embedding_game_cluster", True)]
    click(chosen.predict)
    qtbot.waitUntil(lambda: chosen.state.text() == "Placing the new cells (50%) …")
    assert not chosen.predict.isEnabled()
    click(chosen.cancel)
    assert "Choose what is predicted" in chosen.state.text()
    click(chosen.predict)
    session.load(dataset)  # no genes
    assert not chosen.file.isEnabled()
    assert session.dataset.predicted == {}


def test_what_is_no_reference_is_told(qtbot, cells, opened, tmp_path, monkeypatch):
    (tmp_path / "no.h5ad").write_bytes(b"none")
    name = str(tmp_path / "no.h5ad")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (name, ""))
    widget = opened(ReferenceWidget)
    click(widget.file)
    qtbot.waitUntil(
        lambda: "no.h5ad" in widget.state.text() and widget.file.isEnabled()
    )
    assert not widget.predict.isVisible()


# The figure page


@pytest.fixture
def page(opened, monkeypatch, tmp_path):
    """The widget, whose question for a name is answered."""
    path = tmp_path / "figure.svg"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    widget = opened(FigurePageWidget)
    widget.path = path
    return widget


def test_panels_are_ticked_and_written(play, dock, session, page, qtbot):
    assert not page.choices.isVisible()
    play()
    session.look.color_by = "kind"
    session.clusters.rename(2, "B cells")
    session.view.hide("kind", "B")
    page.colors.setChecked(True)
    page.split_by.setCurrentText("kind")
    QTest.keyClicks(page.genes, "b, C")
    page.width_of_page.setCurrentIndex(0)
    click(page.save)
    qtbot.waitUntil(lambda: page.state.text() == "Saved figure.svg.")
    drawn = page.path.read_text()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert {"Clusters", "B cells", "kind", "kind: T", "b", "c", "T"} <= set(texts)
    assert "kind: B" not in texts  # hidden
    assert any("Clusters (20 points)" in text for text in texts)
    width = float(re.search(r'width="([\d.]+)pt"', drawn)[1])
    assert width == pytest.approx(89 / 25.4 * 72, abs=0.1)


def test_what_cannot_be_drawn_is_told(play, dock, page):
    play()
    for genes, told in (("GENE9", "no column GENE9"), ("", NOTHING)):
        page.genes.setText(genes)
        page.clusters.setChecked(bool(genes))
        click(page.save)
        assert told in page.state.text()
    page.expression.setChecked(True)
    click(page.save)
    assert "there is none" in page.state.text()
    assert not page.path.exists()


def test_plots_of_the_tabs_are_panels(play, session, workspace, inspector, qtbot, page):
    play()
    inspector.show()
    session.selection.select(2)
    pane = inspector.details.markers
    inspector.details.tabs.setCurrentWidget(pane)
    qtbot.waitUntil(lambda: pane.result is not None)
    page.volcano.setChecked(True)
    panels = [make() for make in page._panels()]
    assert isinstance(panels[-1], VolcanoPlot)
    assert panels[-1].title == "Cluster 2 against all the rest"
    inspector.dock.close()
    assert not workspace.plots


def test_a_map_in_space_is_drawn_as_it_is_seen(play, dock, session, page):
    play()
    flat = session.snapshot.embedding
    places = np.hstack([flat, flat[:, :1] ** 2])
    session.snapshot = replace(session.snapshot, embedding=places)
    facing = np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]])
    session.view.facing = facing
    (panel,) = [make() for make in page._panels()]
    back_to_front = np.argsort(places @ np.cross(*facing), kind="stable")
    expected = places[back_to_front] @ facing.T
    np.testing.assert_allclose(panel.embedding, expected, rtol=1e-5, atol=1e-5)
