"""Seconds for a frame on the canvas: as one picture, and by napari's points.

Both draw the same snapshots in the same window, one after the other.  A frame is
everything from ``MapLayers.show`` until OpenGL has drawn the canvas.

    python benchmarks/drawing.py 10000 70000 1000000

Without a display: xvfb-run -a -s "-screen 0 1600x1000x24" python benchmarks/drawing.py
"""

from __future__ import annotations

import argparse
import statistics
import time

import napari
import numpy as np
import pandas as pd
from qtpy.QtWidgets import QApplication

from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.ui import compat
from napari_embedding_game.ui.canvas import map_picture
from napari_embedding_game.ui.canvas.map_layers import MapLayers

GROUPS, FRAMES = 30, 9
RESTING = map_picture.RESTING_SECONDS
WAYS = {"picture": 0.0, "napari's points": np.inf}


def snapshots(n_points: int) -> list[Snapshot]:
    """Return frames of groups that move apart."""
    rng = np.random.default_rng(0)
    centers = rng.uniform(-20, 20, (GROUPS, 2)).astype(np.float32)
    labels = rng.integers(0, GROUPS, n_points).astype(np.int32)
    around = rng.normal(0, 1.5, (n_points, 2)).astype(np.float32)
    return [
        Snapshot(
            iteration=i,
            n_iter=FRAMES,
            embedding=centers[labels] * (1 + i / 5) + around,
            landmarks=centers * (1 + i / 5),
            energy=0.0,
            labels=labels,
            pressure=np.zeros(n_points, np.float32),
        )
        for i in range(FRAMES)
    ]


def frame_seconds(viewer: napari.Viewer, frames: list[Snapshot]) -> float:
    """Return the median seconds of a frame, the first ones left out."""
    layers = MapLayers(viewer, lambda: None)
    labels = frames[0].labels
    colors = np.random.default_rng(1).random((GROUPS, 4)).astype(np.float32)
    colors[:, 3] = 1.0
    layers.begin(frames[0], pd.DataFrame(index=range(len(labels))))
    seconds = []
    for frame in frames:
        begun = time.perf_counter()
        layers.show(frame, colors[labels])
        scene = compat.scene_of(viewer, layers.points)
        assert scene is not None
        compat.draw_now(scene)
        QApplication.processEvents()
        seconds.append(time.perf_counter() - begun)
    layers.clear()
    layers.close()
    return statistics.median(seconds[2:])


def main() -> None:
    """Print a line for each number of points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_points", type=int, nargs="*", default=[10_000, 70_000])
    sizes = parser.parse_args().n_points
    viewer = napari.Viewer()
    viewer.window.resize(1500, 950)
    QApplication.processEvents()
    print("| points | " + " | ".join(f"{way}, ms" for way in WAYS) + " | ratio |")
    print("|---|---|---|---|")
    for n_points in sizes:
        frames = snapshots(n_points)
        taken = []
        for limit in WAYS.values():
            map_picture.MOVING_SECONDS = limit
            # Of points that take longer napari would draw some only.
            map_picture.RESTING_SECONDS = max(limit, RESTING)
            taken.append(frame_seconds(viewer, frames))
        cells = " | ".join(f"{1000 * seconds:.0f}" for seconds in taken)
        print(f"| {n_points:,} | {cells} | {taken[0] / taken[1]:.2f} |")
    viewer.close()


if __name__ == "__main__":
    main()
