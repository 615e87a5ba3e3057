"""How exact the repulsion of a finished map is that was found on a grid.

The grid of :mod:`napari_embedding_game.core.energy.mesh` stands for all pairs of
points.  Here the force on some of them is added up one by one in float64, and compared.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.energy.mesh import Mesh
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.pair_functions import KERNELS, PairFunction
from napari_embedding_game.core.settings import Settings, is_pushed_by
from napari_embedding_game.core.snapshot import Snapshot

N_SAMPLED = 200
_AT_ONCE = 4_000_000


def grid_error(
    embedding: NDArray[np.floating],
    kernel: str,
    n_sampled: int = N_SAMPLED,
    random_state: int = 0,
) -> float:
    """Return the error of the forces by a grid, relative to those by all pairs.

    Parameters
    ----------
    embedding : (N, d) float
        d is 1, 2 or 3.
    kernel : str
        A key of ``pair_functions.KERNELS`` that a grid can show.
    n_sampled : int
        Points, drawn at random, at which forces are compared.
    random_state : int
        Draws them.

    Returns
    -------
    float
        Root mean square of the differences, divided by that of the forces: 0 is exact.
        NaN where all pairs push nothing, as for a single point.
    """
    y = np.ascontiguousarray(embedding)
    rng = np.random.default_rng(random_state)
    rows = rng.choice(len(y), min(n_sampled, len(y)), replace=False)
    pair_function = KERNELS[kernel]
    _, by_grid = Mesh(pair_function, 1)(y)
    exact = _one_by_one(pair_function, y, rows)
    size = float(np.sqrt((exact**2).sum(axis=1).mean()))
    off = float(np.sqrt(((by_grid[rows] - exact) ** 2).sum(axis=1).mean()))
    return off / size if size > 0 else math.nan


def grid_error_of(snapshot: Snapshot, settings: Settings) -> float:
    """Return :func:`grid_error` of a map; NaN where no grid has pushed its points.

    Parameters
    ----------
    snapshot : Snapshot
    settings : Settings
        With which it was played.
    """
    method = get_method(settings.method)
    if not is_pushed_by(settings, "mesh"):
        return math.nan
    return grid_error(snapshot.embedding, method.kernel)


def _one_by_one(
    kernel: PairFunction, y: NDArray[np.floating], rows: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the gradient of the sum of k over all pairs i != j at some points."""
    points = torch.as_tensor(y, dtype=torch.float64)
    at_once = max(1, _AT_ONCE // len(y))
    blocks = []
    for some in np.array_split(rows, -(-len(rows) // at_once)):
        apart = points[torch.as_tensor(some)][:, None] - points[None]
        slopes = kernel.slope((apart**2).sum(dim=2))
        # Each pair counts twice, and the slope is that of the squared distance.
        blocks.append(4 * torch.einsum("ij,ijd->id", slopes, apart))
    found: NDArray[np.float64] = torch.cat(blocks).numpy()
    return found
