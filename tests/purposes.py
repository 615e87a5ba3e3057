"""What people do in several steps, which random clicks hardly ever come to.

A cluster dragged by its name, a landmark dragged, points painted, a way back in the
timeline, another map compared, other settings for the map on show,
points taught, others clustered again.  :class:`Purposes` gives :mod:`random_user` a
method for each; one for which the window is not ready yet does a step towards it: a
sample, a run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from qtpy import QtWidgets as W
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.compat import find_canvas_widget
from napari_embedding_game.ui.controls.timeline import TimelineControls
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.inspector.cluster_edits import ClusterEdits
from napari_embedding_game.ui.widgets.teach import TeachWidget

LEFT = Qt.MouseButton.LeftButton
CONTROL = Qt.KeyboardModifier.ControlModifier
PLAIN = Qt.KeyboardModifier.NoModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
OTHER_NEIGHBORS = (5, 10, 15, 30)
STEPS_OF_A_DRAG = 6
EDITS = ("merge", "split", "make", "release", "undo", "undo", "redo", "redo")


class Purposes:
    """Steps that belong together, for a user with a shown window."""

    rng: random.Random
    viewer: Any
    window: Any
    session: Session
    note: Callable[[str], None]
    rest: Callable[[float], None]
    open_docks: Callable[[], None]
    open_sample: Callable[[], None]
    docks: Callable[[], list[W.QDockWidget]]

    def purposes(self) -> tuple[Callable[[], None], ...]:
        """Return all that can be done on purpose."""
        return (
            self.drag_name,
            self.drag_landmark,
            self.paint,
            self.use_mark,
            self.compare_maps,
            self.continue_with_settings,
            self.teach,
            self.cluster_again,
            self.edit_clusters,
            self.change_dimensions,
            self.reopen_docks,
            self.change_sample,
        )

    # Towards a map

    def _dock(self, kind: type) -> Any:
        """Return what is seen in a dock; open the docks and return None else."""
        for box in self.docks():
            found = box.findChildren(kind)
            if found:
                return found[0]
        self.open_docks()
        return None

    def _map(self) -> GameDock | None:
        """Return the dock of a map that can be used; else take a step towards it."""
        dock = self._dock(GameDock)
        if dock is None:
            return None
        if self.session.dataset is None:
            self.open_sample()
        elif self.session.snapshot is None and self.session.state != "preparing":
            self._press(dock.run_controls.run_button)
        return None if self.session.snapshot is None else dock

    def _press(self, widget: W.QWidget) -> None:
        """Scroll to a button, and click on it if it is to be had."""
        self._scroll_to(widget)
        if widget.isVisible() and widget.isEnabled():
            text = getattr(widget, "text", lambda: "")() or widget.objectName()
            self.note(f"    presses {text!r}")
            QTest.mouseClick(widget, LEFT)
            self.rest(0.05)

    def _scroll_to(self, widget: W.QWidget) -> None:
        for box in self.docks():
            for area in box.findChildren(W.QScrollArea):
                if area.isAncestorOf(widget):
                    area.ensureWidgetVisible(widget)
        self.rest(0.02)

    # By hand

    def drag_name(self) -> None:
        """Drag a cluster by its name, at rest or while the map moves."""
        dock = self._map()
        if dock is None:
            return
        names, drawn = (
            dock.map_names.names,
            dock.controller.scene.map_layers.projection(),
        )
        if not names.clusters or drawn is None:
            self.note("looks for a name to drag")
            self._press(
                dock.run_controls.stop_button
            )  # names are read on a map at rest
            return
        place = self.rng.randrange(len(names.clusters))
        self.note(f"drags the name {names.texts[place]!r}")
        self._drag(dock.map_names.label_positions_and_opacities(drawn)[0][place])

    def drag_landmark(self) -> None:
        """Drag a landmark, once its layer is chosen."""
        dock = self._map()
        if dock is None:
            return
        if self.rng.random() < 0.3 and self.session.state in ("finished", "stopped"):
            self._press(dock.run_controls.continue_button)
        layers, snapshot = dock.controller.scene.map_layers, self.session.snapshot
        drawn, layer = layers.projection(), layers.landmarks
        if drawn is None or layer is None or snapshot is None:
            return
        if layer not in self.viewer.layers or not len(snapshot.landmarks):
            return
        self.viewer.layers.selection.active = layer
        layer.visible = True
        number = self.rng.randrange(len(snapshot.landmarks))
        self.note(f"drags the landmark {number}")
        pixel = drawn.to_pixels(snapshot.landmarks[number][None])[0]
        self._drag(pixel)

    def paint(self) -> None:
        """Paint with the brush, at rest or while the map moves, and put it away."""
        dock = self._map()
        snapshot = self.session.snapshot
        if dock is None or snapshot is None:
            return
        mouse, layers = dock.mouse, dock.controller.scene.map_layers
        if mouse.tool != "brush":
            self._press(dock.selection_controls.brush_button)
        drawn = layers.projection()
        if drawn is None:
            return
        for _ in range(self.rng.randint(1, 3)):
            modifier = self.rng.choice([PLAIN, SHIFT, CONTROL])
            self.note(f"paints with {modifier}")
            self._drag(drawn.to_pixels(snapshot.embedding[:1])[0], modifier)
            assert not dock.overlay.line
        key = self.rng.choice(
            [Qt.Key.Key_BracketLeft, Qt.Key.Key_BracketRight, Qt.Key.Key_B]
        )
        QTest.keyClick(self._canvas(), key)
        if mouse.tool == "brush" and self.rng.random() < 0.8:
            self._press(dock.selection_controls.brush_button)

    def _canvas(self) -> W.QWidget:
        return find_canvas_widget(self.window)

    def _drag(self, pixel: Any, modifier: Any = None) -> None:
        """Drag from a pixel to anywhere; sometimes Escape is pressed in between."""
        canvas = self._canvas()
        if not np.isfinite(pixel).all():
            return
        begin = QPoint(*np.round(pixel).astype(int).tolist())
        if not canvas.rect().contains(begin):
            return
        end = QPoint(
            self.rng.randrange(canvas.width()), self.rng.randrange(canvas.height())
        )
        if modifier is None:
            modifier = self.rng.choice([PLAIN, PLAIN, CONTROL])
        QTest.mouseMove(canvas, begin)
        QTest.mousePress(canvas, LEFT, modifier, begin)
        for step in range(1, STEPS_OF_A_DRAG + 1):
            QTest.mouseMove(canvas, begin + (end - begin) * step / STEPS_OF_A_DRAG)
            self.rest(0.03)
        if self.rng.random() < 0.2:
            self.note("    presses Escape while it drags")
            QTest.keyClick(canvas, Qt.Key.Key_Escape)
        QTest.mouseRelease(canvas, LEFT, modifier, end)

    # Timeline

    def _timeline(self) -> TimelineControls | None:
        """Return the timeline where it has marks; a run or a pause makes some."""
        dock = self._map()
        if dock is None:
            return None
        if not self.session.timeline.marks:
            self.note("wants marks in the timeline")
            running = self.session.state == "running"
            self._press(
                dock.run_controls.pause_button
                if running
                else dock.run_controls.run_button
            )
            return None
        self._scroll_to(dock.timeline_controls.marks)
        return dock.timeline_controls if self.session.timeline.marks else None

    def use_mark(self) -> None:
        """Look back to a mark, or choose something from its menu."""
        timeline = self._timeline()
        if timeline is None:
            return
        row = self.rng.randrange(len(self.session.timeline.marks))
        if self.rng.random() < 0.7:
            self.note(f"looks back at picture {row}")
            marks = timeline.marks
            place = marks.visualItemRect(marks.item(row)).center()
            QTest.mouseClick(marks.viewport(), LEFT, pos=place)
            self._press(self._map().run.continue_button)
        else:
            menu = timeline.make_mark_menu(self.session.timeline.marks[row])
            self._choose(menu)
            menu.deleteLater()

    def _choose(self, menu: W.QMenu) -> None:
        """Choose an entry of a menu, which has an event loop of its own."""
        actions = menu.actions()
        if actions:
            action = self.rng.choice(actions)
            self.note(f"chooses {action.text()!r}")
            action.trigger()

    def compare_maps(self) -> None:
        """Compare with a mark, and use what is then offered."""
        timeline = self._timeline()
        if timeline is None:
            return
        timeline.others.aboutToShow.emit()
        self._choose(timeline.others)
        self.rest(0.3)
        if not timeline.end.isVisible():
            return
        self._turn_camera()
        if self.rng.random() < 0.7:
            self._press(timeline.end)
        self.rest(0.1)

    def _turn_camera(self) -> None:
        """Turn what is in space, so that maps side by side have to follow."""
        camera = self.viewer.scene.camera
        if self.viewer.dims.ndisplay == 3:
            turned = (self.rng.uniform(-180, 180) for _ in camera.angles)
            camera.angles = tuple(turned)
            self.note(f"turns the camera to {camera.angles}")

    # Settings, colours

    def continue_with_settings(self) -> None:
        """Choose another number of neighbours, and play on with it or anew."""
        dock = self._map()
        if dock is None:
            return
        controls = dock.method_controls.controls
        number = self.rng.choice(OTHER_NEIGHBORS)
        self.note(f"wants {number} neighbours, and goes on")
        field = controls["n_neighbors"]
        if field.visible and field.enabled:
            field.value = number
        both = (dock.run_controls.continue_button, dock.run_controls.run_button)
        self._press(self.rng.choice(both))

    def change_dimensions(self) -> None:
        """Ask for a map in the plane or in space, or have napari draw it so."""
        dock = self._map()
        if dock is None:
            return
        if self.rng.random() < 0.5:
            buttons = self.viewer.window._qt_viewer.viewerButtons
            self.note("napari's button for 2-D and 3-D")
            QTest.mouseClick(buttons.ndisplayButton, LEFT)
            return
        widget = dock.method_controls.controls["n_components"]
        self.note(f"wants other dimensions than {widget.value}")
        widget.value = self.rng.choice([x for x in widget.choices if x != widget.value])

    # Clusters and classes

    def _choose_clusters(self, dock: GameDock, n: int) -> None:
        """Click on rows of the list of clusters."""
        dock.tabs.setCurrentIndex(0)
        table = dock.cluster_pane.table
        n_rows = table.model().rowCount()
        for turn in range(min(n, n_rows)):
            index = table.model().index(self.rng.randrange(n_rows), 0)
            table.scrollTo(index)
            place = table.visualRect(index).center()
            modifier = CONTROL if turn else PLAIN
            QTest.mouseClick(table.viewport(), LEFT, modifier, place)
        self.note(f"    chooses clusters {self.session.selection.clusters}")

    def teach(self) -> None:
        """Make two clusters examples, and learn from them, or stop learning."""
        dock = self._map()
        if dock is None:
            return
        teach = self._dock(TeachWidget)
        if teach is None:
            return
        self.note("teaches")
        for turn in range(self.rng.randint(1, 3)):
            self._choose_clusters(dock, 1)
            self.rest(0.1)
            n_classes = teach.class_table.model().rowCount()
            if n_classes > turn and teach.isVisible():
                teach.class_table.selectRow(turn)
                self._press(teach.add_button)
            else:
                self._press(teach.new_button)
        self._press(teach.learn_button)
        self.rest(self.rng.choice([0.05, 0.5]))
        self._press(teach.learn_button)

    def cluster_again(self) -> None:
        """Find clusters among those of the table; what asks how is answered."""
        dock = self._map()
        if dock is None:
            return
        self._choose_clusters(dock, self.rng.randint(1, 3))
        action = dock.cluster_pane.edits.recluster
        if action.isEnabled():
            self.note(f"{action.text()!r}")
            action.trigger()
            self.rest(self.rng.choice([0.02, 0.5]))

    def edit_clusters(self) -> None:
        """Merge, split, take back, do again."""
        dock = self._map()
        if dock is None:
            return
        self._choose_clusters(dock, self.rng.randint(1, 3))
        edits: ClusterEdits = dock.cluster_pane.edits
        for _ in range(self.rng.randint(1, 4)):
            action = getattr(edits, self.rng.choice(EDITS))
            if action.isEnabled():
                self.note(f"edit {action.text()!r}")
                action.trigger()
                self.rest(0.05)

    # Docks and data

    def reopen_docks(self) -> None:
        """Close both docks by the cross of their titles, and open them again."""
        for box in self.docks():
            self.note(f"closes {box.windowTitle()!r} by its cross")
            box.title.close_button.click()
        self.rest(self.rng.choice([0.0, 0.3]))
        self.open_docks()

    def change_sample(self) -> None:
        """Open another sample in the midst of what is going on, and play."""
        self.open_sample()
        dock = self._dock(GameDock)
        if dock is not None and self.session.dataset is not None:
            self._press(dock.run_controls.run_button)
