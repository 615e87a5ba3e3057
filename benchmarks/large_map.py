"""A game of very many points in the window, and what a person's actions cost at rest.

The game is played on synthetic groups in ten columns: how many frames a second are
drawn while the points move, and how long the window's thread is held (see
``window.py``), from neighbours to end.

The map at rest is synthetic and comes from no game.  Each action is done as a person
does it, with mouse events on the canvas and with the controls of the docks.  "own, ms"
is the processor time that the window's thread takes for it outside of drawing: drawing
is what Qt does for paint and update requests, and what napari does when a layer is told
to show itself.  "own" of its opening is the longest turn of the window's thread.

    python benchmarks/large_map.py --game 1000000 --rest 158000 1000000

``--pictures FOLDER`` saves what the window looks like.
Without a display: xvfb-run -a -s "-screen 0 1600x1000x24" python large_map.py ...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtCore import QEvent, QPoint, Qt, QTimer
from qtpy.QtGui import QMouseEvent
from qtpy.QtWidgets import QApplication

from window import DRAWING, TimedApplication, Watch

GAME, REST = "--game-in-this-process", "--rest-in-this-process"
N_COLUMNS, N_GROUPS = 10, 30
N_LANDMARKS, N_NEIGHBORS = 200, 15
SETTLE_SECONDS = 0.6
"""After an action, for timers that follow it."""


# --- A game


class GameWatch(Watch):
    """Follows a short game, and notes when frames have been drawn."""

    def __init__(self, app: TimedApplication, viewer: Any, path: Path) -> None:
        super().__init__(app, viewer, path, is_given=False)
        self.frames: list[float] = []
        self.pictures = 0
        """Of frames, and of points on the way between them."""
        self._session.progressed.connect(self._on_frame)
        layers = self._dock.controller.scene.map_layers
        show = layers.show

        def shown(*args: Any, **options: Any) -> bool:
            self.pictures += bool(self.frames)
            return show(*args, **options)

        layers.show = shown

    def _on_frame(self, progress: Any) -> None:
        if progress.snapshot is not None and progress.snapshot.iteration > 0:
            self.frames.append(time.perf_counter())

    def last_for(self, iterations: int) -> None:
        """Let the game end after so many iterations."""
        self._session.settings.max_iter = iterations


def play(n_points: int, iterations: int, folder: Path) -> dict[str, Any]:
    """Play a game in a window of this process; return what was seen."""
    import torch  # noqa: F401  before Qt, as the program does

    app = TimedApplication(sys.argv[:1])
    app.draws = []
    import napari

    rng = np.random.default_rng(0)
    middles = rng.normal(0, 3, (N_GROUPS, N_COLUMNS)).astype(np.float32)
    labels = rng.integers(0, N_GROUPS, n_points)
    X = middles[labels] + rng.standard_normal((n_points, N_COLUMNS), np.float32)
    path = folder / "groups.npz"
    np.savez(path, X=X, y=labels)
    viewer = napari.Viewer()
    viewer.window.resize(1500, 950)
    seen = GameWatch(app, viewer, path)
    seen.last_for(iterations)
    QTimer.singleShot(0, lambda: seen.begin(2.0))
    if app.exec():
        sys.exit("The game has failed.")
    held = {phase: 1e3 * max(turns) for phase, turns in seen.held.items()}
    busy = {phase: 1e3 * max(turns) for phase, turns in seen.busy.items()}
    playing = seen.frames[-1] - seen.frames[0]
    return {
        "points": n_points,
        "iterations": iterations,
        "first moved frame, s": seen.seconds["first moved frame"],
        "end, s": seen.seconds["end"],
        "frames a second": (len(seen.frames) - 1) / playing if playing else np.nan,
        "pictures a second": seen.pictures / playing if playing else np.nan,
        "longest held preparing, ms": held["preparing"],
        "busy, ms": busy["preparing"],
        "longest held playing, ms": held["playing"],
        "busy playing, ms": busy["playing"],
        "longest drawing, ms": 1e3 * max(app.draws),
        "memory, GiB": memory(),
    }


# --- A map at rest


class StandIn:
    """Hands out one finished map instead of playing a game."""

    def __init__(self, snapshot: Any) -> None:
        self._snapshot = snapshot

    def check(self, X: Any, settings: Any) -> None:
        """Refuse nothing."""

    def find_neighbors(self, X: Any, settings: Any) -> None:
        """Search nothing."""

    def make_edges_and_layout(
        self, graph: Any, X: Any, settings: Any, warm_start: Any, second_X: Any
    ) -> tuple[Any, Any]:
        """Place nothing."""
        return None, self._snapshot.embedding

    def play_game(
        self, edges: Any, layout: Any, settings: Any, warm_start: Any = None
    ) -> Iterator[Any]:
        """Yield the map, and no more."""
        yield self._snapshot

    def merge_landmarks(self, *args: Any) -> None:
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
    longest = 0.0
    """Seconds of the longest turn."""
    canvas: Any = None
    pictures = 0
    """How often the canvas was painted."""
    _depth = 0

    def notify(self, receiver: Any, event: QEvent) -> bool:
        """Handle an event; requests to paint count as drawing."""
        if event.type() not in DRAWING:
            return super().notify(receiver, event)
        self.pictures += receiver is self.canvas and event.type() == QEvent.Type.Paint
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
            begun = time.thread_time()
            self.processEvents()
            self.longest = max(self.longest, time.thread_time() - begun)
            time.sleep(0.002)

    def measure(self, action: Callable[[], None]) -> tuple[float, float, int]:
        """Return the milliseconds of an action and its timers: own, drawing.

        And how often the canvas was painted.
        """
        self.rest(0.2)
        self.drawn, self.pictures, begun = 0.0, 0, time.thread_time()
        action()
        self.rest()
        whole = time.thread_time() - begun
        return 1e3 * (whole - self.drawn), 1e3 * self.drawn, self.pictures


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
        self.dock.run_controls.run_button.click()
        while self.session.state != "finished":
            assert self.session.state != "failed", self.session.message
            app.rest(0.1)
        app.rest(3.0)
        self.canvas = viewer.window._qt_viewer.canvas
        app.canvas = self.canvas.native
        app.count_as_drawing(self.dock.controller.scene.map_layers, "show_snapshot")

    def place_of(self, row: int) -> QPoint:
        """Return the pixel at which a point is drawn."""
        projection = self.dock.controller.scene.map_layers.projection()
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

    def zoom(self, factor: float) -> None:
        """Zoom in on one of the points."""
        camera = self.viewer.scene.camera
        place = self.dock.controller.scene.map_layers.points.data[5]
        camera.center = (0.0, *map(float, place))
        camera.zoom *= factor

    def pan(self, seconds: float = 1.0) -> None:
        """Move the camera across the map, as a hand does: 50 times a second."""
        camera, end = self.viewer.scene.camera, time.monotonic() + seconds
        while time.monotonic() < end:
            camera.center = (0.0, camera.center[1], camera.center[2] + 4.0)
            self.app.rest(0.02)

    def actions(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield what a person does, by its name."""
        session, look = self.session, self.dock.display_controls
        box, clear = self.dock.cluster_pane.search, session.selection.clear
        yield "a pan of one second", self.pan
        yield "zoom, twice as near", lambda: self.zoom(2.0)
        yield "20 mouse moves over the map", self.hover
        yield "click on a cluster", lambda: self.click(self.place_of(5))
        yield "another cluster", lambda: self.click(self.place_of(12))
        yield "clear", clear
        yield "zoom, 60 times as near", lambda: self.zoom(30.0)
        yield "click near there", lambda: self.click(self.place_of(5))
        yield "back", self.viewer.reset_view
        yield "light theme", lambda: setattr(self.viewer, "theme", "light")
        yield "clear there", clear
        yield "names off", look.names.click
        yield "names on", look.names.click
        yield "landmarks off", look.landmarks.click
        yield "landmarks on", look.landmarks.click
        yield "colour by type", lambda: setattr(look.color_by, "value", "type")
        yield "names off, by type", look.names.click
        yield "colour by cluster", lambda: setattr(look.color_by, "value", "Cluster")
        yield "first letter in the search", lambda: box.textEdited.emit("q")
        yield "rename a cluster", lambda: session.clusters.rename(3, "T cells")
        yield "first letter after that", lambda: box.textEdited.emit("qq")
        yield "brush on", self.dock.selection_controls.brush_button.click
        yield "a stroke of the brush, 20 moves", self.brush


