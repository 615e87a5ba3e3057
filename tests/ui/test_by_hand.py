"""The dock as a person opens and uses it: menus, real mouse, wheel and keys."""

import numpy as np
import pytest
from qtpy import QtWidgets as W
from qtpy.QtCore import QLocale, QPoint, QPointF, Qt
from qtpy.QtGui import QWheelEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

import worlds
from napari_embedding_game.ui.compat import find_canvas_widget
from napari_embedding_game.ui.game_dock import MAP, PLOTS, SELECTION
from napari_embedding_game.ui.inspector.cluster_pane import MISPLACED, SIZE
from napari_embedding_game.ui.style.coloring import CLUSTER
from napari_embedding_game.ui.style.form_widgets import FoldingSection
from napari_embedding_game.ui.workspace import make_workspace

BY_TAB = Qt.FocusPolicy.TabFocus
EXPLAINED = (W.QSpinBox, W.QDoubleSpinBox, W.QComboBox, W.QPushButton, W.QSlider)
HAVE_TEXTS = (W.QPushButton, W.QTabBar, W.QTabWidget, W.QListView)
LEFT, CONTROL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier


def choose(person, cluster):
    """Click the row of a cluster."""
    person.dock.tabs.setCurrentIndex(MAP)
    table = person.dock.cluster_pane.table
    person.wait(lambda: bool(table.find_rows_with_keys([cluster])), "the row")
    index = table.model().index(table.find_rows_with_keys([cluster])[0], 0)
    table.scrollTo(index)
    QTest.mouseClick(table.viewport(), LEFT, pos=table.visualRect(index).center())
    person.wait(lambda: person.session.selection.clusters == (cluster,), "the click")


def turn_wheel(widget, clicks=-3):
    """Turn the wheel over the middle of a widget.

    Qt hands a wheel of the machine from each widget that leaves it to the one
    around it, and one that is sent by a program it does not: this does it.
    """
    place = widget.mapToGlobal(widget.rect().center())
    none = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    phase, turn = Qt.ScrollPhase.NoScrollPhase, QPoint(0, 120 * clicks)
    while widget is not None:
        at = QPointF(widget.mapFromGlobal(place)), QPointF(place)
        event = QWheelEvent(*at, QPoint(), turn, *none, phase, False)
        QApplication.sendEvent(widget, event)
        if event.isAccepted():
            return
        widget = widget.parentWidget()


def focus(person, widget):
    widget.setFocus()
    person.wait(widget.hasFocus, "the cursor")


def press(key, modifier=Qt.KeyboardModifier.NoModifier):
    """Press a key wherever the cursor is."""
    QTest.keyClick(QApplication.focusWidget(), key, modifier)


def write(text):
    QTest.keyClicks(QApplication.focusWidget(), text)


@pytest.fixture
def person(make_napari_viewer, session, engine, person_at_the_window):
    viewer = make_napari_viewer(show=True)
    make_workspace(viewer, session)
    viewer.window.resize(1400, 900)
    person = person_at_the_window.Person(viewer)
    viewer.window.activate()
    window = person.dock.window()
    person.wait(lambda: QApplication.activeWindow() is window, "the window")
    person.run()
    yield person
    engine.gate.set()


@pytest.fixture
def named_genes(dataset):
    """40 rows with 60 columns, in three of which the first ten rows are high."""
    values = np.random.default_rng(0).random((40, 60)).astype(np.float32)
    values[:10, :3] += 4
    return worlds.rows(values, obs=dataset.obs)


def test_what_a_person_does_by_mouse_and_keys(person, named_genes, qtbot):
    dock, session = person.dock, person.session
    tab_goes_down_the_tab_and_passes_over_what_is_folded(person)
    ctrl_f_leads_from_the_canvas_to_the_search_and_escape_back(dock, session, qtbot)
    f2_and_ctrl_z_act_from_the_canvas_and_text_keeps_its_keys(person, qtbot)
    napari_keeps_its_own_undo_of_a_painted_layer(person)
    the_wheel_scrolls_the_dock_from_wherever_it_turns(person, qtbot)
    a_number_is_typed_key_by_key_and_counts_at_its_end(person)
    the_share_of_misplaced_points_is_shown(person)
    f2_names_a_cluster_in_any_colours_and_escape_leaves_what_is_typed(
        dock, session, qtbot
    )
    markers_are_sorted_and_copied_as_a_table(person, named_genes, qtbot)


