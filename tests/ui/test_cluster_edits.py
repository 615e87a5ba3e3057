"""Renaming, merging, splitting and recolouring in the table, undone and redone."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtGui import QColor, QGuiApplication
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QColorDialog, QInputDialog, QLineEdit, QWidget

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.cell_names import find_named_points
from napari_embedding_game.ui.game_dock import MAP, SELECTION

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def played(qtbot, play, inspector):
    play()
    inspector.show(MAP)
    qtbot.waitExposed(inspector.dock)
    qtbot.waitUntil(lambda: inspector.clusters.table.model().rowCount() == 4)
    return inspector


def names(session):
    return [cluster.name for cluster in session.clusters.clusters]


def test_a_double_click_renames(qtbot, played, session):
    table = played.clusters.table
    (row,) = table.find_rows_with_keys([2])
    place = table.visualRect(table.model().index(row, 0)).center()
    QTest.mouseClick(table.viewport(), LEFT, pos=place)
    assert session.selection.clusters == (2,)
    QTest.mouseDClick(table.viewport(), LEFT, pos=place)
    editor = table.findChild(QLineEdit)
    QTest.keyClicks(editor, "B cells")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: names(session) == ["0", "1", "B cells", "3"])
    session.clusters.make_group(np.arange(5), "few")
    qtbot.waitUntil(lambda: table.rowCount() == 5)
    table.edit_first_cell(first := table.keys[0])
    QTest.keyClicks(table.findChild(QLineEdit), "first")
    heading = table.horizontalHeader()
    by_size = QPoint(heading.sectionViewportPosition(1) + 9, 9)
    QTest.mouseClick(heading.viewport(), LEFT, pos=by_size)
    assert table.keys[0] != first
    assert session.clusters.clustering.by_id[first].name == "first"
    qtbot.waitUntil(
        lambda: table.item(*table.find_rows_with_keys([first]), 0).toolTip() == "first"
    )
    table.show_frame(table.frame[:2])  # which has its size at once
    assert table.height() == table.sizeHint().height()


def test_merging_is_undone_on_any_tab_and_redone(qtbot, played, session):
    edits = played.clusters.edits
    assert not edits.undo_button.isVisible()  # there is nothing to undo
    session.selection.select_clusters([0, 1])
    assert not edits.split.isEnabled()
    edits.merge.trigger()
    assert len(session.clusters.clusters) == 3
    assert len(session.selection.clusters) == 1
    assert edits.undo_button.text().endswith("Undo merge of 0 and 1")
    played.show(MAP)
    qtbot.waitUntil(edits.undo_button.isVisible)
    QTest.mouseClick(edits.undo_button, LEFT)
    assert names(session) == ["0", "1", "2", "3"]
    assert not edits.undo_button.isVisible()
    assert edits.redo_button.toolTip().startswith("Redo merge of 0 and 1 (")
    QTest.mouseClick(edits.redo_button, LEFT)
    assert len(session.clusters.clusters) == 3
    assert not edits.redo_button.isVisible()


def refuse(*edit):
    raise DataError("This cannot be done now.")


def test_colours_notes_and_groups_are_given(
    played, session, dock, monkeypatch, from_menu
):
    session.selection.clear()
    assert not played.clusters.edits.make.isEnabled()
    session.selection.select_points(np.array([3, 13, 23]))
    played.clusters.edits.make.trigger()
    assert len(session.clusters.clusters) == 5
    (made,) = session.selection.clusters
    assert session.clusters.clustering.rows_in_cluster(made).tolist() == [3, 13, 23]
    played.clusters.edits.release.trigger()
    assert len(session.clusters.clusters) == 4
    edits = played.clusters.edits
    edits.more.aboutToShow.emit()
    assert not edits.use.isVisible()
    session.look.color_by = "kind"
    with monkeypatch.context() as refusing:
        refusing.setattr(session.clusters, "annotate_by_column", refuse)
        from_menu(edits.more, "Use kind as annotation")
    assert session.look.color_by == "kind"
    from_menu(edits.more, "Use kind as annotation")
    assert session.look.color_by == "Cluster"
    kinds = session.dataset.obs["kind"].astype(str).tolist()
    assert session.clusters.clustering.names_by_point.tolist() == kinds
    edits.undo.trigger()
    assert names(session) == ["0", "1", "2", "3"]

    def red(initial, parent, title):
        assert (type(initial), title) == (QColor, "Colour of 1")
        assert isinstance(parent, QWidget)
        return QColor("#ff0000")

    monkeypatch.setattr(QColorDialog, "getColor", red)
    session.selection.select_cluster(1)
    played.clusters.edits.recolor.trigger()
    colors = dock.controller.scene.map_layers.points.face_color
    members = session.clusters.labels == 1
    np.testing.assert_array_equal(colors[members], [[1, 0, 0, 1]] * 10)
    monkeypatch.setattr(QInputDialog, "getMultiLineText", lambda *_: ("CD3 high", True))
    session.selection.select_cluster(1)
    played.clusters.edits.note.trigger()
    assert session.clusters.clustering.by_id[1].note == "CD3 high"


def test_names_of_cells_are_copied_saved_and_found_again(
    played, session, monkeypatch, from_menu, answer, tmp_path
):
    edits, index = played.clusters.edits, session.dataset.obs.index
    told = played.clusters.message
    session.selection.clear()
    assert not edits.copy_names.isVisible()
    session.selection.select_cluster(1)
    chosen = session.selection.rows
    from_menu(edits.more, "Copy names")
    copied = QGuiApplication.clipboard().text()
    assert copied.split() == index[chosen].tolist()
    assert told.text() == "10 names copied."
    answer(tmp_path / "cells")
    from_menu(edits.more, "Save names…")
    assert (tmp_path / "cells.txt").read_text() == copied
    assert told.text() == "Saved as cells.txt."

    def add(text):
        given = lambda *_: (text, text != "")  # noqa: E731
        monkeypatch.setattr(QInputDialog, "getMultiLineText", given)
        from_menu(edits.more, "Add by names…")
        return session.selection.rows.tolist()

    session.selection.clear()
    assert add("") == []
    assert add(copied) == chosen.tolist()
    assert told.text() == "10 points added by name."
    # Rows of a table, in quotes and with names that are not there, beside others.
    rows = f'"{index[3]}",0.5,B\n\n{index[4]}\t7\nnobody\nnothing;3\n{index[4]}\n'
    assert add(rows) == sorted({3, 4, *chosen.tolist()})
    assert told.text() == (
        "2 points added by name. 2 of 4 names are not on the map: nobody, nothing."
    )
    add("nobody")
    assert told.text() == (
        "No point on the map is called nobody: give a name such as "
        f"{index[0]} in each line."
    )
    # A name may hold what ends a column, and several rows may have it.
    double = session.dataset.obs.set_axis([f"a,{i // 2}" for i in range(len(index))])
    points, message = find_named_points(
        replace(session.dataset, obs=double), "a,1\na,9999"
    )
    assert np.flatnonzero(points).tolist() == [2, 3]
    assert message.endswith("1 of 2 names is not on the map: a.")


def test_a_note_or_a_name_is_for_the_map_on_which_it_was_begun(
    qtbot, played, session, monkeypatch
):
    saved, table = session.to_saved_map(), played.clusters.table

    def other_map_comes(*question):
        """A session that was being read comes meanwhile."""
        of_all = saved.dataset.subset(np.ones(40, bool))
        session.restore(replace(saved, dataset=of_all))
        return "of another map", True

    monkeypatch.setattr(QInputDialog, "getMultiLineText", other_map_comes)
    session.selection.select_cluster(1)
    played.clusters.edits.note.trigger()
    assert session.dataset is not saved.dataset
    assert not any(cluster.note for cluster in session.clusters.clusters)
    played.show(MAP)
    table.edit_first_cell(3)
    qtbot.waitUntil(lambda: table.is_editing)
    field = table.findChild(QLineEdit)
    QTest.keyClicks(field, "Plasma")
    other_map_comes()
    QTest.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not table.is_editing)
    assert names(session) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("is_in_title", [False, True])
@pytest.mark.parametrize("is_taken", [False, True])
def test_a_name_is_for_the_points_that_its_cluster_had_when_it_was_begun(
    qtbot, played, session, is_in_title, is_taken
):
    clusters, labels = session.clusters, session.snapshot.labels
    if is_in_title:
        session.selection.select_cluster(3)
        played.show()
        played.clusters.edits.rename.trigger()
        assert played.dock.tabs.currentIndex() == SELECTION  # where it is seen
        field = played.details.title
    else:
        played.clusters.table.edit_first_cell(3)
        field = played.clusters.table.findChild(QLineEdit)
    QTest.keyClicks(field, "Plasma")
    # The game goes on: the cluster goes, or its number is that of others.
    was, others = labels == 3, (labels == 0) & (np.arange(40) % 2 == 0) & is_taken
    clusters.update_from_game(np.where(was, 2, np.where(others, 3, labels)), 4)
    assert (clusters.labels == 3).sum() == others.sum()
    QTest.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "Plasma" in names(session))
    np.testing.assert_array_equal(clusters.clustering.names_by_point == "Plasma", was)


@pytest.mark.parametrize("is_in_title", [False, True])
def test_a_name_is_for_present_points_where_a_former_one_was_given_up(
    qtbot, played, session, is_in_title
):
    clusters, labels = session.clusters, session.snapshot.labels
    table, title = played.clusters.table, played.details.title
    clusters.update_from_game(np.where(labels > 0, 3, 0), 4)
    qtbot.waitUntil(lambda: table.rowCount() == 2)
    joined = int(clusters.labels[labels == 3][0])
    if is_in_title:
        session.selection.select_cluster(joined)
        played.show()
        qtbot.waitUntil(title.isVisible)
        played.dock.window().activateWindow()
        qtbot.waitUntil(played.dock.isActiveWindow)
    begin = (
        played.details.edit_name
        if is_in_title
        else lambda: table.edit_first_cell(joined)
    )
    begin()
    assert not is_in_title or title.hasFocus()
    clusters.update_from_game(labels, 4)
    played.details.refresh()
    played.clusters.update_view()
    if is_in_title:
        title.clearFocus()
        title.setFocus()
        title.selectAll()
    else:
        QTest.keyClick(table.findChild(QLineEdit), Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: table.rowCount() == 4)
        assert not played.clusters.message.text()  # the name is as it was
        begin()
    was = clusters.labels == joined
    assert was.any()
    field = title if is_in_title else table.findChildren(QLineEdit)[-1]
    QTest.keyClicks(field, "Plasma")
    QTest.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "Plasma" in names(session))
    np.testing.assert_array_equal(clusters.clustering.names_by_point == "Plasma", was)


def test_selected_points_are_clustered_again(
    qtbot, played, session, from_menu, monkeypatch
):
    edits = played.clusters.edits
    assert not edits.recluster.isEnabled()
    session.selection.select_points(np.arange(5, 25))
    assert edits.recluster.isEnabled()
    n_before = len(session.clusters.clusters)

    monkeypatch.setattr(QInputDialog, "getInt", lambda *_: (2, True))
    from_menu(edits.more, "Cluster again…")
    assert played.clusters.message.text() == "Clustering …"
    qtbot.waitUntil(lambda: len(session.selection.clusters) == 2)
    assert played.clusters.message.isHidden()
    assert len(session.clusters.clusters) > n_before - 2
    assert sum(c.is_named for c in session.clusters.clusters) == 2
    edits.undo.trigger()
    assert not any(c.is_named for c in session.clusters.clusters)


def test_parts_that_come_late_are_named_after_no_other_group(
    qtbot, played, session, from_menu, monkeypatch
):
    """While they are sought, the group is undone and its id is another group's."""
    edits, book, sought = played.clusters.edits, session.clusters, threading.Event()

    def find(X, n_parts, **options):
        assert sought.wait(30)
        return np.arange(len(X)) % n_parts

    place = "napari_embedding_game.core.inspect.reclustering.recluster_rows"
    monkeypatch.setattr(place, find)
    monkeypatch.setattr(QInputDialog, "getInt", lambda *_: (2, True))
    rows = np.arange(5, 25)
    session.selection.select_cluster(cluster := book.make_group(rows, "few"))
    from_menu(edits.more, "Cluster again…")
    edits.undo.trigger()
    assert book.make_group(np.arange(30, 40), "other") == cluster
    sought.set()
    qtbot.waitUntil(lambda: sum(c.is_named for c in book.clusters) == 3)
    parts = {
        c.name
        for c in book.clusters
        if {*book.clustering.rows_in_cluster(c.id)} <= {*rows}
    }
    assert parts == {"Group 1", "Group 2"}
    (other,) = (c for c in book.clusters if c.name == "other")
    assert book.clustering.rows_in_cluster(other.id).tolist() == [*range(30, 40)]