def look(n_points: int, folder: Path | None) -> list[dict[str, Any]]:
    """Show a map in a window of this process; return a row for each action."""
    app = Clock(sys.argv[:1])
    import napari

    viewer = napari.Viewer()
    viewer.window.resize(1500, 950)
    before, begun = memory(), time.perf_counter()
    person = Person(app, viewer, n_points)
    rows: list[dict[str, Any]] = []

    def note(action: str, own: float, drawing: float, pictures: float) -> None:
        row = {
            "points": n_points,
            "action": action,
            "own, ms": own,
            "drawing, ms": drawing,
            "pictures": pictures,
            "memory, GiB": memory() - before,
        }
        rows.append(row)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{n_points}_{action.replace(' ', '_')}.png"
            viewer.window.screenshot(str(folder / name), flash=False)

    opened = time.perf_counter() - begun - 3.0
    nan = float("nan")
    note(f"open ({opened:.0f} s)", 1e3 * app.longest, nan, nan)
    for name, action in person.actions():
        note(name, *app.measure(action))
    person.dock.controller.session_store.close()
    viewer.close()
    app.rest(0.5)
    return rows


def memory() -> float:
    """Return the most memory that this process has taken, in GiB; NaN off Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


# --- The process that starts the others


def in_new_process(*arguments: object) -> Any:
    """Return what this script finds out in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, *map(str, arguments), folder]
        subprocess.run(command, check=True)
        return json.loads(Path(folder, "found.json").read_text())


def main() -> None:
    """Print what the windows saw."""
    from shared import arguments, report

    args = arguments(
        __doc__,
        game={"type": int, "nargs": "*", "default": [1_000_000]},
        iterations={"type": int, "default": 40},
        rest={"type": int, "nargs": "*", "default": [158_000, 1_000_000]},
        pictures={"type": Path, "default": None},
    )
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        sys.exit("There is no display: start this with xvfb-run (see --help).")
    games, at_rest = ([100_000], [100_000]) if args.quick else (args.game, args.rest)
    played = [in_new_process(GAME, n, args.iterations) for n in games]
    if played:
        report("A game in the window", played, args)
    pictures = "" if args.pictures is None else args.pictures.resolve()
    rows = [row for n in at_rest for row in in_new_process(REST, n, pictures)]
    if rows:
        report("A map at rest", rows, args)


def child(kind: str, n_points: int, option: str, folder: Path) -> None:
    """Do one job of :func:`main`."""
    found: Any
    if kind == GAME:
        found = play(n_points, int(option), folder)
    else:
        found = look(n_points, Path(option) if option else None)
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] in (GAME, REST):
        child(sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
        sys.stdout.flush()
        os._exit(0)  # what is left of two docks is not measured
    main()
