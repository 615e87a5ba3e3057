"""What can be done without the mouse, in a window with the dock."""

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_embedding_game.ui.compat import canvas_widget
from napari_embedding_game.ui.game_dock import MAP, PLOTS
from napari_embedding_game.ui.style.coloring import CLUSTER


@pytest.fixture
def game(seen, qtbot):
    game = seen.dock
    game.window().activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is game.window())
    return game


def stops(root):
    """Return what the Tab key leads to in a dock, in its order."""
    found, widget = [], root.nextInFocusChain()
    while widget is not root:
        by_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if root.isAncestorOf(widget) and widget.isVisible() and widget.isEnabled():
            found += [widget] if by_tab else []
        widget = widget.nextInFocusChain()
    return found


def test_all_is_reached_by_keys(game, session, qtbot):
    tab_goes_down_the_tab_and_passes_over_what_is_folded(game)
    ctrl_f_leads_from_the_canvas_to_the_search_and_escape_back(game, session, qtbot)
    f2_names_a_cluster_in_any_colours_and_escape_leaves_what_is_typed(
        game, session, qtbot
    )


def ctrl_f_leads_from_the_canvas_to_the_search_and_escape_back(game, session, qtbot):
    canvas, search = canvas_widget(game), game.clusters.search
    canvas.setFocus()
    qtbot.waitUntil(canvas.hasFocus)
    QTest.keyClick(canvas, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert search.hasFocus()
    QTest.keyClicks(search, "2")
    QTest.keyClick(search, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: session.selection.clusters == (2,))
    QTest.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == ""
    assert session.selection.clusters == (2,)
    focused = QApplication.focusWidget()
    assert game.isAncestorOf(focused)
    QTest.keyClick(focused, Qt.Key.Key_Escape)
    assert session.selection.is_empty
    QTest.keyClick(canvas, Qt.Key.Key_F2)  # there is nothing to name
    game.clusters.table.picked.emit([2, 9], False)  # 9 was listed, and is gone
    assert session.selection.clusters == (2,)
    session.selection.clear()


def f2_names_a_cluster_in_any_colours_and_escape_leaves_what_is_typed(
    game, session, qtbot
):
    def type_into(field, text):
        qtbot.waitUntil(field.hasFocus)
        field.selectAll()
        QTest.keyClicks(field, text)

    session.selection.select(2)
    session.look.color_by = "counts"  # no list of clusters then
    game.clusters.edits.rename.trigger()
    title = game.inspector.title
    for key, name in (("Escape", "2"), ("Return", "Mono")):
        type_into(title, "Mono")
        QTest.keyClick(title, getattr(Qt.Key, f"Key_{key}"))
        assert session.selection.clusters == (2,)
        assert session.clusters.clustering.by_id[2].name == name
        assert title.text().endswith(name)
        game.inspector.edit_name()
    type_into(title, "Mono 2")
    session.selection.select(3)  # by a script: the cursor stays
    QTest.keyClick(title, Qt.Key.Key_Return)
    names = [session.clusters.clustering.by_id[one].name for one in (2, 3)]
    assert names == ["Mono 2", "3"]
    session.selection.select(2)
    game.tabs.setCurrentIndex(PLOTS)
    game.plots.tabs.setCurrentWidget(game.plots.dot_plot)
    genes = game.plots.dot_plot.genes
    genes.setFocus()
    type_into(genes, "a, b")
    QTest.keyClick(genes, Qt.Key.Key_Escape)
    assert session.selection.clusters == (2,)
    session.look.color_by = CLUSTER
    game.tabs.setCurrentIndex(MAP)
    number = game.clusters.slider.number
    number.setFocus()
    type_into(number, "2")
    labels = (np.arange(40) % 3).astype(np.int32)
    session.clusters.receive(labels, 4, session.merging)  # as a frame of a game does
    assert number.text() == "2"


def tab_goes_down_the_tab_and_passes_over_what_is_folded(game):
    game.method_fold.expand(False)
    found = stops(game)
    inside = game.method_fold.inside
    assert not any(inside.isAncestorOf(widget) for widget in found)
    first = [game.clusters.search, game.look.color_by, game.clusters.table]
    places = [found.index(widget) for widget in first]
    assert places == sorted(places)
    game.method_fold.expand()
    assert any(inside.isAncestorOf(widget) for widget in stops(game))
