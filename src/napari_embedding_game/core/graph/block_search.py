"""Exact neighbours on a torch device, some rows against all others at a time.

The squared distances of a block are one matrix product, |x|^2 - 2 x.y + |y|^2.  That
loses digits where points lie close, so a few more candidates than asked for are kept
and measured again by their differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK_NUMBERS = 2**28
"""Distances that are held at a time, 1 GiB."""
_SPARE = 8
"""Candidates more than asked for."""


def block_search(
    rows: NDArray[np.float32],
    k: int,
    device: torch.device,
    block_numbers: int = BLOCK_NUMBERS,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return squared distances and row numbers (N, k), nearest first, self included.

    Where the device has too little memory for a block, blocks of half its size follow.

    Raises
    ------
    torch.OutOfMemoryError
        The device has no memory for the rows, or for a block of one row.
    """
    points = torch.from_numpy(rows).to(device)
    n = len(points)
    lengths = points.square().sum(dim=1)
    squared, indices = np.empty((n, k), np.float32), np.empty((n, k), np.int64)
    size, begin = max(1, block_numbers // n), 0
    while begin < n:
        block = slice(begin, min(begin + size, n))
        try:
            found = _nearest(points[block], points, lengths, k)
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            size = max(1, min(size, n) // 2)
            continue
        squared[block], indices[block] = (one.cpu().numpy() for one in found)
        begin = block.stop
    return squared, indices


def _nearest(queries: Tensor, points: Tensor, lengths: Tensor, k: int) -> Any:
    """Return squared distances and row numbers (n, k) of the queries."""
    rough = torch.addmm(lengths, queries, points.T, alpha=-2)
    n_candidates = min(k + _SPARE, len(points))
    candidates = rough.topk(n_candidates, dim=1, largest=False).indices
    apart = points[candidates] - queries[:, None, :]
    exact = apart.square().sum(dim=2)
    nearest = exact.topk(k, dim=1, largest=False)
    return nearest.values, candidates.gather(1, nearest.indices)
