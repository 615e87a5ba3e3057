"""Somebody at the window: uses its menus, its mouse and its keys, and nothing else.

Whatever is done is looked for, and done again where it had no effect, as people do: a
busy machine loses clicks.  Nothing rests by the clock but films and pictures.

The tutorials of ``docs/`` are gone through with this, once for their pictures
(``tools/tutorial_pictures.py``) and once as tests.  The state of the session is read,
to know when to go on and where to click; whatever is *done* is done by a menu of
napari, a click or a key.  Only the system's own windows for files are answered by
hand, as no test reaches into them.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from qtpy.QtCore import QEvent, QMimeData, QObject, QPoint, QPointF, Qt, QTimer, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent, QWheelEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QScrollArea,
    QTableView,
    QTabWidget,
    QToolButton,
    QToolTip,
    QWidget,
)

from napari_embedding_game.ui.game_dock import SELECTION
from napari_embedding_game.ui.style.form_widgets import FoldingSection

SECONDS = 120.0
"""Longest wait for anything."""
PATIENCE = 0.5
"""Seconds after which somebody who sees no effect does it again."""
PLUGIN = "Embedding Game"
"""Submenu of napari's menus."""
GAME, TEACH, PLATE = (f"{name} ({PLUGIN})" for name in ("Map", "Teach", "Plate"))
WHEEL_STEP = 120
"""Of a mouse wheel, in eighths of a degree."""
LEFT = Qt.MouseButton.LeftButton


