"""A file with positions in tissue: spaces are mixed, neighbourhoods are shown."""

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui.game_dock import PLOTS
from napari_embedding_game.ui.inspector import neighborhoods_pane
from worlds import annotated, choose, drawn, write_adata

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


def cells(n=240):
    """Return an AnnData whose cells of type B lie left of the cells of type T."""
    adata = annotated(n, X_pca=6, protein=4)
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 5, (n, 2))
    places[:, 0] += 3 * (adata.obs["type"] == "T")
    adata.obsm["spatial"] = places
    return adata


def test_a_second_space_is_chosen_and_weighed(
    qtbot, session, dock, load, play, tmp_path, engine
):
    data, share = dock.data_controls, dock.method_controls.controls["second_share"]
    dock.show()

    def is_shown(widget):
        return widget.isVisibleTo(dock)

    plain = annotated(240, X_pca=6)
    load(FileSource(write_adata(plain, tmp_path / "plain.h5ad")))
    assert not is_shown(share.native)
    load(FileSource(write_adata(cells(), tmp_path / "cells.h5ad")))
    texts = [data.second_space.itemText(i) for i in range(data.second_space.count())]
    assert texts[:3] == ["None", "Cells around", "obsm['protein']"]
    play()
    former = session.run
    choose(data.second_space, "Cells around")
    qtbot.waitUntil(lambda: session.run is not former and session.state == "finished")
    assert session.run.edges.second_X.shape == (240, 6)
    assert is_shown(share.native)
    share.value = 0.25  # the finished game plays on
    qtbot.waitUntil(lambda: engine.games[-1].second_share == 0.25)
    qtbot.waitUntil(lambda: session.state == "finished")
    former = session.run
    choose(data.second_space, "obsm['protein']")  # is read first
    qtbot.waitUntil(lambda: session.run is not former and session.state == "finished")
    assert session.run.edges.second_X.shape == (240, 4)
    assert session.timeline.state.marks  # the map was not lost
    choose(data.second_space, "None")
    qtbot.waitUntil(lambda: session.settings.second_space == "")
    assert not is_shown(share.native)


def test_neighbourhoods_are_counted_and_select(
    qtbot, session, dock, inspector, load, play, tmp_path
):
    tabs, pane = inspector.plots.tabs, inspector.plots.neighborhoods
    load(FileSource(write_adata(cells(), tmp_path / "cells.h5ad")))
    play()
    inspector.resize(400, 800)
    inspector.show(PLOTS)
    assert tabs.isTabVisible(tabs.indexOf(pane))
    tabs.setCurrentWidget(pane)
    qtbot.waitUntil(lambda: pane.result is not None)
    choose(pane.grouping, "type")
    qtbot.waitUntil(lambda: pane.result is not None and pane.result.z.shape == (2, 2))
    assert pane.result.z[0, 0] > 5
    assert pane.result.z[0, 1] < -5
    around, neighbor, ratio, z, _ = (pane.table.item(0, i).text() for i in range(5))
    assert (around == neighbor) == (float(ratio) > 1) == (float(z) > 0)
    assert "no independent samples" in pane.state.text()
    canvas = drawn(qtbot, pane)
    assert "T around B: " in pane._make_tooltip(1.0, 0.0)
    at = canvas.position_to_pixel(1.0, 0.0)
    QTest.mouseClick(canvas.canvas, LEFT, NONE, at)
    is_b = (session.dataset.obs["type"] == "B").to_numpy()
    np.testing.assert_array_equal(session.selection.points, is_b)
    session.selection.select_points(is_b & (np.arange(240) < 120))
    choose(pane.around, neighborhoods_pane.SELECTION)
    qtbot.waitUntil(lambda: pane.result is not None and len(pane.result.z) == 1)
    assert pane.result.counts.sum() < 60 * 6  # selected cells are not counted
    session.selection.clear()
    qtbot.waitUntil(lambda: pane.state.text() == neighborhoods_pane.NO_SELECTION)
