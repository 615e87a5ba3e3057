"""What hovering, clicking and changes of the look cost the window at many points.

A map of synthetic points is put into napari's window without a game: 158,000 points,
as in a large atlas of cells, and a million.  Each action is then done as a person does
it, with mouse events on the canvas and with the controls of the docks.  "own, ms" is
the processor time that the window's thread takes for it outside of drawing: drawing is
what Qt does for paint and update requests, and what napari does when a layer is told to
show itself (it fills vispy's buffers).  "drawing, ms" is that.

Without a display: xvfb-run -a -s "-screen 0 1600x1000x24" python interaction.py ...
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtCore import QEvent, QPoint, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtWidgets import QApplication

SIZES = (158_000, 1_000_000)
N_LANDMARKS, N_NEIGHBORS = 200, 15
SETTLE_SECONDS = 0.6
"""After an action, for timers that follow it."""


class StandIn:
    """Hands out one finished map instead of playing a game."""

    def __init__(self, snapshot: Any) -> None:
        self._snapshot = snapshot

    def check(self, X: Any, settings: Any) -> None:
        """Refuse nothing."""

    def neighbors(self, X: Any, settings: Any) -> None:
        """Search nothing."""

    def layout(
        self, graph: Any, X: Any, settings: Any, warm_start: Any = None
    ) -> tuple[Any, Any]:
        """Place nothing."""
        return None, self._snapshot.embedding

    def play(
        self, edges: Any, layout: Any, settings: Any, warm_start: Any = None
    ) -> Iterator[Any]:
        """Yield the map, and no more."""
        yield self._snapshot

    def merging(self, *args: Any) -> None:
        """Leave each landmark a cluster of its own."""


def synthetic(n_points: int) -> tuple[Any, Any]:
    """Return a snapshot of Gaussian groups, and a dataset of as many rows."""
    from napari_embedding_game.core.snapshot import Snapshot
    from napari_embedding_game.data.dataset import Dataset

    rng = np.random.default_rng(0)
    middles = rng.normal(scale=10, size=(N_LANDMARKS, 2)).astype(np.float32)
    labels = rng.integers(0, N_LANDMARKS, n_points).astype(np.int32)
    spread = rng.normal(size=(n_points, 2)).astype(np.float32)
    pressure = np.maximum(rng.normal(size=n_points), 0).astype(np.float32)
    snapshot = Snapshot(
        iteration=1,
        n_iter=1,
        embedding=middles[labels] + spread,
        landmarks=middles,
        energy=0.0,
        labels=labels,
        pressure=pressure,
        neighbors=_beside(labels),
        finished=True,
    )
    obs = pd.DataFrame(
        {"type": pd.Categorical.from_codes(labels % 12, list("abcdefghijkl"))},
        index=[f"cell{row}" for row in range(n_points)],
    )
    dataset = Dataset.from_rows(
        name="synthetic",
        X=np.zeros((n_points, 2), np.float32),
        obs=obs,
        var_names=["one", "two"],
        space="X",
    )
    return snapshot, dataset


def _beside(labels: np.ndarray) -> np.ndarray:
    """Return rows of the same group, as neighbours: (n, 15)."""
    order = np.argsort(labels, kind="stable").astype(np.int32)
    neighbors = np.empty((len(order), N_NEIGHBORS), np.int32)
    for step in range(N_NEIGHBORS):
        neighbors[order, step] = np.roll(order, step - N_NEIGHBORS)
    return neighbors


class Clock(QApplication):
    """Takes the processor time of this thread, in drawing and elsewhere."""

    drawn = 0.0
    _depth = 0

    def notify(self, receiver: Any, event: QEvent) -> bool:
        """Handle an event; requests to paint count as drawing."""
        kinds = (QEvent.Type.Paint, QEvent.Type.UpdateRequest, QEvent.Type.UpdateLater)
        if event.type() not in kinds:
            return super().notify(receiver, event)
        return self.as_drawing(lambda: super(Clock, self).notify(receiver, event))

    def as_drawing(self, job: Callable[[], Any]) -> Any:
        """Do a job whose time counts as drawing, with all that is inside of it."""
        if self._depth:
            return job()
        self._depth += 1
        begun = time.thread_time()
        try:
            return job()
        finally:
            self._depth -= 1
            self.drawn += time.thread_time() - begun

    def count_as_drawing(self, target: Any, name: str) -> None:
        """Count the calls of a method as drawing."""
        method = getattr(target, name)
        setattr(
            target,
            name,
            lambda *args, **kwargs: self.as_drawing(lambda: method(*args, **kwargs)),
        )

    def rest(self, seconds: float = SETTLE_SECONDS) -> None:
        """Let the window do what waits."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.processEvents()
            time.sleep(0.002)

    def measure(self, action: Callable[[], None]) -> tuple[float, float]:
        """Return the milliseconds of an action and its timers: own, drawing."""
        self.rest(0.2)
        self.drawn, begun = 0.0, time.thread_time()
        action()
        self.rest()
        whole = time.thread_time() - begun
        return 1e3 * (whole - self.drawn), 1e3 * self.drawn


