"""Cells in tissue: opened, shown beside the map and alone, and selected on both."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.data.tissue import Tissue, TissueImage
from worlds import choose, click, names_read, write_adata

SHIFT = Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def dataset(dataset):
    """40 cells on a grid of 10 x 4, 25 µm apart, in mixed order; cell 7 is nowhere."""
    order = np.random.default_rng(1).permutation(40)
    places = 25.0 * np.stack([order % 10, order // 10], axis=1).astype(np.float32)
    places[7] = np.nan
    picture = TissueImage(
        np.zeros((12, 25, 3), np.uint8), np.array([10.0, 10.0]), np.array([-5.0, -5.0])
    )
    tissue = Tissue(places, "µm", "obsm['spatial']", "", {"": picture})
    return replace(dataset, source_tissue=tissue)


def pixels_around(seen, low, high):
    """A line around a rectangle of the tissue, from (x, y) to (x, y), on the canvas."""
    (x, y), (right, bottom) = low, high
    corners = [(x, y), (right, y), (right, bottom), (x, bottom), (x, y)]
    drawn = seen.dock.controller.scene.tissue_layers.projection()
    pixels = drawn.to_pixels(np.array(corners, float) * [1, -1])
    return [QPoint(*pixel) for pixel in np.round(pixels).astype(int).tolist()]


def test_a_lasso_in_tissue_is_lit_and_named_on_the_map(seen, session, qtbot, dataset):
    dock, viewer, places = seen.dock, seen.viewer, dataset.tissue.positions
    scene, box = dock.controller.scene, dock.selection_controls.shown
    bar = viewer.canvas.overlays.scale_bar
    assert [box.itemText(i) for i in range(3)] == ["Map", "Map and tissue", "Tissue"]
    choose(box, "Map and tissue")
    qtbot.settle()
    names = [layer.name for layer in viewer.layers]
    assert names[:3] == ["tissue (image)", "tissue", "embedding"]
    assert len({str(layer.units) for layer in viewer.layers}) == 1
    assert bar.visible
    layer, known = viewer.layers["tissue"], np.isfinite(places[:, 0])
    np.testing.assert_allclose(layer.data[known], places[known, ::-1])
    np.testing.assert_array_equal(layer.shown, known)
    # The map lies below the tissue, and neither hides the other.
    assert viewer.layers["embedding"].data[:, 0].min() > layer.data[:, 0].max()
    seen.drag(pixels_around(seen, (-10, -10), (60, 60)), SHIFT)
    expected = np.flatnonzero((places < 60).all(axis=1))
    assert session.selection.rows.tolist() == expected.tolist()
    assert len(expected) == 8  # and cell 7, which is nowhere
    for lit in (layer, viewer.layers["embedding"]):
        assert (lit.size[expected] > lit.size[0 if 0 not in expected else 1]).all()
    assert dock.selection_tab.isVisible()
    dock.cluster_pane.edits.make.trigger()
    QTest.keyClicks(dock.selection_tab.title, "Corner")
    QTest.keyClick(dock.selection_tab.title, Qt.Key.Key_Return)
    named = session.clusters.clustering.names_by_point == "Corner"
    assert np.flatnonzero(named).tolist() == expected.tolist()
    qtbot.waitUntil(lambda: "Corner" in names_read(dock))
    # A click on a cell selects its cluster, here and there, and the mouse tells of it.
    row = int(np.flatnonzero((places == [225, 75]).all(axis=1))[0])
    (pixel, *_) = pixels_around(seen, places[row], places[row])
    session.selection.clear()
    seen.click(pixel)
    assert session.selection.clusters == (int(session.clusters.labels[row]),)
    assert scene.find_row_at_pixel(np.array([pixel.x(), pixel.y()])) == row
    # The tissue alone: the map is neither seen nor clicked, nor does it leave a gap.
    choose(box, "Tissue")
    qtbot.settle()
    viewer.reset_view()  # the button with the house
    np.testing.assert_allclose(viewer.scene.camera.center[-2:], [50, 115], atol=5)
    assert not viewer.layers["embedding"].visible
    assert scene.map_layers.projection() is None
    seen.drag(pixels_around(seen, (190, 40), (240, 90)), SHIFT)
    assert sorted(places[session.selection.rows].tolist()) == [
        [200, 50], [200, 75], [225, 50], [225, 75]
    ]  # fmt: skip
    zoom = viewer.scene.camera.zoom
    click(dock.selection_controls.show_objects_button)
    qtbot.settle()
    np.testing.assert_allclose(viewer.scene.camera.center[-2:], [62.5, 212.5])
    dock.objects_view.return_to_map()
    assert viewer.scene.camera.zoom == zoom
    # Whoever removes the points has the map again.
    viewer.layers.remove(layer)
    qtbot.settle()
    assert box.value == "map"
    assert [layer.name for layer in viewer.layers] == ["embedding", "landmarks"]
    assert viewer.layers["embedding"].visible
    assert not bar.visible
    choose(box, "Map and tissue")
    dock.close()
    assert [layer.name for layer in viewer.layers] == ["embedding", "landmarks"]


def test_a_file_with_positions_is_opened_and_shown_and_its_part_too(
    dock, viewer, session, load, answer, play, qtbot, tmp_path
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype(np.float32)
    X[4] = np.nan  # this row is left out of the map
    places = rng.permutation(180).reshape(60, 3).astype(float)
    names = [f"cell{i}" for i in rng.permutation(60)]
    adata = AnnData(X, pd.DataFrame(index=names), obsm={"X_pca": X, "spatial": places})
    answer(write_adata(adata, tmp_path / "cells.h5ad"))
    session.settings.n_neighbors = 5
    load(dock.data_controls.start_panel.ask_and_open_file)
    assert not any("spatial" in name for name in session.dataset.var_names)
    play()
    choose(dock.selection_controls.shown, "Map and tissue")
    qtbot.settle()

    def on_canvas(n_axes):
        layer, at = viewer.layers["tissue"], [names.index(x) for x in shown()]
        np.testing.assert_allclose(layer.data, places[at][:, :n_axes][:, ::-1])
        assert layer.ndim == viewer.dims.ndisplay == n_axes

    def shown():
        return list(session.dataset.obs.index)

    assert len(shown()) == 59
    on_canvas(2)  # seen from above, beside a flat map
    choose(dock.selection_controls.shown, "Tissue")
    qtbot.settle()
    on_canvas(3)
    choose(dock.selection_controls.shown, "Map and tissue")
    session.selection.select_points(np.arange(5, 30))
    dock.selection_controls.embed_button.click()
    qtbot.waitUntil(lambda: len(shown()) == 25 and session.state == "finished")
    qtbot.settle()
    on_canvas(2)
