"""Two libraries that lay points out, on our edges and from our start.

openTSNE is seen to move and can be stopped at every few iterations.  umap-learn has no
such hook: it is seen when it is done, and stopping waits for that.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.affinities import Edges
from napari_embedding_game.core.profiles import UMAP_A, UMAP_B
from napari_embedding_game.core.settling import Frame
from napari_embedding_game.core.types import GameSettings

_SHOWN_EVERY = 10
_EARLY, _LATE = 250, 500
_EXAGGERATION = 12
"""openTSNE's own numbers: iterations with exaggeration, and after it."""
_UMAP_SIDE = 10.0
_MANY_POINTS = 10_000
"""umap-learn's own: the span of its start, and where it halves its epochs."""


def opentsne_frames(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    random_state: int,
) -> Iterator[Frame]:
    """Yield openTSNE's layout every few iterations."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PrecomputedAffinities

    affinities = PrecomputedAffinities(edges.matrix().astype(np.float64))
    start = layout / layout.std(axis=0)[0] * 1e-4
    embedding = TSNEEmbedding(start.astype(np.float64), affinities, n_jobs=1)
    embedding.random_state = random_state
    n_iter = _EARLY + _LATE
    for iteration in range(0, n_iter, _SHOWN_EVERY):
        early = iteration < _EARLY
        yield Frame(iteration, n_iter, np.array(embedding, np.float32))
        embedding.optimize(
            _SHOWN_EVERY,
            inplace=True,
            exaggeration=_EXAGGERATION if early else None,
            momentum=0.5 if early else 0.8,
        )
    yield Frame(n_iter, n_iter, np.array(embedding, np.float32))


def umap_learn_frames(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    random_state: int,
) -> Iterator[Frame]:
    """Yield the start and, when it is done, umap-learn's layout."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Tensorflow not installed", ImportWarning)
        from umap.umap_ import simplicial_set_embedding

    n_epochs = 200 if len(layout) > _MANY_POINTS else 500
    start = layout - layout.min(axis=0)
    start = (start * _UMAP_SIDE / start.max()).astype(np.float32)
    yield Frame(0, n_epochs, start)
    found, _ = simplicial_set_embedding(
        None,
        (edges.matrix() / edges.scale).tocoo(),
        layout.shape[1],
        1.0,
        UMAP_A,
        UMAP_B,
        1.0,
        5,
        n_epochs,
        start,
        np.random.RandomState(random_state),
        "euclidean",
        {},
        False,
        {},
        False,
    )
    yield Frame(n_epochs, n_epochs, np.asarray(found, np.float32))