def the_wheel_scrolls_the_dock_from_wherever_it_turns(person, qtbot):
    game = person.dock
    person.viewer.window.resize(1400, 620)
    QApplication.processEvents()
    for fold in (game.method_fold, game.look_fold):
        fold.set_expanded(True)
    area = game.scroll
    bar = area.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    for over in (
        bar,
        area.viewport(),
        game.method_controls.controls["method"].native,
        game.method_controls.repulsion_slider.native,
        game.method_controls.controls["large_picture"].native,
        game.method_controls.controls["n_neighbors"].native,
    ):
        settings = person.session.settings.value
        bar.setValue(0)
        focus(person, person.canvas)
        turn_wheel(over)
        assert bar.value() > 0, over
        assert person.session.settings.value == settings
    person.session.look.color_by = "counts"  # its legend has handles
    handles = game.display_controls.legend.color_scale.slider
    limits = handles.value()
    bar.setValue(0)
    turn_wheel(handles)
    assert bar.value() > 0
    assert handles.value() == limits


def a_number_is_typed_key_by_key_and_counts_at_its_end(person):
    person.dock.method_fold.set_expanded(True)
    game, settings = person.dock.method_controls, person.session.settings
    landmarks = game.controls["n_landmarks"].native
    for field, text, name in (
        (landmarks, "300", "n_landmarks"),
        (game.controls["n_neighbors"].native, "150", "n_neighbors"),
        (game.repulsion.native, "2700", "repulsion"),
    ):
        focus(person, field)
        field.selectAll()
        before = getattr(settings, name)
        write(text)
        assert field.lineEdit().text() == text
        assert getattr(settings, name) == before
        press(Qt.Key.Key_Return)
        assert getattr(settings, name) == int(text)
    game.more.set_expanded(True)
    rate = game.controls["learning_rate"].native
    rate.setLocale(QLocale("de_DE"))  # where Qt takes a point for one of thousands
    focus(person, rate)
    rate.selectAll()
    write("0.5")
    press(Qt.Key.Key_Return)
    assert settings.learning_rate == 0.5
    focus(person, landmarks)
    landmarks.selectAll()
    write("40")
    person.run()  # without Enter, and the button need not take the cursor
    assert settings.n_landmarks == 40
    slider = game.controls["large_picture"].native.findChild(W.QSlider)
    focus(person, slider)
    press(Qt.Key.Key_Right)
    assert settings.large_picture == 0.5
    press(Qt.Key.Key_Left)
    assert settings.large_picture == 0


