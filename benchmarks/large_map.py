"""A game of very many points in the window, and a map of many more at rest.

The game is played on synthetic groups in ten columns: how many frames a second are
drawn while the points move, and how long the window's thread is held (see
``window.py``), from neighbours to end.  The map at rest comes from no game
(``interaction.py``): what moves of the camera, hovering and clicking cost the window,
how soon all points have been painted, and what memory the process takes; "own" of its
opening is what the window is held for while napari's layers are made.

    python benchmarks/large_map.py --game 1000000 --rest 1000000 20000000

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
from qtpy.QtCore import QTimer

from interaction import Clock, Person
from napari_embedding_game.ui.canvas.layers import MapLayers
from napari_embedding_game.ui.compat import camera_of
from window import TimedApplication, Watch

GAME, REST = "--game-in-this-process", "--rest-in-this-process"
N_COLUMNS, N_GROUPS = 10, 30


# --- A game


class GameWatch(Watch):
    """Follows a short game, and notes when frames have been drawn."""

    def __init__(self, app: TimedApplication, viewer: Any, path: Path) -> None:
        super().__init__(app, viewer, path)
        self.frames: list[float] = []
        self.pictures = 0
        """Of frames, and of points on the way between them."""
        self._session.progressed.connect(self._on_frame)
        layers = self._dock.controller.layers
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


class Visitor(Person):
    """Moves the camera over a map at rest, and clicks on it."""

    def zoom(self, factor: float) -> None:
        """Zoom in on one of the points."""
        camera = camera_of(self.viewer)
        place = self.dock.controller.layers.points.data[5]
        camera.center = (0.0, *map(float, place))
        camera.zoom *= factor

    def pan(self) -> None:
        """Move the camera by a tenth of the map."""
        camera = camera_of(self.viewer)
        camera.center = (0.0, camera.center[1], camera.center[2] + 100.0)

    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield what a person does, by its name."""
        clear = self.session.selection.clear
        yield "pan", self.pan
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


def look(n_points: int, pictures: Path | None) -> list[dict[str, Any]]:
    """Show a map in a window of this process; return a row for each action."""
    app = Clock(sys.argv[:1])
    import napari

    viewer = napari.Viewer()
    viewer.window.resize(1500, 950)
    before, begun = memory(), time.perf_counter()
    making = timed(MapLayers, "_replace")
    visitor = Visitor(app, viewer, n_points)
    rows = [
        {
            "points": n_points,
            "action": f"open ({time.perf_counter() - begun - 3.0:.0f} s)",
            "own, ms": 1e3 * max(making),
            "drawing, ms": float("nan"),
            "shows": visitor_shows(visitor),
            "memory, GiB": memory() - before,
        }
    ]
    _save(viewer, pictures, f"{n_points}_open")
    for name, action in visitor.steps():
        own, drawing = app.measure(action)
        rows.append(
            {
                "points": n_points,
                "action": name,
                "own, ms": own,
                "drawing, ms": drawing,
                "shows": visitor_shows(visitor),
                "memory, GiB": memory() - before,
            }
        )
        _save(viewer, pictures, f"{n_points}_{name.replace(' ', '_')}")
    visitor.dock.controller.session_store.close()
    viewer.close()
    app.rest(0.5)
    return rows


def timed(owner: Any, name: str) -> list[float]:
    """Return where the processor seconds of each call of a method are put."""
    seconds: list[float] = []
    method = getattr(owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        begun = time.thread_time()
        try:
            return method(*args, **kwargs)
        finally:
            seconds.append(time.thread_time() - begun)

    setattr(owner, name, call)
    return seconds


def visitor_shows(visitor: Visitor) -> str:
    """Return what is drawn of the points."""
    return "density" if visitor.dock.controller.layers.is_density else "points"


def _save(viewer: Any, pictures: Path | None, name: str) -> None:
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        viewer.window.screenshot(str(pictures / f"{name}.png"), flash=False)


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
        rest={"type": int, "nargs": "*", "default": [1_000_000, 20_000_000]},
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
