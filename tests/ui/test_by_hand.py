"""The dock as a person opens and uses it: menus, real mouse, wheel and keys."""

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QWheelEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.ui import plugin
from napari_embedding_game.ui.compat import canvas_widget
from napari_embedding_game.ui.inspector.cluster_pane import MISPLACED
from napari_embedding_game.ui.workspace import open_workspace

LEFT = Qt.MouseButton.LeftButton


class Docks:
    """The dock of a window, and what a hand does with it."""

    def __init__(self, viewer, qtbot):
        self.viewer, self._qtbot = viewer, qtbot
        docks = viewer.window.dock_widgets.values()
        self.game = next(w for w in docks if isinstance(w, plugin.GameDock))
        self.inspector = self.game.inspector
        self.session = self.game.controller.session

    @property
    def canvas(self):
        return canvas_widget(self.game)

    def click(self, widget, place=None):
        QTest.mouseClick(widget, LEFT, pos=place or widget.rect().center())

    def click_run(self):
        self.click(self.game.run.run)
        self._qtbot.waitUntil(lambda: self.session.state == "finished")

    def choose(self, cluster):
        """Click the row of a cluster."""
        self.game.tabs.setCurrentIndex(0)
        table = self.game.clusters.table
        self._qtbot.waitUntil(lambda: bool(table.rows_of([cluster])))
        index = table.model().index(table.rows_of([cluster])[0], 0)
        table.scrollTo(index)
        self.click(table.viewport(), table.visualRect(index).center())
        self._qtbot.waitUntil(lambda: self.session.selection.clusters == (cluster,))

    def told_of(self, clusters):
        """Open the tab of the selection, and wait until these are told of."""
        self.game.tabs.setCurrentIndex(1)

        def is_told():
            report, selection = self.inspector.report, self.session.selection
            is_of_these = report is not None and report.size == len(selection.rows)
            return is_of_these and selection.clusters == clusters

        self._qtbot.waitUntil(is_told)

    def click_tab(self, name):
        self.game.tabs.setCurrentIndex(1)
        tabs = self.inspector.tabs
        names = [tabs.tabText(place) for place in range(tabs.count())]
        self.click(tabs.tabBar(), tabs.tabBar().tabRect(names.index(name)).center())
        assert tabs.tabText(tabs.currentIndex()) == name

    def turn_wheel(self, widget, clicks=-3):
        """Turn the wheel over the middle of a widget.

        Qt hands a wheel of the machine from each widget that leaves it to the one
        around it, and one that is sent by a program it does not: this does it.
        """
        place = widget.mapToGlobal(widget.rect().center())
        none = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
        phase = Qt.ScrollPhase.NoScrollPhase
        while widget is not None:
            here = QPointF(widget.mapFromGlobal(place))
            turn = QPoint(0, 120 * clicks)
            event = QWheelEvent(
                here, QPointF(place), QPoint(), turn, *none, phase, False
            )
            QApplication.sendEvent(widget, event)
            if event.isAccepted():
                return
            widget = widget.parentWidget()

    def focus(self, widget):
        widget.setFocus()
        self._qtbot.waitUntil(widget.hasFocus)

    def press(self, key, modifier=Qt.KeyboardModifier.NoModifier):
        """Press a key wherever the cursor is."""
        QTest.keyClick(QApplication.focusWidget(), key, modifier)

    def write(self, text):
        QTest.keyClicks(QApplication.focusWidget(), text)


@pytest.fixture
def docks(make_napari_viewer, session, engine, qtbot, from_menu):
    viewer = make_napari_viewer(show=True)
    open_workspace(viewer, session)
    from_menu(viewer.window.plugins_menu, "Embedding Game", "Map (Embedding Game)")
    viewer.window.resize(1400, 900)
    viewer.window.activate()
    docks = Docks(viewer, qtbot)
    qtbot.waitUntil(lambda: QApplication.activeWindow() is docks.game.window())
    docks.click_run()
    yield docks
    engine.gate.set()


@pytest.fixture
def named_genes():
    """40 rows with 60 columns, in three of which the first ten rows are high."""
    values = np.random.default_rng(0).random((40, 60)).astype(np.float32)
    values[:10, :3] += 4
    obs = pd.DataFrame(
        {"kind": pd.Categorical(["B", "T"] * 20), "size": np.linspace(1.5, 9, 40)},
        index=[f"cell{row}" for row in range(40)],
    )
    names = [f"gene{column}" for column in range(60)]
    return Dataset.from_rows(
        name="genes", X=values, obs=obs, var_names=names, space="X"
    )


def test_what_a_person_does_by_mouse_and_keys(docks, named_genes, qtbot):
    f2_and_ctrl_z_act_from_the_canvas_and_text_keeps_its_keys(docks, qtbot)
    napari_keeps_its_own_undo_of_a_painted_layer(docks)
    the_wheel_scrolls_the_dock_from_wherever_it_turns(docks, qtbot)
    a_number_is_typed_key_by_key_and_counts_at_its_end(docks)
    the_share_of_misplaced_points_is_shown(docks)
    markers_are_sorted_and_copied_as_a_table(docks, named_genes, qtbot)