def entries(menu: QMenu, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield the texts that lead to each action of a menu, and the action."""
    menu.aboutToShow.emit()  # napari fills it when it is opened
    for action in menu.actions():
        if action.menu() is not None:
            yield from entries(action.menu(), (*path, action.text()))
        elif not action.isSeparator():
            yield (*path, action.text()), action


def trigger(menu: QMenu, *texts: str) -> None:
    """Trigger the entry of a menu to which these texts lead.

    Raises
    ------
    LookupError
        There is none, or it is not offered now; names those that are.
    """
    there = dict(entries(menu))
    action = there.get(texts)
    if action is None or not action.isEnabled():
        raise LookupError(f"no {texts} among {sorted(there)}")
    action.trigger()


def until(done: Callable[[], Any], seconds: float = SECONDS) -> bool:
    """Let the window work until something is so; return whether it is."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= end:
            return False
        QApplication.processEvents()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        time.sleep(0.005)
    return True


def settle() -> None:
    """Let the window do all that is due now."""
    due: list[bool] = []
    QTimer.singleShot(0, lambda: due.append(True))
    until(lambda: due)


def repeat(act: Callable[[], Any], done: Callable[[], Any], what: str) -> None:
    """Do something until its effect is there; nothing if it is there already.

    Raises
    ------
    TimeoutError
        It never came; names `what`.
    """
    end = time.monotonic() + SECONDS
    while not done():
        if time.monotonic() >= end:
            raise TimeoutError(f"did in vain: {what}")
        act()
        until(done, PATIENCE)


def press(button: QAbstractButton) -> None:
    """Click on a button until it takes the click."""
    words = button.text()
    with _heard(button.clicked) as taken:
        repeat(lambda: QTest.mouseClick(button, LEFT), lambda: taken, words)


def pick(combo: QComboBox, choice: str) -> None:
    """Click on a box, and on one of the choices that it shows."""

    def click() -> None:
        view = combo.view()
        if not view.isVisible():
            QTest.mouseClick(combo, LEFT)
            until(view.isVisible, PATIENCE)
        item = view.model().index(combo.findText(choice), 0)
        view.scrollTo(item)
        # Too soon, Qt takes it for the second half of the click that opened the box.
        QTest.mouseClick(view.viewport(), LEFT, pos=view.visualRect(item).center())

    repeat(click, lambda: combo.currentText() == choice, f"the choice of {choice}")


class Person:
    """Works in a shown napari window with both docks.

    Parameters
    ----------
    viewer : napari.Viewer
    """

    def __init__(self, viewer: Any) -> None:
        self.viewer = viewer
        self.canvas = viewer.window._qt_viewer.canvas.native
        trigger(viewer.window.plugins_menu, PLUGIN, GAME)
        self.dock = viewer.window.dock_widgets[GAME]
        self.inspector = self.dock.selection_tab
        self.session = self.dock.controller.session
        self.n_clicks = 2
        """Clicks, menu entries and typed words up to now."""
        self.wait(lambda: self.dock.isVisible(), "the dock")
        settle()

    def _count(self, n_clicks: int = 1) -> None:
        self.n_clicks += n_clicks

    # Waiting

    def wait(self, done: Callable[[], Any], what: str) -> None:
        """Wait until something is so.

        Raises
        ------
        TimeoutError
            It took too long; names `what`, and what the window complains about.
        """
        if not until(done):
            trouble = self.dock.data_controls.trouble.text()
            raise TimeoutError(f"waited in vain for {what}: {trouble}")

    def rest(self, seconds: float) -> None:
        """Let time pass, as films and pictures need it; no test does."""
        until(lambda: False, seconds)

    # Data and run

    def open(self, path: Path) -> None:
        """Choose Open > File… and the file."""
        with self.loading(), _answered("getOpenFileName", path):
            self.choose_from(self.dock.data_controls.start_panel.open_button, "File…")

    def open_images(self, folder: Path) -> None:
        """Choose Open > Folder… and the folder."""
        with self.loading(), _answered("getExistingDirectory", folder):
            self.choose_from(self.dock.data_controls.start_panel.open_button, "Folder…")

    def open_sample(self, words: str) -> None:
        """Choose a sample from napari's File menu by its name there."""
        with self.loading():
            trigger(self.viewer.window.file_menu, "Open Sample", PLUGIN, words)

    def drop(self, path: Path) -> Any:
        """Drag a file onto the window, and return the layer that it becomes."""
        before = set(self.viewer.layers)
        drop_files(self.viewer, path)
        self.wait(lambda: set(self.viewer.layers) - before, "the layer")
        (layer,) = set(self.viewer.layers) - before
        return layer

    def convert_to_labels(self, layer: Any) -> Any:
        """Right-click a layer, choose Convert to Labels; return what it becomes."""
        place = self.viewer.layers.index(layer)
        view = self.viewer.window._qt_viewer.layers
        row = view.model().index(len(self.viewer.layers) - 1 - place, 0)
        middle = view.visualRect(row).center()
        repeat(
            lambda: QTest.mouseClick(view.viewport(), LEFT, pos=middle),
            lambda: set(self.viewer.layers.selection) == {layer},
            "the choice of a layer",
        )

        def choose() -> None:
            menu = QApplication.activePopupWidget()
            if isinstance(menu, QMenu):
                there = {path[-1]: action for path, action in entries(menu)}
                there["Convert to Labels"].trigger()
                menu.close()

        looks = QTimer()  # the menu has an event loop of its own
        looks.timeout.connect(choose)
        looks.start(20)
        right = Qt.MouseButton.RightButton
        repeat(
            lambda: QTest.mouseClick(view.viewport(), right, pos=middle),
            lambda: layer not in self.viewer.layers,
            "the menu of a layer",
        )
        looks.stop()
        return self.viewer.layers[place]

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Wait until what is begun inside has been loaded."""
        with _heard(self.dock.controller.reading.loaded) as loaded:
            yield
            self.wait(lambda: loaded, "the data")
        settle()

    def run(self) -> None:
        """Press Run, and watch to the end."""
        self.press(self.dock.run_controls.run_button)
        self.wait(lambda: self.session.state == "finished", "the end of the run")
        settle()

    def save(self, path: Path) -> None:
        """Choose Save and the format, and the name of the file."""
        with _heard(self.dock.controller.writing.saved) as saved:
            with _answered("getSaveFileName", path):
                self.choose_from(self.dock.run_controls.save_button, path.suffix)
            self.wait(lambda: saved, "the file")

    # Mouse and keys

    def press(self, button: QAbstractButton) -> None:
        """Open the tab of a button, scroll to it, and click on it."""
        self.show(button)
        self.wait(lambda: button.isVisible() and button.isEnabled(), button.text())
        self._count()
        press(button)

    def show(self, widget: QWidget) -> None:
        """Open the tab of a widget and what it is folded in, and scroll to it."""
        tabs = self.dock.tabs
        for place in range(tabs.count()):
            if tabs.widget(place).isAncestorOf(widget):
                self._click_tab(tabs, place)
        for fold in self.dock.findChildren(FoldingSection):
            button = fold.button
            is_in = fold.content.isAncestorOf(widget)
            if is_in and not fold.is_expanded and button.isVisible():
                self.unfold(fold)
        for area in self.dock.findChildren(QScrollArea):
            if area.isAncestorOf(widget):
                self._turn_until_seen(area, widget)

    def choose_from(self, button: QWidget, words: str) -> None:
        """Click on a button that opens a menu, and on an entry of the menu."""
        self.show(button)
        self.wait(lambda: button.isVisible() and button.isEnabled(), words)
        self._count(2)
        menu = button.menu()
        action = next(action for action in menu.actions() if words in action.text())

        def act() -> None:
            if not menu.isVisible():
                QTest.mouseClick(button, LEFT)
                until(menu.isVisible, PATIENCE)
            QTest.mouseClick(menu, LEFT, pos=menu.actionGeometry(action).center())

        with _heard(action.triggered) as taken:
            repeat(act, lambda: taken, words)

    def click(
        self,
        place: Callable[[], np.ndarray],
        done: Callable[[], Any],
        key: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
    ) -> None:
        """Click where a place of the world, (row, column), is drawn."""

        def act() -> None:
            pixel = self._pixel(place())
            QTest.mouseMove(self.canvas, pixel)
            QTest.mouseClick(self.canvas, LEFT, key, pos=pixel)

        self._count()
        repeat(act, done, "a click on the canvas")

    def point_at(self, row: int) -> None:
        """Move the mouse to a point of the map."""
        QTest.mouseMove(self.canvas, self._pixel(self._world(row)))
        settle()

    def click_point(self, row: int) -> None:
        """Click on a point of the map."""
        chosen = self.session.selection
        self.click(lambda: self._world(row), lambda: row in chosen.rows)

    def double_click_point(self, row: int) -> None:
        """Double-click on a point of the map, which selects its track."""
        chosen = self.session.selection

        def act() -> None:
            pixel = self._pixel(self._world(row))
            QTest.mouseMove(self.canvas, pixel)
            QTest.mouseDClick(self.canvas, LEFT, pos=pixel)

        self._count(2)
        repeat(act, lambda: len(chosen.rows) > 1, "a double click on the canvas")

    def click_object(self, row: int, done: Callable[[], Any] | None = None) -> None:
        """Click on an object in the image, which selects it or does something else."""
        labels = self.dock.controller.workspace.linked_layers.current.labels
        objects, chosen = self.session.dataset.objects, self.session.selection
        box = objects.make_box_slices(row)
        inside = np.argwhere(labels.data[box] == objects.label_ids[row])
        middle = inside[((inside - inside.mean(axis=0)) ** 2).sum(axis=1).argmin()]
        corner = [side.start for side in box]
        self.click(
            lambda: np.asarray(labels.data_to_world(corner + middle))[-2:],
            done or (lambda: chosen.rows.tolist() == [row]),
        )

    def choose(self, cluster: int) -> None:
        """Click on a cluster's most central point, and wait for the inspector."""
        chosen = self.session.selection
        self.click(
            lambda: self._world(self._middle_of(cluster)),
            lambda: chosen.clusters == (cluster,),
        )
        self.look_inside()

    def choose_too(self, cluster: int) -> None:
        """Ctrl-click on another cluster."""
        chosen = self.session.selection
        self.click(
            lambda: self._world(self._middle_of(cluster)),
            lambda: cluster in chosen.clusters,
            Qt.KeyboardModifier.ControlModifier,
        )
        self.look_inside()

    def _world(self, row: int) -> np.ndarray:
        points = self.dock.controller.scene.map_layers.points
        return np.asarray(points.data_to_world(points.data[row]))[-2:]

    def _middle_of(self, cluster: int) -> int:
        """Return a cluster's most central point."""
        members = np.flatnonzero(self.session.clusters.labels == cluster)
        places = self.session.snapshot.embedding[members]
        distance = ((places - np.median(places, axis=0)) ** 2).sum(axis=1)
        return int(members[distance.argmin()])

    def look_inside(self) -> None:
        """Look at the selection, and wait until it is told of."""
        self.dock.tabs.setCurrentIndex(SELECTION)

        def is_told() -> bool:
            report, rows = self.inspector.report, self.session.selection.rows
            return report is not None and report.size == len(rows)

        self.wait(is_told, "the inspector")

    def open_tab(self, name: str) -> None:
        """Open a tab of the dock, or one inside its tabs, by its name."""
        for tabs in (self.dock.tabs, self.inspector.tabs, self.dock.plots_tab.tabs):
            if tabs is not self.dock.tabs:
                self.show(tabs)  # one that is closed may not know its tabs
            for place in range(tabs.count()):
                if tabs.tabText(place) == name:
                    self._count()
                    self._click_tab(tabs, place)
                    return
        raise LookupError(f"no tab {name}")

    @staticmethod
    def _click_tab(tabs: QTabWidget, place: int) -> None:
        bar = tabs.tabBar()
        repeat(
            lambda: QTest.mouseClick(bar, LEFT, pos=bar.tabRect(place).center()),
            lambda: tabs.currentIndex() == place,
            tabs.tabText(place),
        )

    def open_widget(self, title: str) -> Any:
        """Return a widget of the Plugins menu, opened there if it is not yet."""
        widgets = self.viewer.window.dock_widgets
        if title not in widgets:
            self._count(2)
            trigger(self.viewer.window.plugins_menu, PLUGIN, title)
            self.wait(lambda: widgets[title].isVisible(), title)
        return widgets[title]

    def markers(self) -> list[str]:
        """Open the markers and read their names."""
        self.open_tab("Markers")
        pane = self.inspector.markers
        is_busy = "Comparing"
        self.wait(
            lambda: pane.result and is_busy not in pane.state.text(), "the markers"
        )
        return _first_column(pane.table)

    def click_marker(self, row: int) -> None:
        """Click on a gene of the table of markers."""
        table = self.inspector.markers.table
        cell = table.model().index(row, 0)
        gene, place = cell.data(), table.visualRect(cell).center()
        self._count()
        repeat(
            lambda: QTest.mouseClick(table.viewport(), LEFT, pos=place),
            lambda: self.session.look.color_by == gene,
            gene,
        )

    def sort(self, name: str, n: int) -> None:
        """Make the first pictures of the selection examples of a new class."""
        self.open_tab("Pictures")
        grid, chosen = self.inspector.thumbnails, self.session.selection
        rows = grid.rows[:n]
        none, shift = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
        for place, key in ((0, none), (n - 1, shift)):
            grid.executeDelayedItemsLayout()
            at = grid.visualRect(grid.model().index(place, 0)).center()
            self._count()
            repeat(
                lambda at=at, key=key: QTest.mouseClick(grid.viewport(), LEFT, key, at),
                lambda place=place: set(chosen.rows) == set(rows[: place + 1]),
                "the pictures",
            )
        teach = self.open_widget(TEACH)
        self._count(2)
        press(teach.new_button)

        def act() -> None:
            editors = teach.class_table.findChildren(QLineEdit)
            if editors:
                _type(editors[-1], name)

        repeat(act, lambda: name in _first_column(teach.class_table), name)

    def learn(self) -> None:
        """Learn from the examples."""
        self.press(self.open_widget(TEACH).learn_button)
        self.wait(lambda: self.session.look.color_by == "taught", "the classes")

    def press_escape(self) -> None:
        """Select nothing."""
        self._count()
        repeat(
            lambda: QTest.keyClick(self.dock, Qt.Key.Key_Escape),
            lambda: self.session.selection.is_empty,
            "Escape",
        )

    def look_away(self) -> None:
        """Take the mouse off the map, so that no card is in the way."""
        QTest.mouseMove(self.canvas, QPoint(3, 3))
        QApplication.sendEvent(self.canvas, QEvent(QEvent.Type.Leave))
        self.wait(lambda: not QToolTip.isVisible(), "a free map")

    def color_by(self, choice: str) -> None:
        """Choose what the colours mean."""
        self.choose_in(self.dock.display_controls.color_by, choice)

    def split_by(self, choice: str) -> None:
        """Choose the column whose groups lie side by side."""
        self.choose_in(self.dock.display_controls.split_by, choice)

    def choose_in(self, combo: QComboBox, choice: str) -> None:
        """Choose one of the choices of a box of the docks."""
        self.show(combo)
        self._count(2)
        pick(combo, choice)
        settle()

    def unfold(self, fold: Any) -> None:
        """Click on the title of a part of the dock that is folded."""
        self.press(fold.button)

    def mix_samples(self, column: str) -> None:
        """Choose a column whose batches are mixed, and watch the new map to its end."""
        with self.loading():
            self.choose_in(self.dock.data_controls.batches, column)
        self.wait(lambda: self.session.state == "finished", "the end of the run")
        settle()

    def show_mark(self, place: int) -> None:
        """Click on an earlier map, counted from the oldest."""
        marks = self.dock.timeline_controls.marks
        self.show(marks)
        self._count()
        middle = marks.visualItemRect(marks.item(place)).center()
        repeat(
            lambda: QTest.mouseClick(marks.viewport(), LEFT, pos=middle),
            lambda: marks.currentRow() == place,
            "an earlier map",
        )

    def compare(self, column: str, first: str) -> list[str]:
        """Compare a level of a column with another; return the leading names."""
        self.open_tab("Conditions")
        pane = self.inspector.conditions
        self.choose_in(pane.against, column)
        texts = map(pane.first.itemText, range(pane.first.count()))
        self.choose_in(pane.first, next(x for x in texts if x.startswith(f"{first} (")))
        is_busy = "Comparing"
        self.wait(
            lambda: pane.result and is_busy not in pane.state.text(), "what differs"
        )
        return _first_column(pane.table)

    def save_comparison(self, path: Path) -> None:
        """Save the comparison that is shown: the notebook tells it then."""
        with _answered("getSaveFileName", path):
            self.press(self.inspector.tabs.currentWidget().saved)

    def show_contours(self) -> None:
        """Have the labels drawn as outlines, in napari's controls of the layer."""
        layer = self.dock.controller.workspace.linked_layers.current.labels
        self.viewer.layers.selection = {layer}
        controls = self.viewer.window._qt_viewer.controls.widgets[layer]
        (label,) = (x for x in controls.findChildren(QLabel) if x.text() == "contour:")
        boxes = controls.findChildren(QAbstractSpinBox)
        box = min(boxes, key=lambda x: abs(_height(x) - _height(label)))
        editor = box.findChild(QLineEdit)
        repeat(lambda: _type(editor, "1"), lambda: layer.contour == 1, "the outlines")

    def scroll_dock(self, share: float) -> None:
        """Turn the mouse wheel over the long dock to its top (0) or its end (1)."""
        area = self.dock.findChild(QScrollArea)
        bar = area.verticalScrollBar()
        end = bar.maximum() if share > 0.5 else 0
        for _ in range(200):
            if bar.value() == end:
                return
            turn_wheel(area.viewport(), -WHEEL_STEP if share > 0.5 else WHEEL_STEP)
            settle()
        raise TimeoutError(f"the wheel does not scroll the dock beyond {bar.value()}")

    def set_clusters(self, n_clusters: int) -> None:
        """Type the number of clusters."""
        box = self.dock.cluster_pane.slider.number
        self._count()
        repeat(
            lambda: _type(box.lineEdit(), str(n_clusters)),
            lambda: self.session.clusters.n_clusters == n_clusters,
            f"{n_clusters} clusters",
        )

    def rename(self, name: str) -> None:
        """Type a name over that of the chosen cluster."""
        book, title = self.session.clusters, self.inspector.title
        self.show(title)
        self._count(2)
        repeat(
            lambda: _type(title, name),
            lambda: name in book.clustering.names_by_point,
            name,
        )

    def merge(self) -> None:
        """Press Merge."""
        self._press_edit(self.dock.cluster_pane.edits.merge)
        self.look_inside()

    def _press_edit(self, action: Any) -> None:
        """Press the button of an edit of the selected clusters."""
        buttons = self.dock.cluster_pane.edits.findChildren(QToolButton)
        (button,) = (x for x in buttons if x.defaultAction() is action)
        self._count()
        self.show(button)
        press(button)

    def _turn_until_seen(self, area: QScrollArea, widget: QWidget) -> None:
        for _ in range(200):
            place = widget.mapTo(area.viewport(), widget.rect().center()).y()
            if 0 < place < area.viewport().height():
                return
            turn_wheel(area.viewport(), WHEEL_STEP if place < 0 else -WHEEL_STEP)
            settle()
        raise TimeoutError(f"the wheel does not bring {widget} into view")

    def _pixel(self, world: np.ndarray) -> QPoint:
        camera = getattr(self.viewer, "scene", self.viewer).camera
        middle = np.array([self.canvas.width(), self.canvas.height()]) / 2
        offset = np.asarray(world)[::-1] - np.array(camera.center)[:0:-1]
        return QPoint(*np.round(middle + offset * camera.zoom).astype(int).tolist())


def _first_column(table: QTableView) -> list[str]:
    model = table.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def _height(widget: QWidget) -> int:
    return widget.mapToGlobal(widget.rect().center()).y()


def _type(editor: QLineEdit, text: str) -> None:
    editor.selectAll()
    QTest.keyClicks(editor, text)
    QTest.keyClick(editor, Qt.Key.Key_Return)


def drop_files(viewer: Any, *paths: Path) -> None:
    """Drag files onto a napari window and let them go."""
    files = QMimeData()
    files.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    target = viewer.window._qt_viewer
    middle = target.rect().center()
    copied = Qt.DropAction.CopyAction, files, LEFT, Qt.KeyboardModifier.NoModifier
    # Qt hands a drop to what took the drag before it.
    QApplication.sendEvent(target, QDragEnterEvent(middle, *copied))
    QApplication.sendEvent(target, QDropEvent(QPointF(middle), *copied))


def turn_wheel(widget: QWidget, angle: int) -> None:
    """Turn the mouse wheel over the middle of a widget: upwards is positive."""
    middle = QPointF(widget.rect().center())
    event = QWheelEvent(
        middle,
        QPointF(widget.mapToGlobal(widget.rect().center())),
        QPoint(),
        QPoint(0, angle),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)


def own_objects() -> Counter[str]:
    """Count the Qt objects of this package that are alive, by their class.

    What a dock that is gone has frozen counts as well: it would else come to light
    when a later one is closed.
    """
    gc.unfreeze()
    gc.collect()
    found: Counter[str] = Counter()
    # First by type: there are half a million objects, and some thousand types.
    for kind, number in Counter(map(type, gc.get_objects())).items():
        if issubclass(kind, QObject) and kind.__module__.startswith(
            "napari_embedding_game."
        ):
            found[kind.__name__] += number
    return found


@contextmanager
def _heard(signal: Any) -> Iterator[list[bool]]:
    """Yield a list that has something in it once a signal was emitted."""
    heard: list[bool] = []

    def hear(*_: object) -> None:
        heard.append(True)

    signal.connect(hear)
    try:
        yield heard
    finally:
        with suppress(RuntimeError):  # a button may go with what it does
            signal.disconnect(hear)


@contextmanager
def _answered(question: str, path: Path) -> Iterator[None]:
    """Answer the next question for a file name, which is the system's own window."""
    asks = getattr(QFileDialog, question)
    is_folder = question == "getExistingDirectory"
    answer = str(path) if is_folder else (str(path), "")
    setattr(QFileDialog, question, lambda *_: answer)
    try:
        yield
    finally:
        setattr(QFileDialog, question, asks)
