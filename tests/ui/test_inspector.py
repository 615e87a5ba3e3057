"""The inspector: a table of all clusters, and what is inside the chosen ones."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt

from napari_embedding_game.ui.thumbnails import Thumbnails, to_qimage


@pytest.fixture
def played(play, inspector):
    """The inspector beside a finished map."""
    play()
    return inspector


def report_of(qtbot, inspector, clusters):
    def arrived():
        return inspector.report is not None and inspector.report.clusters == clusters

    qtbot.waitUntil(arrived, timeout=3000)
    return inspector.report


def test_before_there_is_a_map_it_says_what_to_do(inspector):
    assert inspector.hint.text().startswith("Run the game")
    assert inspector.table.model().rowCount() == 0


def test_a_selected_cluster_is_described(qtbot, played, session):
    assert played.hint.text().startswith("Click on the map")
    session.selection.select(1)
    report = report_of(qtbot, played, (1,))
    assert report.size == 10
    assert played.title.text() == "Cluster 1"
    assert "10 points, 25.0% of all" in played.numbers.text()
    assert [share.level for share in report.composition] == ["B", "T"]
    session.selection.toggle(3)
    assert report_of(qtbot, played, (1, 3)).size == 20
    assert played.title.text() == "2 clusters: 1, 3"
    session.selection.clear()
    assert played.report is None


def test_the_newest_of_many_selections_is_shown(qtbot, played, session):
    for cluster in (0, 1, 2, 3):
        session.selection.select(cluster)
    report_of(qtbot, played, (3,))
    assert played.title.text() == "Cluster 3"


def test_another_column_composes_the_cluster(qtbot, played, session):
    session.selection.select(0)
    report_of(qtbot, played, (0,))
    played.column.value = "counts"
    qtbot.waitUntil(lambda: played.report.column == "counts")
    assert played.report.composition[0].level.startswith("100 to")


def test_the_composition_follows_colour_by(played, dock):
    dock.look.color_by.value = "counts"
    assert played.column.value == "counts"


def test_a_row_of_the_table_selects_its_cluster(played, session):
    table = played.table
    table.sortByColumn(0, Qt.SortOrder.DescendingOrder)
    table.selectRow(0)
    assert session.selection.clusters == (3,)
    session.selection.select(1)
    rows = table.selectionModel().selectedRows()
    assert [table.model().data(row) for row in rows] == ["1"]


def test_the_table_counts_all_points(played):
    model = played.table.clusters
    sizes = [int(model.data(model.index(row, 1))) for row in range(model.rowCount())]
    assert sizes == [10, 10, 10, 10]


def test_images_are_shown_and_drawn_again(qtbot, play, inspector, session, dataset):
    images = np.arange(40, dtype=np.uint8)[:, None, None] * np.ones((1, 8, 8), np.uint8)
    session.load(replace(dataset, images=images))
    play()
    session.selection.select(0)
    first = report_of(qtbot, inspector, (0,)).draw.tolist()
    assert len(inspector.thumbnails._images) == 10
    assert not inspector.thumbnails.isHidden()
    assert inspector.contrasts.isHidden()
    inspector.another.native.click()
    qtbot.waitUntil(lambda: inspector.report.draw.tolist() != first)


def test_texts_are_shown(qtbot, play, inspector, session, dataset):
    session.load(replace(dataset, texts=[f"text {i}" for i in range(40)]))
    play()
    session.selection.select(0)
    report = report_of(qtbot, inspector, (0,))
    assert inspector.texts.item(0).text() == f"text {report.draw[0]}"


def test_a_report_that_fails_is_told(qtbot, played, session, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no memory map")

    monkeypatch.setattr(played._reporter, "describe", broken)
    session.selection.select(0)
    qtbot.waitUntil(lambda: "no memory map" in played.hint.text())


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)], ids=["grey", "colour"])
def test_pictures_keep_their_pixels(shape):
    values = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    image = to_qimage(values)
    assert (image.width(), image.height()) == (7, 5)
    pixel = image.pixelColor(6, 2)
    assert [pixel.red(), pixel.green(), pixel.blue()] == np.broadcast_to(
        values[2, 6], 3
    ).tolist()


def test_pictures_of_real_numbers_span_0_to_1():
    image = to_qimage(np.array([[0.0, 1.0, np.nan, 2.0]]))
    assert [image.pixelColor(x, 0).red() for x in range(4)] == [0, 255, 0, 255]


def test_thumbnails_shrink_until_all_find_room(qtbot):
    view = Thumbnails()
    qtbot.addWidget(view)
    view.resize(400, 100)
    view.set_images(np.zeros((4, 8, 8), np.uint8))
    assert view.n_shown() == 4
    view.set_images(np.zeros((100, 8, 8), np.uint8))
    assert view.n_shown() == 18
