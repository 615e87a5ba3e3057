"""How long it takes until what is chosen in one view is chosen in all.

A label image of 100,489 objects and its map in a window with both docks; a cluster,
a point of the map, an object of the image and a picture are chosen in turn, the first
and the last as a click on them does, the others by a click of the mouse.  "own" is
the processor time of the window's thread from the choice until nothing is left to do,
without painting; "all" has the painting and the waiting too, up to the last event.
Every row is the median of the choices, and the longest.

Without a display: xvfb-run -a -s "-screen 0 1600x1000x24" python linking.py
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtCore import QPoint, Qt, QTimer
from qtpy.QtTest import QTest

from shared import arguments, report
from window import TimedApplication

SIDE, CELL, OBJECT = 317, 6, 4
"""Objects along a side, pixels from one to the next, pixels of an object's side."""
QUIET = 0.3
"""Seconds without any work after which nothing is left to do."""


def label_image(side: int) -> np.ndarray:
    """Return squares on a grid, numbered from 1."""
    square = np.zeros((CELL, CELL), np.int32)
    square[:OBJECT, :OBJECT] = 1
    numbers = np.arange(1, side * side + 1, dtype=np.int32).reshape(side, side)
    return np.kron(numbers, square)


def table(n_rows: int) -> pd.DataFrame:
    """Return ten measures of objects of ten kinds, and their labels."""
    rng = np.random.default_rng(0)
    kinds = 4 * rng.normal(size=(10, 10))[rng.integers(10, size=n_rows)]
    measures = pd.DataFrame(kinds + rng.normal(size=(n_rows, 10))).add_prefix(
        "measure "
    )
    measures.insert(0, "label", np.arange(1, n_rows + 1))
    return measures


class Window:
    """napari with both docks, the objects and their map."""

    def __init__(self, app: TimedApplication, side: int) -> None:
        import napari

        from napari_embedding_game.session.sources import FeaturesSource
        from napari_embedding_game.ui.images.linked_layers import Linked
        from napari_embedding_game.ui.plugin import open_docks

        self._app = app
        self.viewer = napari.Viewer()
        self.viewer.window.resize(1500, 950)
        self.dock = open_docks(self.viewer)
        self.session = self.dock.controller.session
        image = label_image(side)
        self.labels = self.viewer.add_labels(image, name="objects")
        source = FeaturesSource(table(side * side), "objects", image)
        loaded: list[Any] = []
        self.dock.controller.reading.loaded.connect(lambda *_: loaded.append(1))
        self.dock.controller.reading.load(source, linked=Linked(self.labels))
        self.wait(lambda: bool(loaded))
        self.session.settings.max_iter = 100
        self.dock.run.run.native.click()
        self.wait(lambda: self.session.state == "finished")
        self.viewer.reset_view()
        self.settle()

    def wait(self, condition: Callable[[], bool]) -> None:
        """Handle events until something is so."""
        end = time.monotonic() + 300
        while not condition():
            if time.monotonic() > end:
                sys.exit("The window did not come so far in 300 s.")
            self._app.processEvents()
            time.sleep(0.002)

    def settle(self) -> float:
        """Handle events until there is no more work; return when that was done."""
        done = time.perf_counter()
        while time.perf_counter() - done < QUIET:
            before = time.thread_time()
            self._app.processEvents()
            if time.thread_time() - before > 1e-3:
                done = time.perf_counter()
            time.sleep(0.001)
        return done

    def timed(self, choose: Callable[[], None]) -> tuple[float, float]:
        """Return own and all milliseconds of one choice."""
        self._app.drawn = self._app.drawn_busy = 0.0
        begin, busy = time.perf_counter(), time.thread_time()
        choose()
        done = self.settle()
        own = time.thread_time() - busy - self._app.drawn_busy
        return 1e3 * own, 1e3 * (done - begin)

    def click(self, world: np.ndarray) -> None:
        """Click on the canvas where a place of the world is drawn."""
        from napari_embedding_game.ui.canvas.projection import projection_of
        from napari_embedding_game.ui.compat import canvas_widget

        drawn = projection_of(self.viewer, self.dock.controller.layers.points)
        (pixel,) = drawn.to_pixels(np.atleast_2d(world)[:, -2:])
        canvas = canvas_widget(self.dock)
        place = QPoint(*map(round, pixel))
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)


def ways(window: Window) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Yield the ways to choose, each by a number."""
    session, controller = window.session, window.dock.controller

    def cluster(number: int) -> None:
        clusters = session.clusters.clusters
        session.selection.replace([clusters[number % len(clusters)].id])

    def point(number: int) -> None:
        row = 9_973 * (number + 1) % len(session.dataset.obs)
        window.click(controller.layers.points.data[row])

    def thing(number: int) -> None:
        row = 7_919 * (number + 1) % len(session.dataset.obs)
        middle = session.dataset.objects.centers[row]
        window.click(np.asarray(window.labels.data_to_world(middle)))

    def picture(number: int) -> None:
        session.selection.select_points(
            np.array([6_007 * (number + 1) % len(session.dataset.obs)])
        )

    yield "a row of the cluster table", cluster
    yield "a click on the map", point
    yield "a click on an object", thing
    yield "a picture", picture


def main() -> None:
    """Print how long each way takes."""
    args = arguments(__doc__, repeats=7)
    app = TimedApplication(sys.argv[:1])
    app.draws = []
    rows: list[dict[str, Any]] = []

    def measure() -> None:
        window = Window(app, 60 if args.quick else SIDE)
        for name, choose in ways(window):
            choose(99)  # what is made once is made
            window.settle()
            found = [window.timed(partial(choose, n)) for n in range(args.repeats)]
            own, whole = zip(*found, strict=True)
            rows.append(
                {
                    "chosen": name,
                    "own, ms": statistics.median(own),
                    "longest own": max(own),
                    "all, ms": statistics.median(whole),
                    "longest": max(whole),
                    "selected": int(window.session.selection.points.sum()),
                }
            )
        window.viewer.close()
        app.quit()

    QTimer.singleShot(0, measure)
    app.exec()
    report("Linking", rows, args)


if __name__ == "__main__":
    main()
