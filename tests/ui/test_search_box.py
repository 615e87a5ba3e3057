"""Finding clusters, genes and cells from the keyboard."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.ui.inspector import search_box


@pytest.fixture
def played(play, dock):
    play()
    return dock


def typed(dock, text):
    """Type a name."""
    search = dock.clusters.search
    search.clear()
    QTest.keyClicks(search, text)
    return search


def find(dock, text):
    QTest.keyClick(typed(dock, text), Qt.Key.Key_Return)


def test_a_cluster_is_selected(played, session):
    session.clusters.rename(2, "Monocytes")
    find(played, "mono")
    assert session.selection.clusters == (2,)
    session.clusters.rename(1, "Mono too")
    find(played, "mono too")
    assert session.selection.clusters == (1,)


def test_a_gene_and_a_column_colour_the_map(played, session, dock):
    find(played, "c")
    assert session.look.color_by == "c"
    values = session.dataset.profile[:, 2]
    colors = dock.controller.scene.layers.points.face_color
    highest, lowest = values.argmax(), values.argmin()
    assert colors[highest, 1] > colors[lowest, 1]  # viridis: yellow, not violet
    find(played, "kind")
    assert session.look.color_by == "kind"


@pytest.mark.parametrize("key", [Qt.Key.Key_Slash, Qt.Key.Key_F])
def test_keys_lead_to_the_search(qtbot, played, key):
    played.show()
    played.activateWindow()
    played.clusters.table.setFocus()
    qtbot.waitUntil(played.clusters.table.hasFocus)
    control = Qt.KeyboardModifier.ControlModifier
    plain = Qt.KeyboardModifier.NoModifier
    QTest.keyClick(
        played.clusters.table, key, control if key == Qt.Key.Key_F else plain
    )
    assert played.clusters.search.hasFocus()
    QTest.keyClick(played.clusters.search, Qt.Key.Key_Escape)
    assert not played.clusters.search.hasFocus()


def test_a_row_is_found_by_its_name(played, session, monkeypatch):
    find(played, "cell23")
    assert session.selection.rows.tolist() == [23]
    monkeypatch.setattr(search_box, "MOST_ROWS", 3)  # of many, by the whole name
    assert not typed(played, "cell2x").hits
    find(played, "cell7")
    assert session.selection.rows.tolist() == [7]


def test_all_rows_of_a_repeated_name_are_found(played, session, play, dataset):
    twice = [f"cell{number // 2}" for number in range(40)]
    session.load(replace(dataset, obs=dataset.obs.set_axis(twice)))
    play()
    find(played, "cell7")
    assert session.selection.rows.tolist() == [14, 15]


def test_what_was_searched_goes_with_its_data(qtbot, played, session):
    search = typed(played, "cell3")
    assert search.hits
    session.load(session.dataset.subset(np.arange(40) < 30))
    assert search.text() == ""
    QTest.keyClick(search, Qt.Key.Key_Return)  # takes nothing of the former data
    assert session.selection.is_empty
