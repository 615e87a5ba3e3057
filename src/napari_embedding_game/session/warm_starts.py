"""Starts of a branch: the map with points moved, or with other dimensions."""

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
"""Spread of a new coordinate where no neighbours are known, as a share of the map's
radius: without noise no force would lead out of the plane."""
DEPTH = 0.5
"""Spread of a new coordinate where neighbours are known, as a share of the radius."""
ROUNDS, AVERAGED = 30, 5
"""How often a new coordinate is averaged, and over how many neighbours."""
DEEPEST = 2.5
"""Largest value of a new coordinate, in multiples of its spread."""


def move_rows(
    layout: WarmStart, snapshot: Snapshot, rows: IntArray, by: FloatArray
) -> WarmStart:
    """Return a copy of a layout with some points, and their landmarks, moved.

    A landmark is moved if more than half of its points are among ``rows``.

    ``layout``: is not changed. ``snapshot``: of the same layout: its labels are the
    landmark of each point. ``rows`` (m,) int array: the points to be moved. ``by`` (d,)
    array: shift in units of the map.
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
    """Return a layout converted to another number of dimensions, and the transform.

    The transform is a function from positions (m, d) of the old layout to positions
    (m, e) of the new layout.

    A new coordinate is noise that was averaged many times over neighbours in the data,
    and made uncorrelated with the other coordinates: groups come to lie in front of
    each other, and each group stays together.  (Without neighbours the coordinate is
    small noise, from which maps stay thin; ``benchmarks/dimensions.py``, b9dd4b2.)
    Fewer dimensions are the first principal axes of the points, rotated to agree best
    with the old coordinates.

    ``layout``: is not changed. ``random_state``: seed of the noise. ``snapshot``: of
    the same points and landmarks, with the neighbours in the data; or None.
    """
    points, landmarks = layout.embedding, layout.landmarks
    lacking = n_components - points.shape[1]
    if lacking <= 0:
        transform = _make_principal_axes_transform(points, n_components)
        flat, marks = (transform(p).astype(np.float32) for p in (points, landmarks))
        return replace(layout, embedding=flat, landmarks=marks), transform

    def widen(positions: FloatArray) -> FloatArray:
        """Return positions with zeros for the new coordinates."""
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
    """Return a random coordinate (N,) that varies little between neighbours.

    Its standard deviation is 1 before it is clipped.  It is nearly the slowest mode of
    a random walk among neighbours that is uncorrelated with the present positions.

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


def _make_principal_axes_transform(points: FloatArray, n_axes: int) -> Transform:
    """Return a function that projects positions (m, d) to (m, n_axes).

    The axes are the first principal axes of ``points`` (n, d).  They are rotated or
    mirrored so that the projected points lie nearest to their first ``n_axes``
    coordinates (orthogonal Procrustes analysis).
    """
    middle = points.mean(axis=0, dtype=float)
    centred = points - middle
    _, vectors = np.linalg.eigh(centred.T @ centred)  # the smallest first
    axes = vectors[:, ::-1][:, :n_axes]
    left, _, right = np.linalg.svd((centred @ axes).T @ centred[:, :n_axes])
    turned = axes @ left @ right
    return lambda positions: (positions - middle) @ turned + middle[:n_axes]
