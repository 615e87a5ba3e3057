"""A map that goes on in another number of dimensions, beside one that is begun in it.

- 2, 3: begun anew in so many dimensions
- 2 to 3: goes on from the finished flat map, as in the window
- 3 to 2: goes on from the finished map in space

Kept are the share of the 15 nearest rows of the data that are among the 15 nearest on
the map, and of random triplets whose order of distances is that of the data.  Thin is
the spread along the last principal axis, relative to that along the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.energy.methods import resolve
from napari_embedding_game.core.inspect.map_quality import map_quality
from napari_embedding_game.core.types import (
    GameSettings,
    Snapshot,
    StartSettings,
    WarmStart,
)
from napari_embedding_game.session.steering import redimensioned
from shared import Input, arguments, load_all, report

INPUTS = ("digits", "pbmc")
MOST_ROWS = 3_000


def maps(X: np.ndarray, method: str) -> dict[str, np.ndarray]:
    """Return the layouts by what they are called in the table."""
    game = GameSettings(method=method)
    flat = resolve(StartSettings(), method)
    space = resolve(StartSettings(n_components=3), method)
    graph = pipeline.neighbors(X, flat)
    edges, layout = pipeline.place(graph, X, flat)

    def play(
        start: StartSettings, layout: np.ndarray, warm: WarmStart | None = None
    ) -> Snapshot:
        frames = pipeline.begin(edges, layout, start, game, warm_start=warm)
        return [*frames][-1]

    def goes_on(snapshot: Snapshot, start: StartSettings) -> Snapshot:
        before = WarmStart(embedding=snapshot.embedding, landmarks=snapshot.landmarks)
        seed = start.random_state
        warm = redimensioned(before, start.n_components, seed, snapshot).layout
        return play(start, warm.embedding, warm)

    two = play(flat, layout)
    three = play(space, pipeline.place(graph, X, space)[1])
    found = {
        "2": two,
        "3": three,
        "2 to 3": goes_on(two, space),
        "3 to 2": goes_on(three, flat),
    }
    return {name: snapshot.embedding for name, snapshot in found.items()}


def rows_of(data: Input, method: str) -> list[dict[str, Any]]:
    """Judge the four maps of one input."""
    rows = []
    for name, embedding in maps(data.X, method).items():
        quality = map_quality(data.X, embedding, None, metric="euclidean")
        spread = np.linalg.svd(embedding - embedding.mean(axis=0), compute_uv=False)
        rows.append(
            {
                "input": f"{data.name}, {len(data.X):,}",
                "method": method,
                "dimensions": name,
                "neighbours kept": "–"
                if quality is None
                else f"{quality.neighbors_kept:.3f}",
                "triplets": "–" if quality is None else f"{quality.triplets:.3f}",
                "thin": f"{spread[-1] / spread[0]:.2f}",
            }
        )
    return rows


def main() -> None:
    """Print the table."""
    args = arguments(__doc__, repeats=1)
    rows = []
    for data in load_all(INPUTS, args):
        for method in ("game", "tsne"):
            rows += rows_of(data.some(MOST_ROWS), method)
    report("Maps that go on in another number of dimensions", rows, args)


if __name__ == "__main__":
    main()