def f2_and_ctrl_z_act_from_the_canvas_and_text_keeps_its_keys(person, qtbot):
    session = person.session
    points = person.dock.controller.scene.map_layers.points
    person.viewer.layers.selection.active = points
    mode = points.mode
    choose(person, 2)
    focus(person, person.canvas)
    press(Qt.Key.Key_F2)
    table = person.dock.cluster_pane.table
    qtbot.waitUntil(lambda: table.isAncestorOf(QApplication.focusWidget()))
    write("T 235")
    press(Qt.Key.Key_Return)

    def is_named(name):
        return session.clusters.clustering.by_id[2].name == name

    qtbot.waitUntil(lambda: is_named("T 235"))
    assert points.mode == mode  # the digits went into the name, not to napari
    focus(person, person.canvas)
    press(Qt.Key.Key_Z, CONTROL)
    assert not session.clusters.clustering.by_id[2].is_named
    press(Qt.Key.Key_Z, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    assert is_named("T 235")
    search = person.dock.cluster_pane.search
    focus(person, search)
    write("ab")
    press(Qt.Key.Key_Z, CONTROL)
    assert search.text() == ""
    assert is_named("T 235")


def napari_keeps_its_own_undo_of_a_painted_layer(person):
    session = person.session
    session.clusters.rename(1, "B cells")
    labels = person.viewer.add_labels(np.zeros((20, 20), np.uint8))
    labels.fill((3, 3), 5)
    focus(person, person.canvas)
    press(Qt.Key.Key_Z, CONTROL)
    assert labels.data.max() == 0
    assert session.clusters.clustering.by_id[1].name == "B cells"
    for mode in ("pan_zoom", "paint"):
        session.clusters.rename(1, "B cells")
        labels.mode = mode
        press(Qt.Key.Key_Z, CONTROL)  # nothing that was painted is left
        assert session.clusters.clustering.by_id[1].name == "B cells"
    choose(person, 1)  # in the dock the keys are the dock's
    press(Qt.Key.Key_Z, CONTROL)
    assert not session.clusters.clustering.by_id[1].is_named
    press(Qt.Key.Key_Z, CONTROL | Qt.KeyboardModifier.ShiftModifier)
    assert session.clusters.clustering.by_id[1].name == "B cells"


def markers_are_sorted_and_copied_as_a_table(person, named_genes, qtbot):
    person.session.load(named_genes)
    person.run()
    choose(person, 0)
    pane = person.inspector.markers
    person.open_tab("Markers")
    qtbot.waitUntil(lambda: pane.result is not None)
    view, header = pane.table, pane.table.horizontalHeader()
    assert view.horizontalHeaderItem(1).text() == "log2\nFC"  # room for names

    def column(place):
        return worlds.column(view, place)[:20]

    assert column(0) == list(pane.result.names[:20])

    def click_heading(column):
        place = header.sectionViewportPosition(column) + 5
        at = QPoint(place, header.height() // 2)
        QTest.mouseClick(header.viewport(), LEFT, pos=at)

    click_heading(3)
    shares = [int(share[:-1]) for share in column(3)]
    assert shares == sorted(shares)
    click_heading(1)
    changes = list(map(float, column(1)))
    assert changes == sorted(changes)
    headings = [view.horizontalHeaderItem(place).text() for place in (1, 3)]
    assert headings == ["log2\nFC\u2009▲", "In"]
    at = view.visualItemRect(view.item(0, 1)).center()
    QTest.mouseClick(view.viewport(), LEFT, pos=at)
    assert person.session.look.color_by == column(0)[0]
    press(Qt.Key.Key_C, CONTROL)
    lines = QApplication.clipboard().text().split("\n")
    assert lines[0].split("\t")[1:] == ["log2 FC", "p adj.", "In", "Out"]
    assert [line.split("\t")[0] for line in lines[1:]] == column(0)
    choose(person, 1)
    press(Qt.Key.Key_C, CONTROL)
    lines = QApplication.clipboard().text().split("\n")
    assert lines[0].startswith("Cluster\tPoints\t")
    assert len(lines) == 5


def the_share_of_misplaced_points_is_shown(person):
    table, numbers = person.dock.cluster_pane.table, person.inspector.numbers
    assert "5.0% misplaced" in person.dock.trust_controls.summary.text()
    assert not person.dock.trust_controls.summary.isHidden()
    model = table.model()
    far = {model.index(row, MISPLACED).data() for row in range(model.rowCount())}
    assert far == {"10%", "0%"}
    table.sortByColumn(MISPLACED, Qt.SortOrder.DescendingOrder)
    assert model.index(0, MISPLACED).data() == "10%"
    choose(person, 0)
    person.look_inside()
    assert "10% misplaced" in numbers.text()
    across, tip = Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole
    assert "lie far from similar points" in model.headerData(MISPLACED, across, tip)


def stops(root):
    """Return what the Tab key leads to in a dock, in its order."""
    found, widget = [], root.nextInFocusChain()
    while widget is not root:
        by_tab = widget.focusPolicy() & BY_TAB and not widget.focusProxy()
        if root.isAncestorOf(widget) and widget.isVisible() and widget.isEnabled():
            found += [widget] if by_tab else []
        widget = widget.nextInFocusChain()
    return found


def ctrl_f_leads_from_the_canvas_to_the_search_and_escape_back(game, session, qtbot):
    canvas, search = find_canvas_widget(game), game.cluster_pane.search
    canvas.setFocus()
    qtbot.waitUntil(canvas.hasFocus)
    QTest.keyClick(canvas, Qt.Key.Key_F, CONTROL)
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
    game.cluster_pane.table.rows_picked.emit([2, 9], False)  # 9 was listed, and is gone
    assert session.selection.clusters == (2,)
    table = game.cluster_pane.table
    table.setFocus()
    cell = table.visualItemRect(table.item(0, SIZE)).center()
    QTest.mouseDClick(table.viewport(), LEFT, pos=cell)  # KDE: a click does as much
    assert game.tabs.currentIndex() == MAP
    QTest.keyClick(table, Qt.Key.Key_Return)
    assert game.tabs.currentIndex() == SELECTION
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert session.selection.is_empty
    QTest.keyClick(table, Qt.Key.Key_Return)  # of nothing
    assert table.hasFocus()
    QTest.keyClick(table, Qt.Key.Key_Slash)
    assert search.hasFocus()


def f2_names_a_cluster_in_any_colours_and_escape_leaves_what_is_typed(
    game, session, qtbot
):
    def type_into(field, text):
        qtbot.waitUntil(field.hasFocus)
        field.selectAll()
        QTest.keyClicks(field, text)

    session.selection.select_cluster(3)
    session.look.color_by = "counts"  # no list of clusters then
    game.cluster_pane.edits.rename.trigger()
    title = game.selection_tab.title
    for key, name in (("Escape", "3"), ("Return", "Mono")):
        type_into(title, "Mono")
        QTest.keyClick(title, getattr(Qt.Key, f"Key_{key}"))
        assert game.isAncestorOf(QApplication.focusWidget())  # so for Ctrl+Z
        assert session.selection.clusters == (3,)
        assert session.clusters.clustering.by_id[3].name == name
        assert title.text().endswith(name)
        game.selection_tab.edit_name()
    type_into(title, "Mono 2")
    session.selection.select_cluster(0)  # by a script: the cursor stays
    QTest.keyClick(title, Qt.Key.Key_Return)
    names = [session.clusters.clustering.by_id[one].name for one in (3, 0)]
    assert names == ["Mono 2", "0"]
    game.selection_tab.edit_name()
    session.selection.select_cluster(3)
    game.selection_tab.edit_name()  # of what is selected by now
    assert title.text().endswith("Mono 2")
    QTest.keyClick(title, Qt.Key.Key_Escape)
    session.selection.select_cluster(3)
    game.tabs.setCurrentIndex(PLOTS)
    game.plots_tab.tabs.setCurrentWidget(game.plots_tab.expression)
    genes = game.plots_tab.expression.genes
    genes.setFocus()
    type_into(genes, "a, b")
    QTest.keyClick(genes, Qt.Key.Key_Escape)
    assert session.selection.clusters == (3,)
    session.look.color_by = CLUSTER
    game.tabs.setCurrentIndex(MAP)
    number = game.cluster_pane.slider.number
    number.setFocus()
    type_into(number, "2")
    labels = (np.arange(40) % 3).astype(np.int32)
    session.clusters.update_from_game(
        labels, 4, session.merging
    )  # as a frame of a game does
    assert number.text() == "2"


def tab_goes_down_the_tab_and_passes_over_what_is_folded(person):
    game = person.dock
    game.method_fold.set_expanded(False)
    inside = game.method_fold.content
    assert not any(inside.isAncestorOf(widget) for widget in stops(game))
    for tab in (PLOTS, SELECTION, MAP):
        game.workspace.session.selection.select_cluster(0)
        game.tabs.setCurrentIndex(tab)
        page = game.tabs.currentWidget()
        found = [widget for widget in stops(game) if page.isAncestorOf(widget)]
        places = [widget.mapTo(game, widget.rect().center()).y() for widget in found]
        assert (np.diff(places) > -9).all(), found  # beside another, some pixels
    game.method_controls.more.set_expanded(True)
    for widget in game.findChildren(W.QWidget):
        if widget.focusPolicy() & BY_TAB and type(widget) not in HAVE_TEXTS:
            assert widget.accessibleName() or getattr(widget, "text", str)(), widget
        if type(widget) in EXPLAINED and widget.isVisibleTo(game):
            tip = widget.toolTip() or widget.parentWidget().toolTip()
            assert tip or isinstance(widget.parentWidget(), FoldingSection), widget
    focus(person, game.run_controls.run_button)
    press(Qt.Key.Key_Space)  # it hides
    assert game.isAncestorOf(QApplication.focusWidget())
    person.wait(lambda: person.session.state == "finished", "the end")
    game.tabs.tabBar().hide()  # as before there is a map
    find_canvas_widget(game).setFocus()
    reached = (press(Qt.Key.Key_Tab) or QApplication.focusWidget() for _ in range(40))
    assert any(map(game.isAncestorOf, reached))
    game.tabs.tabBar().show()
    game.method_fold.set_expanded(True)
    assert any(inside.isAncestorOf(widget) for widget in stops(game))
