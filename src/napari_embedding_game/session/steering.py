"""Steer a map by hand: a layout with some of its points moved, to play on from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.types import Snapshot, WarmStart


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
