"""What can be done without the mouse, in a window with both docks."""

import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_embedding_game.ui.compat import canvas_widget
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.inspector_dock import InspectorDock


@pytest.fixture
def docks(make_napari_viewer, workspace, qtbot, click_run):
    viewer = make_napari_viewer(show=True)
    game = GameDock(viewer, workspace, warm_up=False)
    inspector = InspectorDock(viewer, workspace)
    viewer.window.add_dock_widget(game, name="game", area="right")
    viewer.window.add_dock_widget(inspector, name="inspector", area="bottom")
    click_run(game)
    game.window().activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is game.window())
    yield game, inspector
    inspector.close()
    game.controller.session_store.close()


def stops(root):
    """Return what the Tab key leads to in a dock, in its order."""
    found, widget = [], root.nextInFocusChain()
    while widget is not root:
        by_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if root.isAncestorOf(widget) and widget.isVisible() and widget.isEnabled():
            found += [widget] if by_tab else []
        widget = widget.nextInFocusChain()
    return found


def test_ctrl_f_leads_from_the_canvas_to_the_search_and_escape_back(
    docks, session, qtbot
):
    game, inspector = docks
    canvas, search = canvas_widget(game), inspector.clusters.search
    canvas.setFocus()
    qtbot.waitUntil(canvas.hasFocus)
    QTest.keyClick(canvas, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert search.hasFocus()
    QTest.keyClicks(search, "2")
    QTest.keyClick(search, Qt.Key.Key_Return)
    assert session.selection.clusters == (2,)
    QTest.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == ""
    assert session.selection.clusters == (2,)
    focused = QApplication.focusWidget()
    assert inspector.isAncestorOf(focused)
    QTest.keyClick(focused, Qt.Key.Key_Escape)
    assert session.selection.is_empty


def test_tab_goes_down_the_dock_and_passes_over_what_is_folded(docks):
    game, _ = docks
    found = stops(game)
    inside = game.game.more.content()
    assert not any(inside.isAncestorOf(widget) for widget in found)
    parts = (game.data, game.game, game.run, game.select, game.look)
    order = [
        next(i for i, part in enumerate(parts) if part.isAncestorOf(widget))
        for widget in found
        if any(part.isAncestorOf(widget) for part in parts)
    ]
    assert order == sorted(order)
    assert set(order) == set(range(5))
    game.game.more.expand(animate=False)
    assert any(inside.isAncestorOf(widget) for widget in stops(game))


def test_tab_goes_through_the_inspector_from_left_to_right(docks, session):
    _, inspector = docks
    session.selection.select(0)
    clusters = inspector.clusters
    found = stops(inspector)
    first = [clusters.search, clusters.slider.slider, clusters.slider.number]
    places = [found.index(widget) for widget in [*first, clusters.table]]
    assert places == sorted(places)
    lefts = [w.mapTo(inspector, QPoint(0, 0)).x() for w in found]
    middle = clusters.mapTo(inspector, QPoint(clusters.width(), 0)).x()
    sides = [left >= middle for left in lefts]
    assert sides == sorted(sides)