def the_wheel_scrolls_the_dock_from_wherever_it_turns(docks, qtbot):
    game = docks.game
    docks.viewer.window.resize(1400, 620)
    QApplication.processEvents()
    for fold in (game.method_fold, game.look_fold):
        fold.expand()
    area = game.scroll
    bar = area.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    for over in (
        bar,
        area.viewport(),
        game.game.controls["method"].native,
        game.game.repulsion_slider.native,
        game.game.controls["n_neighbors"].native,
    ):
        settings = docks.session.settings.value
        bar.setValue(0)
        docks.focus(docks.canvas)
        docks.turn_wheel(over)
        assert bar.value() > 0, over
        assert docks.session.settings.value == settings
    docks.session.look.color_by = "counts"  # its legend has handles
    handles = game.look.legend.scale.slider
    limits = handles.value()
    bar.setValue(0)
    docks.turn_wheel(handles)
    assert bar.value() > 0
    assert handles.value() == limits


def a_number_is_typed_key_by_key_and_counts_at_its_end(docks):
    docks.game.method_fold.expand()
    game, settings = docks.game.game, docks.session.settings
    landmarks = game.controls["n_landmarks"].native
    for field, text, name in (
        (landmarks, "300", "n_landmarks"),
        (game.controls["n_neighbors"].native, "150", "n_neighbors"),
        (game.repulsion.native, "2700", "repulsion"),
    ):
        docks.focus(field)
        field.selectAll()
        before = getattr(settings, name)
        docks.write(text)
        assert field.lineEdit().text() == text
        assert getattr(settings, name) == before
        docks.press(Qt.Key.Key_Return)
        assert getattr(settings, name) == int(text)
    docks.focus(landmarks)
    landmarks.selectAll()
    docks.write("40")
    docks.click_run()  # without Enter, and the button need not take the cursor
    assert settings.n_landmarks == 40


def f2_and_ctrl_z_act_from_the_canvas_and_text_keeps_its_keys(docks, qtbot):
    session, control = docks.session, Qt.KeyboardModifier.ControlModifier
    points = docks.game.controller.scene.layers.points
    docks.viewer.layers.selection.active = points
    mode = points.mode
    docks.choose(2)
    docks.focus(docks.canvas)
    docks.press(Qt.Key.Key_F2)
    table = docks.game.clusters.table
    qtbot.waitUntil(lambda: table.isAncestorOf(QApplication.focusWidget()))
    docks.write("T 235")
    docks.press(Qt.Key.Key_Return)

    def is_named(name):
        return session.clusters.clustering.by_id[2].name == name

    qtbot.waitUntil(lambda: is_named("T 235"))
    assert points.mode == mode  # the digits went into the name, not to napari
    docks.focus(docks.canvas)
    docks.press(Qt.Key.Key_Z, control)
    assert not session.clusters.clustering.by_id[2].is_named
    docks.press(Qt.Key.Key_Z, control | Qt.KeyboardModifier.ShiftModifier)
    assert is_named("T 235")
    search = docks.game.clusters.search
    docks.focus(search)
    docks.write("ab")
    docks.press(Qt.Key.Key_Z, control)
    assert search.text() == ""
    assert is_named("T 235")


def napari_keeps_its_own_undo_of_a_painted_layer(docks):
    session = docks.session
    session.clusters.rename(1, "B cells")
    labels = docks.viewer.add_labels(np.zeros((20, 20), np.uint8))
    labels.fill((3, 3), 5)
    docks.focus(docks.canvas)
    docks.press(Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert labels.data.max() == 0
    assert session.clusters.clustering.by_id[1].name == "B cells"
    labels.mode = "paint"
    docks.press(Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)  # none is left
    assert not session.clusters.clustering.by_id[1].is_named
    session.clusters.rename(1, "B cells")
    docks.choose(1)  # in the dock the key is the dock's
    docks.press(Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert not session.clusters.clustering.by_id[1].is_named


def markers_are_sorted_and_copied_as_a_table(docks, named_genes, qtbot):
    docks.session.load(named_genes)
    docks.click_run()
    docks.choose(0)
    pane = docks.inspector.markers
    docks.click_tab("Markers")
    qtbot.waitUntil(lambda: pane.result is not None)
    view, header = pane.table, pane.table.horizontalHeader()
    model = view.model()

    def column(place):
        return [model.index(row, place).data() for row in range(20)]

    assert column(0) == list(pane.result.names[:20])

    def click_heading(column):
        place = header.sectionViewportPosition(column) + 5
        docks.click(header.viewport(), QPoint(place, header.height() // 2))

    click_heading(3)
    shares = [int(share[:-1]) for share in column(3)]
    assert shares == sorted(shares)
    click_heading(1)
    changes = list(map(float, column(1)))
    assert changes == sorted(changes)
    docks.click(view.viewport(), view.visualRect(model.index(0, 1)).center())
    assert docks.session.look.color_by == column(0)[0]
    docks.press(Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().split("\n")
    assert lines[0].split("\t")[1:] == ["log2 FC", "p adj.", "In", "Out"]
    assert [line.split("\t")[0] for line in lines[1:]] == column(0)
    docks.choose(1)
    docks.press(Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().split("\n")
    assert lines[0].startswith("Cluster\tPoints\t")
    assert len(lines) == 5


def the_share_of_misplaced_points_is_shown(docks):
    table, numbers = docks.game.clusters.table, docks.inspector.numbers
    assert "5.0% misplaced" in docks.game.trust.far.text()
    model = table.model()
    far = {model.index(row, MISPLACED).data() for row in range(model.rowCount())}
    assert far == {"10%", "0%"}
    table.sortByColumn(MISPLACED, Qt.SortOrder.DescendingOrder)
    assert model.index(0, MISPLACED).data() == "10%"
    docks.choose(0)
    docks.told_of((0,))
    assert "10% misplaced" in numbers.text()
    across, tip = Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole
    assert "lie far from similar points" in model.headerData(MISPLACED, across, tip)
