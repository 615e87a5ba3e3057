"""Somebody at the window: uses its widgets, its mouse and its menus.

The tutorials of ``docs/`` are gone through with this, once for their pictures
(``tools/tutorial_pictures.py``) and once as tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from qtpy.QtCore import QEvent, QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QFileDialog, QLineEdit, QScrollArea, QWidget

from napari_embedding_game.ui.plugin import INSPECTOR, open_docks

SECONDS = 120.0
"""Longest wait for anything."""


class Person:
    """Works in a shown napari window with both docks.

    Parameters
    ----------
    viewer : napari.Viewer
    """

    def __init__(self, viewer: Any) -> None:
        self.viewer = viewer
        self.dock = open_docks(viewer)
        name = f"{INSPECTOR} (napari-embedding-game)"
        self.inspector = viewer.window.dock_widgets[name]
        self.session = self.dock.player.session
        self.canvas = viewer.window._qt_viewer.canvas.native
        self.rest(0.3)

    # Waiting

    def wait(self, done: Callable[[], Any], what: str) -> None:
        """Wait until something is so.

        Raises
        ------
        TimeoutError
            It took too long; names `what`, and what the window complains about.
        """
        end = time.monotonic() + SECONDS
        while not done():
            self.rest(0.02)
            if time.monotonic() > end:
                trouble = self.dock.data.trouble.text()
                raise TimeoutError(f"waited in vain for {what}: {trouble}")

    def rest(self, seconds: float) -> None:
        """Let the window do what it has to."""
        end = time.monotonic() + seconds
        while True:
            QApplication.processEvents()
            QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            if time.monotonic() >= end:
                return
            time.sleep(0.005)

    # Data and run

    def open(self, path: Path) -> None:
        """Choose Open > File… and the file."""
        with self.loading(), _answered("getOpenFileName", path):
            _action(self.dock.data.open_menu, "File").trigger()

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Wait until what is begun inside has been loaded."""
        loaded: list[object] = []
        self.dock.player.loaded.connect(lambda *_: loaded.append(1))
        yield
        self.wait(lambda: loaded, "the data")
        self.rest(0.2)

    def prepare_counts(self) -> None:
        """Take the recipe as it is offered."""
        with self.loading():
            self.press(self.dock.data.recipe.apply.native)

    def measure(self) -> None:
        """Measure the objects of the labels."""
        with self.loading():
            self.press(self.dock.data.measure.measure.native)

    def run(self) -> None:
        """Press Run, and watch to the end."""
        self.press(self.dock.run.run.native)
        self.wait(lambda: self.session.state == "finished", "the end of the run")
        self.rest(0.5)

    def save(self, path: Path) -> None:
        """Choose Save and the format, and the name of the file."""
        saved: list[str] = []
        self.dock.player.saved.connect(saved.append)
        with _answered("getSaveFileName", path):
            _action(self.dock.run.save.menu, path.suffix).trigger()
        self.wait(lambda: saved, "the file")

    # Mouse and keys

    def press(self, button: QWidget) -> None:
        """Click on a button of the docks."""
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def click(self, world: np.ndarray) -> None:
        """Click where a place of the world, (row, column), is drawn."""
        self.rest(0.1)
        place = self._pixel(world)
        QTest.mouseMove(self.canvas, place)
        QTest.mouseClick(self.canvas, Qt.MouseButton.LeftButton, pos=place)
        self.rest(0.3)

    def click_point(self, row: int) -> None:
        """Click on a point of the map."""
        points = self.dock.player.layers.points
        self.click(np.asarray(points.data_to_world(points.data[row]))[-2:])

    def click_object(self, row: int) -> None:
        """Click on an object in the image."""
        labels = self.dock.player.linked.current.labels
        objects = self.session.dataset.objects
        box = objects.slices(row)
        inside = np.argwhere(labels.data[box] == objects.label_ids[row])
        middle = inside[((inside - inside.mean(axis=0)) ** 2).sum(axis=1).argmin()]
        corner = [side.start for side in box]
        self.click(np.asarray(labels.data_to_world(corner + middle))[-2:])

    def choose(self, cluster: int) -> None:
        """Click on a cluster's most central point, and wait for the inspector."""
        members = np.flatnonzero(self.session.clusters.labels == cluster)
        places = self.session.snapshot.embedding[members]
        distance = ((places - np.median(places, axis=0)) ** 2).sum(axis=1)
        self.click_point(int(members[distance.argmin()]))
        self.look_inside()

    def look_inside(self) -> None:
        """Wait until the inspector tells of what is selected."""
        self.wait(lambda: self.inspector.report is not None, "the inspector")
        self.rest(0.5)

    def open_tab(self, name: str) -> None:
        """Open a tab of the inspector."""
        tabs = self.inspector.members.tabs
        (place,) = (i for i in range(tabs.count()) if tabs.tabText(i) == name)
        bar = tabs.tabBar()
        left = Qt.MouseButton.LeftButton
        QTest.mouseClick(bar, left, pos=bar.tabRect(place).center())
        self.rest(0.3)

    def markers(self) -> list[str]:
        """Open the markers and read their names."""
        self.open_tab("Markers")
        pane = self.inspector.members.markers
        self.wait(lambda: pane._worker is None and pane.result, "the markers")
        table = pane.table
        return [table.item(row, 0).text() for row in range(table.rowCount())]

    def texts(self) -> list[str]:
        """Open the texts and read them."""
        self.open_tab("Texts")
        view = self.inspector.members.texts
        return [view.item(row).text() for row in range(view.count())]

    def click_marker(self, row: int) -> None:
        """Click on a gene of the table of markers."""
        table = self.inspector.members.markers.table
        place = table.visualItemRect(table.item(row, 0)).center()
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
        self.rest(0.3)

    def press_escape(self) -> None:
        """Select nothing."""
        QTest.keyClick(self.dock, Qt.Key.Key_Escape)
        self.rest(0.3)

    def look_away(self) -> None:
        """Take the mouse off the map, so that no card is in the way."""
        QTest.mouseMove(self.canvas, QPoint(3, 3))
        QApplication.sendEvent(self.canvas, QEvent(QEvent.Type.Leave))
        self.rest(0.5)

    def color_by(self, choice: str) -> None:
        """Choose what the colours mean."""
        self.dock.look.color_by.value = choice
        self.rest(0.3)

    def scroll_dock(self, share: float) -> None:
        """Scroll the long dock: 0 is its top, 1 its end."""
        bar = self.dock.findChild(QScrollArea).verticalScrollBar()
        bar.setValue(round(share * bar.maximum()))
        self.rest(0.2)

    def set_clusters(self, n_clusters: int) -> None:
        """Type the number of clusters."""
        box = self.inspector.clusters.slider.number
        _type(box.lineEdit(), str(n_clusters))
        self.wait(lambda: self.session.clusters.n_clusters == n_clusters, "the slider")
        self.rest(0.5)

    def rename(self, name: str) -> None:
        """Press Rename and type a name for the chosen cluster."""
        self.inspector.clusters.edits.rename.trigger()
        self.rest(0.1)
        editor = self.inspector.clusters.table.findChild(QLineEdit)
        _type(editor, name)
        self.rest(0.5)

    def _pixel(self, world: np.ndarray) -> QPoint:
        camera = getattr(self.viewer, "scene", self.viewer).camera
        middle = np.array([self.canvas.width(), self.canvas.height()]) / 2
        offset = np.asarray(world)[::-1] - np.array(camera.center)[:0:-1]
        return QPoint(*np.round(middle + offset * camera.zoom).astype(int).tolist())


def _type(editor: QLineEdit, text: str) -> None:
    editor.selectAll()
    QTest.keyClicks(editor, text)
    QTest.keyClick(editor, Qt.Key.Key_Return)


def _action(menu: Any, words: str) -> Any:
    return next(action for action in menu.actions() if words in action.text())


@contextmanager
def _answered(question: str, path: Path) -> Iterator[None]:
    """Answer the next question for a file name, which is the system's own window."""
    asks = getattr(QFileDialog, question)
    setattr(QFileDialog, question, lambda *_: (str(path), ""))
    try:
        yield
    finally:
        setattr(QFileDialog, question, asks)
