"""How long a move of napari's time slider holds the window, beside a map of tracks.

A movie of labels, one object for each moment of each track, lies beside a synthetic
map of all moments.  The slider moves 60 times a second.  "held" is the time of one
move, from setting the slider until the window has been drawn; "busy" the processor time
of the window's thread in it, "own" the same without drawing.  The peer is the same
window with the same layers before it has the dock.

    python benchmarks/time_slider.py --frames 500 --objects 500

Without a display: xvfb-run -a -s "-screen 0 1600x1000x24" python time_slider.py ...
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from large_map import Clock, StandIn, synthetic
from shared import arguments, report

SIDE = 9
"""Pixels along the side of an object's place, of which the object fills 5."""
MOVES, SECOND = 60, 60
"""Moves of the slider, and how many there are in a second."""


def movie(n_frames: int, n_objects: int) -> tuple[np.ndarray, Any, np.ndarray]:
    """Return labels (t, y, x), their objects by frame, and vertices of tracks."""
    from napari_embedding_game.data.label_objects import Objects

    across = int(np.ceil(np.sqrt(n_objects)))
    ids = np.arange(n_objects)
    places = np.stack([ids // across, ids % across], axis=1) * SIDE
    labels = np.zeros((n_frames, across * SIDE, across * SIDE), np.int32)
    boxes, vertices = [], []
    for t in range(n_frames):
        corner = places + np.random.default_rng(t).integers(0, 4, places.shape)
        for label, (y, x) in enumerate(corner, 1):
            labels[t, y : y + 5, x : x + 5] = label
        ends = np.full((n_objects, 1), t), corner
        boxes.append(np.hstack([*ends, ends[0] + 1, corner + 5]))
        vertices.append(np.hstack([ids[:, None], ends[0], corner + 2]))
    n = n_frames * n_objects
    every = np.tile(ids + 1, n_frames), np.vstack(boxes), np.full(n, 25)
    return labels, Objects(*every), np.vstack(vertices).astype(float)


def slide(app: Clock, viewer: Any, what: str) -> dict[str, Any]:
    """Move the slider, and return how long each move held the window."""
    held, busy, own = list[float](), list[float](), list[float]()
    n_frames = int(viewer.dims.nsteps[0])
    viewer.dims.set_point(0, 0)
    app.rest(2.0)
    for move in range(MOVES):
        begun, begun_busy, app.drawn = time.perf_counter(), time.thread_time(), 0.0
        viewer.dims.set_point(0, (7 * move) % n_frames)
        app.processEvents()
        app.processEvents()  # requests to paint that came of the first
        busy.append(1e3 * (time.thread_time() - begun_busy))
        held.append(1e3 * (time.perf_counter() - begun))
        own.append(busy[-1] - 1e3 * app.drawn)
        time.sleep(max(0.0, 1 / SECOND - held[-1] / 1e3))
    print(f"{what}: {statistics.median(busy):.1f} ms busy a move", flush=True)
    return {
        "window": what,
        "held, ms": statistics.median(held),
        "longest": max(held),
        "busy": statistics.median(busy),
        "own": statistics.median(own),
        "longest own": max(own),
    }


def look(n_frames: int, n_objects: int) -> list[dict[str, Any]]:
    """Return a row for each state of the window."""
    app = Clock(sys.argv[:1])
    import napari

    from napari_embedding_game.session.session import Session
    from napari_embedding_game.ui.game_dock import GameDock
    from napari_embedding_game.ui.images.linked_layers import ObjectLayers
    from napari_embedding_game.ui.workspace import Workspace

    labels, objects, vertices = movie(n_frames, n_objects)
    viewer = napari.Viewer()
    viewer.window.resize(1500, 950)
    layer = viewer.add_labels(labels, name="cells")
    viewer.add_tracks(vertices, name="tracks")
    rows = [slide(app, viewer, "napari alone")]
    snapshot, dataset = synthetic(len(objects))
    obs = pd.DataFrame({"time": objects.boxes[:, 0]}, index=dataset.obs.index)
    dataset = replace(
        dataset,
        obs=obs,
        source_obs=obs,
        source_objects=objects,
        roles={"time": "times"},
    )
    session = Session(StandIn(snapshot))
    session.load(dataset)
    workspace = Workspace(session)
    dock = GameDock(viewer, workspace, warm_up=False)
    viewer.window.add_dock_widget(dock, name="game")
    workspace.linked_layers.set_layers(ObjectLayers(layer))
    app.rest(2.0)
    dock.run_controls.run_button.click()
    while session.state != "finished":
        app.rest(0.1)
    app.rest(3.0)
    assert "track_id" in session.dataset.obs, session.message
    select: Callable[[list[int]], None] = session.selection.select_points
    states: dict[str, Callable[[], Any]] = {
        "with the map": session.selection.clear,
        "a track selected": lambda: select(np.arange(5, len(objects), n_objects)),
        "objects coloured": lambda: (
            session.selection.clear(),
            setattr(session.look, "color_objects", True),
        ),
        "both": lambda: select(np.arange(5, len(objects), n_objects)),
    }
    for name, begin in states.items():
        begin()
        rows.append(slide(app, viewer, name))
    dock.controller.session_store.close()
    viewer.close()
    app.rest(0.5)
    return rows


def main() -> None:
    """Print how long the window was held."""
    sizes = {"type": int, "default": 500}
    args = arguments(__doc__, frames=sizes, objects=sizes)
    size = (20, 20) if args.quick else (args.frames, args.objects)
    report(f"{size[0]} frames of {size[1]} objects", look(*size), args)


if __name__ == "__main__":
    main()
