"""Layouts to play on from: some points moved by hand, more or fewer dimensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.types import Snapshot, WarmStart

NOISE = 0.01
"""Of a new coordinate, as a share of the map's radius: without any, no force would ever
lead out of the plane."""


def moved(
    layout: WarmStart,
    snapshot: Snapshot,
    rows: NDArray[np.intp],
    by: NDArray[np.floating],
) -> WarmStart:
    """Return a layout with some points moved, and their landmarks with them.

    A landmark goes with the points if most of those nearest to it are among them.

    Parameters
    ----------
    layout : WarmStart
        As it is; its arrays are not changed.
    snapshot : Snapshot
        What the layout is of: its labels tell which landmark each point belongs to.
    rows : (m,) int array
        The points to be moved.
    by : (d,) array
        How far, in units of the map.
    """
    n_landmarks = len(layout.landmarks)
    n_all = np.bincount(snapshot.labels, minlength=n_landmarks)[:n_landmarks]
    n_moved = np.bincount(snapshot.labels[rows], minlength=n_landmarks)[:n_landmarks]
    step = np.asarray(by, np.float32)
    embedding, landmarks = layout.embedding.copy(), layout.landmarks.copy()
    embedding[rows] += step
    landmarks[2 * n_moved > n_all] += step
    return replace(layout, embedding=embedding, landmarks=landmarks)


@dataclass(frozen=True, eq=False)
class Redimensioned:
    """A layout with more or fewer dimensions than it had."""

    layout: WarmStart
    take: Callable[[NDArray[np.floating]], NDArray[np.floating]]
    """Takes places (m, d) of the former layout into the new one: (m, e)."""


def redimensioned(
    layout: WarmStart, n_components: int, random_state: int
) -> Redimensioned:
    """Return a layout in another number of dimensions, as like it as can be.

    A new coordinate begins as small noise.  Fewer dimensions are the first principal
    axes of the points, turned so that the map stands as its first coordinates did.

    Parameters
    ----------
    layout : WarmStart
        As it is; its arrays are not changed.
    n_components : int
    random_state : int
        Draws the noise.
    """
    points, landmarks = layout.embedding, layout.landmarks
    lacking = n_components - points.shape[1]
    if lacking <= 0:
        take = _principal_axes(points, n_components)
        flat = replace(
            layout,
            embedding=take(points).astype(np.float32),
            landmarks=take(landmarks).astype(np.float32),
        )
        return Redimensioned(flat, take)

    def widen(places: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.pad(places, ((0, 0), (0, lacking)))

    rng = np.random.default_rng(random_state)
    size = NOISE * float(points.std(axis=0, dtype=float).max())
    wide = [widen(places).astype(np.float32) for places in (points, landmarks)]
    for places in wide:
        noise = rng.normal(scale=size, size=(len(places), lacking))
        places[:, -lacking:] = noise
    embedding, landmarks = wide
    wider = replace(layout, embedding=embedding, landmarks=landmarks)
    return Redimensioned(wider, widen)


def _principal_axes(
    points: NDArray[np.floating], n_axes: int
) -> Callable[[NDArray[np.floating]], NDArray[np.floating]]:
    """Return what takes places (m, d) onto the principal axes of points: (m, n_axes).

    Within these the places are turned, or mirrored, to be nearest to their first
    coordinates (orthogonal Procrustes analysis).
    """
    middle = points.mean(axis=0, dtype=float)
    centred = points - middle
    _, vectors = np.linalg.eigh(centred.T @ centred)  # the smallest first
    axes = vectors[:, ::-1][:, :n_axes]
    left, _, right = np.linalg.svd((centred @ axes).T @ centred[:, :n_axes])
    turned = axes @ left @ right
    return lambda places: (places - middle) @ turned + middle[:n_axes]
