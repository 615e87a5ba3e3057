"""How long the window's thread is held during a run, and how soon the map moves.

Every repeat is a process of its own that opens napari with the docks, loads a
file and clicks on Run.  A timer of the window asks for its turn every 5 ms; what
it is late by, less the time in which the window was drawing, is "held".  Drawing
is all time in which Qt handles a paint or update request of any widget, and in
which the map's two layers are made, moved or handed new points: napari's and
vispy's part.  What is left is the plugin's own.
"busy" is the processor time that the window's own thread took in such a turn, again
without drawing: other programs on the machine do not change it much, while "held"
also has the waiting for a core and for other Python threads.
"idle" is the same window before the click: the ratio is to that.
The first moved frame counts when it has been drawn, not when it arrives.
``--given N ...`` times instead the click on *Show the map* of files of so many cells
that hold a map, until it is drawn and its misplaced points are known.

Without a display: xvfb-run -a -s "-screen 0 1600x1000x24" python window.py ...
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from qtpy.QtCore import QEvent, QObject, Qt, QTimer
from qtpy.QtWidgets import QApplication

from napari_embedding_game.ui.tasks.worker import DRAWN_MS

CHILD = "--in-this-process"
INTERVAL = 0.005
IDLE_SECONDS = 2.0
DRAWING = (QEvent.Type.Paint, QEvent.Type.UpdateRequest, QEvent.Type.UpdateLater)


class TimedApplication(QApplication):
    """Adds up the time spent in drawing."""

    drawn = 0.0
    """Seconds of drawing since this was last set to 0."""
    drawn_busy = 0.0
    """Processor seconds of this thread in them."""
    draws: list[float]
    _depth = 0

    def notify(self, receiver: QObject, event: QEvent) -> bool:
        """Handle an event; those inside of a drawing one count with it."""
        if event.type() not in DRAWING:
            return super().notify(receiver, event)
        with self.drawing():
            return super().notify(receiver, event)

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Count what is done as drawing; what is inside of it counts with it."""
        if self._depth:
            yield
            return
        begin, busy = time.perf_counter(), time.thread_time()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            seconds = time.perf_counter() - begin
            self.drawn += seconds
            self.drawn_busy += time.thread_time() - busy
            self.draws.append(seconds)

    def count_as_drawing(self, target: Any, name: str) -> None:
        """Count the calls of a method of ``target`` as drawing."""
        method = getattr(target, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            with self.drawing():
                return method(*args, **kwargs)

        setattr(target, name, counted)


class Watch:
    """Follows one run in one window."""

    def __init__(
        self, app: TimedApplication, viewer: Any, path: Path, is_given: bool
    ) -> None:
        from napari_embedding_game.ui.plugin import open_dock

        self._app, self._viewer = app, viewer
        self._dock = dock = open_dock(viewer)
        self._session = dock.controller.session
        app.draws = []
        for name in (
            "add_blank_layers",
            "prepare_layers",
            "show_snapshot",
            "refresh_thumbnails_and_extents",
        ):
            app.count_as_drawing(dock.controller.scene.map_layers, name)
        self.held: dict[str, list[float]] = {}
        self.busy: dict[str, list[float]] = {}
        self.seconds: dict[str, float] = {}
        self.phase = "opening"
        self._has_moved = False
        self._path = path
        self._button = (
            dock.run_controls.given_button if is_given else dock.run_controls.run_button
        )
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._last, self._last_busy = time.perf_counter(), time.thread_time()
        self._timer.start(int(1000 * INTERVAL))
        self._session.progressed.connect(self._on_progress)
        self._session.state_changed.connect(self._on_state)
        dock.workspace.trouble.connect(self._on_trouble)

    def begin(self, idle_seconds: float) -> None:
        """Load, wait, click."""
        from napari_embedding_game.session.sources import FileSource

        def loaded() -> None:
            self.phase = "idle"
            QTimer.singleShot(int(1000 * idle_seconds), self._click)

        self._dock.controller.reading.load(FileSource(self._path), then=loaded)

    def _click(self) -> None:
        self._app.draws.clear()
        self.phase = "preparing"
        self._clicked = time.perf_counter()
        self._button.click()

    def _tick(self) -> None:
        now, now_busy = time.perf_counter(), time.thread_time()
        held = now - self._last - INTERVAL - self._app.drawn
        busy = now_busy - self._last_busy - self._app.drawn_busy
        self.held.setdefault(self.phase, []).append(max(0.0, held))
        self.busy.setdefault(self.phase, []).append(max(0.0, busy))
        self._last, self._last_busy = now, now_busy
        self._app.drawn = self._app.drawn_busy = 0.0

    def _on_progress(self, progress: Any) -> None:
        if progress.snapshot is None:
            return
        self.phase = "playing"
        if progress.snapshot.iteration > 0 and not self._has_moved:
            self._has_moved = True
            QTimer.singleShot(DRAWN_MS, self._on_drawn)

    def _on_drawn(self) -> None:
        self.seconds["first moved frame"] = self._passed()

    def _on_state(self, state: str) -> None:
        if state == "failed":
            self._on_trouble(self._session.message)
        elif state == "finished":
            self.seconds["end"] = self._passed()
            QTimer.singleShot(DRAWN_MS, self._on_rest)
            QTimer.singleShot(500, self._leave)

    def _on_rest(self) -> None:
        self.seconds["end drawn"] = self._passed()

    def _on_trouble(self, sentence: str) -> None:
        if sentence:
            print(sentence, file=sys.stderr)
            self._app.exit(1)

    def _leave(self) -> None:
        self._timer.stop()
        self._viewer.close()
        QTimer.singleShot(0, self._app.quit)

    def _passed(self) -> float:
        return time.perf_counter() - self._clicked


def watch(path: Path, idle_seconds: float, out: Path, *, is_given: bool) -> int:
    """Open the window on a file, run, and write what was seen."""
    import torch  # noqa: F401  before Qt, as the program does

    app = TimedApplication(sys.argv[:1])
    app.draws = []
    import napari

    viewer = napari.Viewer()
    viewer.window.resize(1500, 950)
    seen = Watch(app, viewer, path, is_given)
    QTimer.singleShot(0, lambda: seen.begin(idle_seconds))
    code = app.exec()
    found = {
        "held": seen.held,
        "busy": seen.busy,
        "seconds": seen.seconds,
        "draws": app.draws,
    }
    out.write_text(json.dumps(found))
    return code


# --- The process that starts the others


def in_new_process(
    path: Path, idle_seconds: float, button: str = "run"
) -> dict[str, Any]:
    """Return what :func:`watch` sees in a cold process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "seen.json")
        command = [
            sys.executable,
            __file__,
            CHILD,
            str(path),
            str(idle_seconds),
            str(out),
            button,
        ]
        subprocess.run(command, check=True)
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def held_rows(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each phase: the worst of every repeat, and a usual one."""
    rows: list[dict[str, Any]] = []
    for phase in ("idle", "preparing", "playing"):
        held = [1e3 * np.array(run["held"][phase]) for run in runs]
        busy = [1e3 * np.array(run["busy"][phase]) for run in runs]
        worst = float(np.median([turns.max() for turns in held]))
        rows.append(
            {
                "phase": phase,
                "longest held, ms": worst,
                "to idle": worst / (rows[0]["longest held, ms"] if rows else worst),
                "held, 99 %": float(np.percentile(np.concatenate(held), 99)),
                "held above 50 ms": sum(int((turns > 50).sum()) for turns in held),
                "longest busy, ms": float(np.median([turns.max() for turns in busy])),
                "turns": sum(map(len, held)),
            }
        )
    return rows


def seconds_row(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the times from the click, and how long a drawing took."""
    from shared import median

    def times(key: str) -> list[float]:
        return [run["seconds"][key] for run in runs]

    draws = [1e3 * seconds for run in runs for seconds in run["draws"]]
    return {
        "input": name,
        "click to first moved frame, s": median(times("first moved frame")),
        "click to end, s": median(times("end")),
        "first, to end": statistics.median(times("first moved frame"))
        / statistics.median(times("end")),
        "drawings": len(draws) // len(runs),
        "longest drawing, ms": max(draws),
    }


def given_row(n_cells: int, repeats: int, folder: Path) -> dict[str, Any]:
    """Return the time until a file's own map is drawn and its misplaced points known.

    The map is ours, of synthetic rows: whose it is makes no difference to the time.
    """
    import anndata

    from napari_embedding_game import EmbeddingGame
    from neighbours_scaling import clouds
    from shared import median

    X, path = clouds(n_cells), folder / f"{n_cells}.h5ad"
    umap = EmbeddingGame().fit_transform(X)
    anndata.AnnData(X, obsm={"X_pca": X, "X_umap": umap}).write_h5ad(path)
    runs = [in_new_process(path, IDLE_SECONDS, "given") for _ in range(repeats)]
    found = [run["seconds"]["end drawn"] for run in runs]
    return {
        "cells": n_cells,
        "click to the map and its misplaced points, s": median(found),
    }


def main() -> None:
    """Print what the windows saw."""
    from shared import arguments, load, report

    cells_of = {"type": int, "nargs": "+", "help": "cells of files with a map"}
    args = arguments(__doc__, given=cells_of)
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        sys.exit("There is no display: start this with xvfb-run (see --help).")

    def repeat(path: Path, idle_seconds: float) -> list[dict[str, Any]]:
        return [in_new_process(path, idle_seconds) for _ in range(args.repeats)]

    if args.given:
        with tempfile.TemporaryDirectory() as made:
            shown = [given_row(n, args.repeats, Path(made)) for n in args.given]
        report("A map that was made elsewhere", shown, args)
        return
    rows = []
    cells = args.data / "pbmc3k_lognorm.h5ad"
    if cells.exists():
        rows.append(seconds_row("PBMC, clicked at once", repeat(cells, 0.0)))
        rows.append(seconds_row("PBMC, clicked later", repeat(cells, 5.0)))
    digits = load("mnist", args)
    if digits is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "mnist.npz")
            np.savez(path, X=digits.X, y=digits.labels)
            runs = repeat(path, IDLE_SECONDS)
        rows.append(seconds_row(f"MNIST, {len(digits.X):,} x 50", runs))
        report(f"Held, {len(digits.X):,} points", held_rows(runs), args)
    report("From the click", rows, args)


if __name__ == "__main__":
    if CHILD in sys.argv:
        where, idle, found, clicked = sys.argv[sys.argv.index(CHILD) + 1 :]
        is_given = clicked == "given"
        sys.exit(watch(Path(where), float(idle), Path(found), is_given=is_given))
    main()
