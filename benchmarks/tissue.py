"""How long a window with cells in tissue takes, and how long it is held.

A file of cells with positions in tissue is opened by its dialog and has a map; then the
tissue is shown beside it, and a lasso is traced in the tissue with the mouse until its
cells are lit on the map.  Then the camera moves 60 times.  A timer
of the window asks for its turn every 5 ms: the longest time between two turns is the
longest block, with drawing; "busy" is the processor time of the window's own thread,
which other programs on the machine do not change much.  Memory is the most that the
process has held so far.

Without a display: xvfb-run -a -s "-screen 0 1600x1000x24" python tissue.py ...
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_embedding_game.core.snapshot import Snapshot

TICK_MS, MOVES = 5, 60
QUICK_CELLS = 20_000
GIB = 1024**2
"""KiB."""


def write_cells(path: Path, n_cells: int) -> None:
    """Write cells of 8 types in 10 mm x 10 mm of tissue."""
    import anndata

    rng = np.random.default_rng(0)
    places = rng.uniform(0, 10_000, (n_cells, 2)).astype(np.float32)
    types = (
        (places // 2_500).sum(axis=1).astype(int) + rng.integers(0, 3, n_cells)
    ) % 8
    X = rng.normal(size=(8, 10))[types] * 3 + rng.normal(size=(n_cells, 10))
    X = X.astype(np.float32)
    anndata.AnnData(X, obsm={"X_pca": X, "spatial": places}).write_h5ad(path)


def make_snapshot(X: np.ndarray) -> Snapshot:
    """Return a map of the cells by two of their numbers, in four clusters."""
    places = np.ascontiguousarray(X[:, :2])
    labels = (places > 0).astype(np.int32) @ np.array([1, 2], np.int32)
    centers = np.array([[-3, -3], [3, -3], [-3, 3], [3, 3]], np.float32)
    parts = {"embedding": places, "landmarks": centers, "labels": labels}
    no_pressure = np.zeros(len(X), np.float32)
    return Snapshot(iteration=0, n_iter=0, pressure=no_pressure, energy=0.0, **parts)


def watch(path: Path) -> list[dict[str, Any]]:
    """Open a file in a window, go through all steps, and return a row for each."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
    import torch  # noqa: F401  before Qt, as the program does
    from qtpy.QtCore import QPoint, Qt, QTimer
    from qtpy.QtTest import QTest

    from person import settle
    from window import opened

    rows, turns = list[dict[str, Any]](), list[tuple[float, float]]()

    def turn() -> None:
        turns.append((time.perf_counter(), time.thread_time()))

    @contextmanager
    def timed(step: str) -> Iterator[None]:
        turns.clear()
        turn()
        yield
        settle()
        turn()
        seconds, busy = np.array(turns).T
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rows.append(
            {
                "step": step,
                "s": seconds[-1] - seconds[0],
                "busy, s": busy[-1] - busy[0],
                "longest block, ms": 1e3 * float(np.diff(seconds).max()),
                "longest busy, ms": 1e3 * float(np.diff(busy).max()),
                "GiB": most / GIB,
            }
        )

    with opened(1500, 950) as person:
        ticks = QTimer()
        ticks.setTimerType(Qt.TimerType.PreciseTimer)
        ticks.timeout.connect(turn)
        ticks.start(TICK_MS)
        session, dock, canvas = person.session, person.dock, person.canvas
        scene, camera = dock.controller.scene, person.viewer.scene.camera
        shown = dock.selection_controls.shown
        with timed("open"):
            person.open(path)
        # To play takes minutes, and is not what is measured here.
        saved, cells = session.to_saved_map(), session.dataset
        session.restore(replace(saved, snapshot=make_snapshot(cells.X)))
        scene.fit_camera()
        person.rest(5)
        with timed("show the tissue beside it"):
            person.choose_in(shown, "Map and tissue")
        person.rest(3)

        def move(step: Callable[[int], None]) -> None:
            for number in range(MOVES):
                step(number)
                person.viewer.window._qt_viewer.canvas.native.update()
                settle()

        def pan(number: int) -> None:
            y, x = camera.center[-2:]
            camera.center = (0, y + 5 / camera.zoom, x + 5 / camera.zoom)

        layout, drawn = session.view.tissue, scene.tissue_layers.projection()
        middle = np.nanmedian(layout.positions, axis=0)
        angle = np.linspace(0, 2 * np.pi, 40)
        ring = 1_500 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + middle
        pixels = [
            QPoint(*one) for one in drawn.to_pixels(ring).round().astype(int).tolist()
        ]
        shift, left = Qt.KeyboardModifier.ShiftModifier, Qt.MouseButton.LeftButton
        with timed("lasso in tissue, lit on the map"):
            QTest.mouseMove(canvas, pixels[0])
            QTest.mousePress(canvas, left, shift, pixels[0])
            for pixel in pixels[1:]:
                QTest.mouseMove(canvas, pixel)
                settle()
            QTest.mouseRelease(canvas, left, shift, pixels[-1])
            person.wait(lambda: not session.selection.is_empty, "the selection")
        print(f"{len(session.selection.rows):,} cells are in the lasso.")
        person.rest(5)
        with timed(f"pan {MOVES} times"):
            move(pan)
        with timed("tissue alone"):
            person.choose_in(shown, "Tissue")
        camera.zoom *= 8
        person.rest(2)
        with timed(f"pan {MOVES} times, 8 times larger"):
            move(pan)
        with timed("back to the map"):
            person.choose_in(shown, "Map")
        ticks.stop()
    return rows


def main() -> None:
    """Print what a window with so many cells took."""
    from shared import arguments, report

    cells = {"type": int, "default": 1_000_000, "help": "cells of the file"}
    args = arguments(__doc__, cells=cells)
    n_cells = QUICK_CELLS if args.quick else args.cells
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cells.h5ad")
        write_cells(path, n_cells)
        report(f"{n_cells:,} cells in tissue", watch(path), args)


if __name__ == "__main__":
    main()
