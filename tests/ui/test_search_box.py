"""Finding clusters, genes and cells from the keyboard."""

from dataclasses import replace

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QCompleter

from napari_embedding_game.ui.inspector import search_box


def typed(dock, text):
    """Type a name."""
    search = dock.cluster_pane.search
    search.clear()
    QTest.keyClicks(search, text)
    return search


def find(dock, text):
    QTest.keyClick(typed(dock, text), Qt.Key.Key_Return)


def test_clusters_genes_columns_and_rows_are_found(play, dock, session, monkeypatch):
    play()
    session.clusters.rename(2, "Monocytes")
    find(dock, "mono")
    assert session.selection.clusters == (2,)
    assert not dock.cluster_pane.search.text()  # the next name can be typed
    session.clusters.rename(1, "Mono too")
    find(dock, "mono too")
    assert session.selection.clusters == (1,)
    find(dock, "c")
    assert session.look.color_by == "c"
    names = typed(dock, "cell2")
    marked = names.findChild(QCompleter).popup()
    for _ in range(3):
        QTest.keyClick(marked, Qt.Key.Key_Down)
    third = names.hits[2][1]
    QTest.keyClick(marked, Qt.Key.Key_Return)
    assert session.dataset.obs.index[session.selection.rows].tolist() == [third]
    values = session.dataset.profile[:, 2]
    colors = dock.controller.scene.map_layers.points.face_color
    highest, lowest = values.argmax(), values.argmin()
    assert colors[highest, 1] > colors[lowest, 1]  # viridis: yellow, not violet
    find(dock, "kind")
    assert session.look.color_by == "kind"
    find(dock, "cell23")
    assert session.selection.rows.tolist() == [23]
    monkeypatch.setattr(search_box, "MAX_ROWS", 3)  # of many, by the whole name
    assert not typed(dock, "cell2x").hits
    popup = names.findChild(QCompleter)
    assert popup.maxVisibleItems() > search_box.MAX_HITS  # and the search in texts
    find(dock, "cell7")
    assert session.selection.rows.tolist() == [7]


def test_all_rows_of_a_repeated_name_are_found(
    dock, session, play, dataset, monkeypatch
):
    twice = [f"cell{number // 2}" for number in range(40)]
    texts = [f"No. {number}\non <b>ice</b>" for number in range(40)]
    obs = dataset.obs.set_axis(twice).assign(text=texts)
    ids = {"b": "ENSG00000139618.15"}
    session.load(replace(dataset, obs=obs, gene_ids=ids, has_expression=True))
    play()
    find(dock, "ensg00000139618")
    assert session.look.color_by == "b"
    find(dock, "cell7")
    assert session.selection.rows.tolist() == [14, 15]
    find(dock, "NO. 3")
    assert session.selection.rows.tolist() == [3, *range(30, 40)]
    monkeypatch.setattr(search_box, "MAX_ROWS", 3)  # many are searched once chosen
    for text, message in (("no. 4", ""), ("no. x", 'No text has "no. x".')):
        find(dock, text)
        assert session.selection.rows.tolist() == [4]
        assert session.message == message
    session.selection.clear()
    search = typed(dock, "cell3")
    QTest.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == ""
    assert search.findChild(QCompleter).popup().isHidden()
    QTest.keyClick(search, Qt.Key.Key_Return)  # takes nothing of what was typed
    assert session.selection.is_empty
    # What was searched goes with its data.
    search = typed(dock, "cell3")
    assert search.hits
    session.load(session.dataset.subset(np.arange(40) < 30))
    assert search.text() == ""
    QTest.keyClick(search, Qt.Key.Key_Return)  # takes nothing of the former data
    assert session.selection.is_empty