class Person:
    """A map in a window, and a mouse over it."""

    def __init__(self, app: Clock, viewer: Any, n_points: int) -> None:
        from napari_embedding_game.session.session import Session
        from napari_embedding_game.ui.game_dock import GameDock
        from napari_embedding_game.ui.workspace import Workspace

        self.app, self.viewer = app, viewer
        snapshot, dataset = synthetic(n_points)
        self.session = Session(StandIn(snapshot))
        self.session.load(dataset)
        workspace = Workspace(self.session)
        self.dock = GameDock(viewer, workspace, warm_up=False)
        viewer.window.add_dock_widget(self.dock, name="game")
        self.dock.run.run.click()
        while self.session.state != "finished":
            assert self.session.state != "failed", self.session.message
            app.rest(0.1)
        app.rest(3.0)
        self.canvas = viewer.window._qt_viewer.canvas
        for name in ("show", "recolor"):
            app.count_as_drawing(self.dock.controller.layers, name)

    def place_of(self, row: int) -> QPoint:
        """Return the pixel at which a point is drawn."""
        projection = self.dock.controller.layers.projection()
        (pixel,) = projection.to_pixels(self.session.snapshot.embedding[[row]])
        return QPoint(*map(round, pixel.tolist()))

    def move(self, place: QPoint, button: Any = Qt.MouseButton.NoButton) -> None:
        """Move the mouse over the canvas."""
        self._send(QEvent.Type.MouseMove, place, Qt.MouseButton.NoButton, button)

    def click(self, place: QPoint) -> None:
        """Click on the canvas."""
        left, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
        self._send(QEvent.Type.MouseButtonPress, place, left, left)
        self._send(QEvent.Type.MouseButtonRelease, place, left, none)

    def _send(self, kind: Any, place: QPoint, button: Any, buttons: Any) -> None:
        native = self.canvas.native
        keys = Qt.KeyboardModifier.NoModifier
        where = native.mapToGlobal(place).toPointF()
        event = QMouseEvent(kind, place.toPointF(), where, button, buttons, keys)
        QApplication.sendEvent(native, event)

    def hover(self, n_moves: int = 20) -> None:
        """Rest on a point, then pass over twenty more places."""
        self.move(self.place_of(0))
        self.app.rest(0.4)
        for row in range(1, n_moves):
            self.move(self.place_of(row))
            self.app.rest(0.02)

    def brush(self, n_moves: int = 20) -> None:
        """Paint around a point, and let go."""
        left, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
        middle = self.place_of(0)
        self._send(QEvent.Type.MouseButtonPress, middle, left, left)
        for number in range(n_moves):
            angle = number / 2
            step = QPoint(round(number * np.cos(angle)), round(number * np.sin(angle)))
            self.move(middle + step, left)
            self.app.rest(0.03)
        self._send(QEvent.Type.MouseButtonRelease, middle, left, none)

    def frame(self) -> None:
        """Draw all points somewhere else, as in each frame of a game."""
        snapshot = self.session.snapshot
        assert snapshot is not None
        moved = replace(snapshot, embedding=snapshot.embedding * np.float32(0.99))
        self.dock.controller.scene.draw(moved)

    def actions(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield what a person does, by its name."""
        session, look = self.session, self.dock.look
        box = self.dock.clusters.search
        yield "20 mouse moves over the map", self.hover
        yield "click on a cluster", lambda: self.click(self.place_of(5))
        yield "another cluster", lambda: self.click(self.place_of(12))
        yield "clear", session.selection.clear
        yield "names off", look.names.native.click
        yield "names on", look.names.native.click
        yield "landmarks off", look.landmarks.native.click
        yield "landmarks on", look.landmarks.native.click
        yield "colour by type", lambda: setattr(look.color_by, "value", "type")
        yield "names off, by type", look.names.native.click
        yield "colour by cluster", lambda: setattr(look.color_by, "value", "Cluster")
        yield "first letter in the search", lambda: box.textEdited.emit("q")
        yield "rename a cluster", lambda: session.clusters.rename(3, "T cells")
        yield "first letter after that", lambda: box.textEdited.emit("qq")
        yield "a frame of moved points", self.frame
        yield "brush on", self.dock.select.brush.click
        yield "a stroke of the brush, 20 moves", self.brush


def watch(app: Clock, n_points: int) -> list[dict[str, Any]]:
    """Return a row for each action at one size."""
    import napari

    viewer = napari.Viewer()
    viewer.window.resize(1500, 950)
    person = Person(app, viewer, n_points)
    rows = []
    for name, action in person.actions():
        own, drawing = app.measure(action)
        rows.append(
            {"points": n_points, "action": name, "own, ms": own, "drawing, ms": drawing}
        )
    person.dock.controller.session_store.close()
    viewer.close()
    app.rest(0.5)
    return rows


def main() -> None:
    """Print what each action costs."""
    from shared import arguments, report

    args = arguments(__doc__)
    app = Clock(sys.argv[:1])
    rows: list[dict[str, Any]] = []
    for n_points in SIZES[:1] if args.quick else SIZES:
        rows += watch(app, n_points)
    report("Work of the window for one action", rows, args)


if __name__ == "__main__":
    main()
