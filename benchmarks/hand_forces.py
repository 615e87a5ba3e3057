"""How a map follows a hand that drags a group of its points by a spring.

    python benchmarks/hand_forces.py                # scikit-learn's digits
    python benchmarks/hand_forces.py --data X.npz   # arrays "X" (N, D) and "y" (N,)

For each class of the data: a finished map plays on, the points of the class are drawn
by one map's radius straight away from the middle, the spring is released, and the
schedule is played to its end.  Told are, as medians over the classes, in radii of the
map: how far the class went by the time of the release and at the end; how far other
points went meanwhile, those with at least half of their edges into the class (nan where
there are none) and those with no edge; and how the recall of its neighbours changed.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics import hand_forces
from napari_embedding_game.core.energy.methods import resolve
from napari_embedding_game.core.types import (
    NO_FORCES,
    GameSettings,
    HandForces,
    Spring,
    StartSettings,
    Steer,
    WarmStart,
)

HELD = 200
"""Iterations of pulling."""


def main() -> None:
    """Print a line for each stiffness and speed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data")
    parser.add_argument("--most-classes", type=int, default=10)
    arguments = parser.parse_args()
    X, y = _data(arguments.data)
    game = GameSettings()
    start = resolve(StartSettings(), game.method)
    graph = pipeline.neighbors(X, start)
    edges, layout = pipeline.place(graph, X, start)
    *_, finished = pipeline.begin(edges, layout, start, game, diagnose=False)
    classes = np.unique(y)[: arguments.most_classes]
    print(f"{len(X):,} rows, {len(classes)} classes")
    print("stiffness fastest | class: released  end | linked  strangers | recall")
    for stiffness in (0.03, 0.1, 0.3):
        for fastest in (0.005, 0.02, 0.08, 1.0):
            hand_forces.STIFFNESS, hand_forces.FASTEST = stiffness, fastest
            told = [_drag(edges, start, game, finished, y == one) for one in classes]
            one, end, linked, strangers, recall = np.median(told, axis=0)
            print(
                f"{stiffness:9} {fastest:7} | {one:15.2f} {end:4.2f} |"
                f" {linked:6.2f} {strangers:10.2f} | {recall:+.3f}",
                flush=True,
            )


def _data(path: str | None) -> tuple[np.ndarray, np.ndarray]:
    if path is not None:
        with np.load(path, allow_pickle=True) as arrays:
            return arrays["X"].astype(np.float32), np.asarray(arrays["y"])
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.data.astype(np.float32), digits.target


def _drag(edges, start, game, snapshot, is_dragged) -> tuple[float, ...]:
    before = snapshot.embedding
    radius = np.sqrt(((before - before.mean(axis=0)) ** 2).sum(axis=1).mean())
    rows = np.flatnonzero(is_dragged)
    middle = before[rows].mean(axis=0)
    away = middle - before.mean(axis=0)
    to = middle + away / max(np.linalg.norm(away), 1e-6) * radius
    warm = WarmStart(embedding=before, landmarks=snapshot.landmarks)
    playing = pipeline.begin(
        edges,
        before,
        start,
        game,
        diagnose=False,
        warm_start=warm,
        frame_iterations=10,
    )
    next(playing)
    spring = Spring(rows=rows, place=tuple(to.tolist()))
    held = playing.send(Steer(forces=HandForces(springs=(spring,))))
    while held.iteration < HELD:
        held = next(playing)
    last = playing.send(Steer(forces=NO_FORCES))
    while not last.finished:
        last = next(playing)
    n = len(before)
    ones = np.ones(len(edges.indices))
    graph = sp.csr_matrix((ones, edges.indices, edges.indptr), (n, n))
    into = graph @ is_dragged / np.maximum(np.diff(edges.indptr), 1)
    linked = (into >= 0.5) & ~is_dragged
    strangers = (into == 0) & ~is_dragged

    def went(which, snapshot) -> float:
        moved = snapshot.embedding[which] - before[which]
        return float(np.median(moved @ away) / np.linalg.norm(away) / radius)

    return (
        went(rows, held),
        went(rows, last),
        went(linked, held) if linked.any() else np.nan,
        went(strangers, held) if strangers.any() else np.nan,
        _recall(edges, rows, last.embedding) - _recall(edges, rows, before),
    )


def _recall(edges, rows, embedding) -> float:
    """Return the share of 15 map neighbours that have an edge to the point."""
    near = cKDTree(embedding).query(embedding[rows], 16)[1][:, 1:]
    hits = [
        np.isin(edges.indices[edges.indptr[r] : edges.indptr[r + 1]], n).sum()
        for r, n in zip(rows, near, strict=True)
    ]
    return float(np.sum(hits) / (15 * len(rows)))


if __name__ == "__main__":
    main()
