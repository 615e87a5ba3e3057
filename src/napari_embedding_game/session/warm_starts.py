"""Layouts to play on from: some points moved by hand, more or fewer dimensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import (
    FloatArray,
    IntArray,
    Snapshot,
    WarmStart,
)

Transform = Callable[[FloatArray], FloatArray]
NOISE = 0.01
"""Of a new coordinate where no neighbours are known, as a share of the map's radius:
without any, no force would ever lead out of the plane."""
DEPTH = 0.5
"""Of a new coordinate where neighbours are known, as a share of the map's radius."""
ROUNDS, AVERAGED = 30, 5
"""How often a new coordinate is averaged, and over how many neighbours."""
DEEPEST = 2.5
"""Times its spread: how far a new coordinate reaches."""


def move_rows(
    layout: WarmStart, snapshot: Snapshot, rows: IntArray, by: FloatArray
) -> WarmStart:
    """Return a layout with some points moved, and their landmarks with them.

    A landmark goes with the points if most of those nearest to it are among them.

    ``layout``: as it is; its arrays are not changed. ``snapshot``: what the layout is
    of: its labels tell which landmark each point belongs to. ``rows`` (m,) int array:
    the points to be moved. ``by`` (d,) array: how far, in units of the map.
    """
    n_landmarks = len(layout.landmarks)
    n_all = np.bincount(snapshot.labels, minlength=n_landmarks)[:n_landmarks]
    n_moved = np.bincount(snapshot.labels[rows], minlength=n_landmarks)[:n_landmarks]
    step = np.asarray(by, np.float32)
    embedding, landmarks = layout.embedding.copy(), layout.landmarks.copy()
    embedding[rows] += step
    landmarks[2 * n_moved > n_all] += step
    return replace(layout, embedding=embedding, landmarks=landmarks)


def change_n_dimensions(
    layout: WarmStart,
    n_components: int,
    random_state: int,
    snapshot: Snapshot | None = None,
) -> tuple[WarmStart, Transform]:
    """Return a layout in another number of dimensions, as like it as can be.

    And a function from positions (m, d) of the former layout to the new one: (m, e).

    A new coordinate begins as noise that was averaged over neighbours in the data many
    times, and has nothing of the others in it: groups come to lie in front of one
    another, and each stays whole.  (Without neighbours it is small noise, from which
    maps stay thin; ``benchmarks/dimensions.py``, b9dd4b2.)  Fewer dimensions are the
    first principal axes of the points, turned so that the map stands as its first
    coordinates did.

    ``layout``: as it is; its arrays are not changed. ``random_state``: draws the
    noise. ``snapshot``: of the same points and landmarks, if it knows the neighbours
    in the data.
    """
    points, landmarks = layout.embedding, layout.landmarks
    lacking = n_components - points.shape[1]
    if lacking <= 0:
        transform = _principal_axes_transform(points, n_components)
        flat, marks = (transform(p).astype(np.float32) for p in (points, landmarks))
        return replace(layout, embedding=flat, landmarks=marks), transform

    def widen(positions: FloatArray) -> FloatArray:
        return np.pad(positions, ((0, 0), (0, lacking)))

    rng = np.random.default_rng(random_state)
    radius = float(points.std(axis=0, dtype=float).max())
    embedding, wide_landmarks = (
        widen(p).astype(np.float32) for p in (points, landmarks)
    )
    for axis in range(points.shape[1], n_components):
        if snapshot is not None and snapshot.neighbors is not None:
            new = (
                DEPTH
                * radius
                * _sample_smooth_coordinate(
                    snapshot.neighbors, embedding[:, :axis], rng
                )
            )
            n_landmarks = len(landmarks)
            sums = np.bincount(snapshot.labels, new, minlength=n_landmarks)
            counts = np.bincount(snapshot.labels, minlength=n_landmarks)
            of_landmarks = (sums / np.maximum(counts, 1))[:n_landmarks]
        else:
            new = rng.normal(scale=NOISE * radius, size=len(points))
            of_landmarks = rng.normal(scale=NOISE * radius, size=len(landmarks))
        embedding[:, axis], wide_landmarks[:, axis] = new, of_landmarks
    wider = replace(layout, embedding=embedding, landmarks=wide_landmarks)
    return wider, widen


def _sample_smooth_coordinate(
    neighbors: IntArray, positions: FloatArray, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return one number for each point, much like those of its neighbours.

    Their spread is 1.  They are nearly the slowest mode of a random walk to the
    neighbours that is no linear function of the present positions.

    ``neighbors`` (N, k) int: rows of each point's neighbours, -1 for none.
    """
    near = neighbors[:, :AVERAGED]
    is_there = near >= 0
    count = np.maximum(is_there.sum(axis=1), 1)
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(positions)), positions]))
    values = rng.normal(size=len(near))
    for _ in range(ROUNDS):
        sums = np.where(is_there, values[near], 0.0).sum(axis=1)
        values = (values + sums / count) / 2
        values -= basis @ (basis.T @ values)
        values /= max(float(values.std()), np.finfo(float).tiny)
    return values.clip(-DEEPEST, DEEPEST)


def _principal_axes_transform(points: FloatArray, n_axes: int) -> Transform:
    """Return the map of positions (m, d) to principal axes of points: (m, n_axes).

    The axes are turned, or mirrored, so that positions are nearest to their first
    coordinates (orthogonal Procrustes analysis).
    """
    middle = points.mean(axis=0, dtype=float)
    centred = points - middle
    _, vectors = np.linalg.eigh(centred.T @ centred)  # the smallest first
    axes = vectors[:, ::-1][:, :n_axes]
    left, _, right = np.linalg.svd((centred @ axes).T @ centred[:, :n_axes])
    turned = axes @ left @ right
    return lambda positions: (positions - middle) @ turned + middle[:n_axes]
