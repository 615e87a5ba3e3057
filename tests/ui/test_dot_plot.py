"""The dot plot in the inspector: opened without a selection, clicked, typed, saved."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.ui.game_dock import PLOTS

LEFT = Qt.MouseButton.LeftButton
ASKED = "napari_embedding_game.ui.tasks.save_dialog.QFileDialog.getSaveFileName"


@pytest.fixture
def pane(qtbot, session, dock, inspector, dataset, play):
    """The dot plot of four clusters of ten cells, each with a gene of its own."""
    rng = np.random.default_rng(0)
    values = rng.random((40, 5)).astype(np.float32)
    values[np.arange(40), np.arange(40) // 10] += 3
    session.load(replace(dataset, profile=values, has_expression=True))
    play()
    inspector.resize(1200, 320)
    inspector.show(PLOTS)
    pane = inspector.plots.dot_plot
    inspector.plots.tabs.setCurrentWidget(pane)
    qtbot.waitUntil(lambda: pane.result is not None)
    return pane


def middle_of(header, section):
    along = header.sectionViewportPosition(section) + header.sectionSize(section) // 2
    is_flat = header.orientation() == Qt.Orientation.Horizontal
    return QPoint(along, 15) if is_flat else QPoint(15, along)


def test_the_leading_marker_of_each_cluster_is_its_own(qtbot, pane, session):
    pane.n_leading.setValue(1)
    qtbot.waitUntil(lambda: len(pane.result.genes) == 4)
    model = pane.table.expression
    assert model.rowCount() == 4
    clusters = pane.result.clusters
    labels = session.clusters.labels
    for gene, cluster in zip(pane.result.genes, clusters, strict=True):
        place = session.dataset.profile_names.index(gene)
        means = [session.dataset.profile[labels == c, place].mean() for c in clusters]
        assert clusters[int(np.argmax(means))] == cluster
    tip = model.data(model.index(0, 0), Qt.ItemDataRole.ToolTipRole)
    assert "above 0 in 100% of 10" in tip


def test_a_row_chooses_its_cluster_and_a_name_colours_the_map(pane, session, dock):
    names, genes = pane.table.names, pane.table.genes
    QTest.mouseClick(names.viewport(), LEFT, pos=middle_of(names, 1))
    chosen = pane.result.clusters[1]
    assert session.selection.clusters == (chosen,)
    assert pane.table.expression.headerData(
        1, Qt.Orientation.Vertical, Qt.ItemDataRole.UserRole
    )
    index = pane.table.expression.index(2, 0)
    place = pane.table.visualRect(index).center()
    control = Qt.KeyboardModifier.ControlModifier
    pane.table.cluster_picked.emit(pane.result.clusters[2], True)
    assert set(session.selection.clusters) == {chosen, pane.result.clusters[2]}
    QTest.mouseClick(pane.table.viewport(), LEFT, pos=place)
    assert session.selection.clusters == (pane.result.clusters[2],)
    QTest.mouseClick(genes.viewport(), LEFT, control, middle_of(genes, 0))
    assert session.look.color_by == pane.result.genes[0] == dock.look.color_by.value
    assert pane.table.expression.gene == pane.result.genes[0]


def test_typed_names_are_shown_in_their_order(qtbot, pane, session):
    QTest.keyClicks(pane.genes, "e, A, nope")
    QTest.keyClick(pane.genes, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: pane.result.genes == ("e", "a"))
    assert pane.state.text() == "Not in the data: nope."
    assert not pane.n_leading.isEnabled()
    pane.genes.setText("nope")
    pane.refresh()
    qtbot.waitUntil(lambda: pane.result is None)
    assert "separated by commas" in pane.state.text()
    assert not pane.saved.isEnabled()


def test_what_was_looked_at_is_remembered(qtbot, pane, session):
    (first,) = session.figures
    assert (first.kind, first.column, first.are_leading) == ("dots", "", True)
    assert first.genes == pane.result.genes
    QTest.keyClicks(pane.genes, "e, a")
    QTest.keyClick(pane.genes, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: pane.result.genes == ("e", "a"))
    pane.kind.setCurrentIndex(pane.kind.findText("Heat map"))
    pane.kind.activated.emit(pane.kind.currentIndex())
    pane.scaled.click()
    _, dots, cells = session.figures
    assert (dots.kind, dots.genes, dots.are_leading) == ("dots", ("e", "a"), False)
    assert (cells.kind, cells.genes) == ("cells", ("e", "a"))
    assert not cells.is_scaled


def test_a_new_name_of_a_cluster_is_taken_over(qtbot, pane, session, inspector):
    before = pane.result
    session.clusters.rename(before.clusters[0], "T cells")
    inspector.dock.inspector.refresh()
    model = pane.table.expression
    assert model.headerData(0, Qt.Orientation.Vertical) == "T cells"
    assert pane.result is before  # nothing was found anew


def test_other_clusters_are_found_anew(qtbot, pane, session):
    session.clusters.merge(pane.result.clusters[:2])
    qtbot.waitUntil(lambda: pane.table.expression.rowCount() == 3)
    assert sorted(pane.result.sizes) == [10, 10, 20]


def choose_rows(pane, text):
    pane.rows.setCurrentIndex(pane.rows.findText(text))
    pane.rows.activated.emit(pane.rows.currentIndex())


def test_rows_are_of_a_column_or_of_clusters_by_it(qtbot, pane, session):
    model, kinds = pane.table.expression, session.dataset.obs["kind"]
    choose_rows(pane, "kind")
    qtbot.waitUntil(lambda: model.rowCount() == 2)
    vertical = Qt.Orientation.Vertical
    assert [model.headerData(i, vertical) for i in range(2)] == ["B", "T"]
    place = session.dataset.profile_names.index(pane.result.genes[0])
    means = session.dataset.profile[kinds == "B", place].mean()
    assert pane.result.summary.means[0, 0] == pytest.approx(means, rel=1e-5)
    names = pane.table.names
    QTest.mouseClick(names.viewport(), LEFT, pos=middle_of(names, 1))
    np.testing.assert_array_equal(session.selection.points, kinds == "T")
    choose_rows(pane, "Clusters by kind")
    qtbot.waitUntil(lambda: model.rowCount() == 8)
    first = session.clusters.clusters[0]
    assert model.headerData(0, vertical) == f"{first.name} · B"
    session.clusters.rename(first.id, "lymph")
    pane.refresh()
    assert model.headerData(1, vertical) == "lymph · T"
    choose_rows(pane, "Clusters")
    qtbot.waitUntil(lambda: model.rowCount() == 4)


def test_headings_of_a_former_longer_table_are_empty(pane):
    """Headings are measured before they know that the table became shorter."""
    model = pane.table.expression
    rows, columns = model.rowCount(), model.columnCount()
    assert rows
    assert columns
    for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.DecorationRole):
        assert model.headerData(rows, Qt.Orientation.Vertical, role) is None
        assert model.headerData(columns, Qt.Orientation.Horizontal, role) is None


def test_a_running_game_is_waited_for_and_other_data_are_forgotten(
    qtbot, pane, session, dataset, engine, dock
):
    before = pane.result
    engine.gate.clear()
    dock.run.run.native.click()
    qtbot.waitUntil(lambda: session.state in ("preparing", "running"))
    pane.refresh()
    assert pane.state.text().startswith("The clusters still move")
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "finished")
    qtbot.waitUntil(lambda: pane._worker is None and pane.state.text() == "")
    assert pane.result.genes == before.genes
    session.load(dataset)
    assert pane.result is None
    assert pane.table.expression.rowCount() == 0
    pane._choose(3, False)  # of no cluster that there is
    assert session.selection.is_empty


def test_data_without_numbers_are_told(qtbot, pane, inspector, session, dataset, play):
    empty = np.zeros((40, 0), np.float32)
    session.load(replace(dataset, profile=empty, profile_names=()))
    play()
    inspector.show(PLOTS)
    qtbot.waitUntil(lambda: pane._worker is None and pane.state.text() != "")
    assert pane.state.text().startswith("No column leads in any row")


@pytest.mark.parametrize("kind", ["dots", "matrix", "cells"])
def test_every_kind_is_drawn_and_saved(pane, kind, tmp_path, monkeypatch):
    pane.kind.setCurrentIndex(pane.kind.findData(kind))
    pane.kind.activated.emit(pane.kind.currentIndex())
    pixels = pane.table.viewport().grab().toImage()
    own = pane.table.visualRect(pane.table.expression.index(0, 0)).center()
    other = pane.table.visualRect(pane.table.expression.index(3, 0)).center()
    assert pixels.pixelColor(own) != pixels.pixelColor(other)
    path = tmp_path / "plot"
    monkeypatch.setattr(ASKED, lambda *_: (str(path), "Scalable picture (*.svg)"))
    pane.saved.click()
    drawn = path.with_suffix(".svg").read_text()
    assert all(f">{gene}</text>" in drawn for gene in pane.result.genes)
    assert pane.state.text() == "Saved as plot.svg."


def test_what_cannot_be_written_is_told(pane, session, tmp_path, monkeypatch):
    said = []
    session.message_changed.connect(said.append)
    path = tmp_path / "none" / "plot.pdf"
    monkeypatch.setattr(ASKED, lambda *_: (str(path), ""))
    pane.saved.click()
    assert "could not be written" in said[0]
