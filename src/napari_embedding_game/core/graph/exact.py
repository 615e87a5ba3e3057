"""Exact neighbours: every row is compared with every other one.

Scores are |y|^2 - 2 x.y.  That loses digits where points lie close, so a few candidates
more than asked for are kept and ranked by their differences.  Of rows at the same
distance the first ones are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import loops
from napari_embedding_game.core.threads import PARALLEL_WORK, run_blocks

Take = Callable[[Any], NDArray[np.float32]]
"""Returns the rows of some numbers, or of a slice."""
Each = Callable[[Callable[[int, int], object], int, int], None]
"""(job, n, step): calls ``job(begin, end)`` for parts of n in some threads."""
Found = tuple[NDArray[np.int32], NDArray[np.float32]]
"""(Q, k) numbers of the neighbours, nearest first, and squared distances."""

_SPARE = 4
"""Candidates more than asked for."""
_AT_ONCE, _QUERIES = 16_384, 256
_RANKED = 2_048
_DEVICE_SPARE, _DEVICE_NUMBERS = 8, 2**28
"""On a device: candidates more than asked for, and distances held at a time, 1 GiB."""


def shared(n_jobs: int | None) -> Each:
    """Return what shares parts of some work among threads."""

    def each(job: Callable[[int, int], object], n: int, step: int) -> None:
        def do(begin: int, end: int) -> None:
            for i in range(begin, end):
                job(i * step, min((i + 1) * step, n))

        run_blocks(do, -(-n // step), PARALLEL_WORK, n_jobs)

    return each


def nearest_of_all(
    take: Take, n: int, own: NDArray[np.integer], k: int, each: Each
) -> Found:
    """Return the ``k`` nearest others of the rows ``own`` (Q,) among all ``n``."""
    indices = np.full((len(own), min(k + _SPARE, n)), -1, np.int32)
    scores = np.full(indices.shape, np.inf, np.float32)

    def scan(begin: int, end: int) -> None:
        part, queries = slice(begin, end), take(own[begin:end])
        for first in range(0, n, _AT_ONCE):
            rows = take(slice(first, first + _AT_ONCE))
            numbers = np.arange(len(rows), dtype=np.int32)
            loops.scan(
                queries, own[part], rows, numbers, first, indices[part], scores[part]
            )

    each(scan, len(own), _QUERIES)
    return ranked(take, own, indices, k, each)


def ranked(
    take: Take,
    own: NDArray[np.integer],
    candidates: NDArray[np.int32],
    k: int,
    each: Each,
) -> Found:
    """Return the ``k`` nearest of candidates (Q, M), -1 for none, of the rows ``own``.

    Quick where queries that stand side by side have candidates in common.
    """
    indices = np.empty((len(own), k), np.int32)
    squared = np.empty((len(own), k), np.float32)

    def rank(begin: int, end: int) -> None:
        near, at = np.unique(candidates[begin:end], return_inverse=True)
        at = at.reshape(end - begin, -1).astype(np.int32)
        if near[0] < 0:
            near, at = near[1:], at - 1
        loops.rank(
            take(own[begin:end]), take(near), at, indices[begin:end], squared[begin:end]
        )
        indices[begin:end] = near[indices[begin:end]]

    each(rank, len(own), _RANKED)
    return indices, squared


def nearest_on_device(rows: NDArray[np.float32], k: int, device: str) -> Found:
    """Return the ``k`` nearest rows of each, itself among them, by a torch device.

    Where it has too little memory for a block, blocks of half its size follow.

    Raises
    ------
    torch.OutOfMemoryError
        The device has no memory for the rows, or for a block of one row.
    """
    import torch

    points = torch.from_numpy(rows).to(device)
    n, lengths = len(points), points.square().sum(dim=1)
    indices, squared = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    size, begin = max(1, _DEVICE_NUMBERS // n), 0
    while begin < n:
        block = slice(begin, min(begin + size, n))
        queries = points[block]
        try:
            rough = torch.addmm(lengths, queries, points.T, alpha=-2)
            count = min(k + _DEVICE_SPARE, n)
            near = rough.topk(count, dim=1, largest=False).indices
            exact = (points[near] - queries[:, None, :]).square().sum(dim=2)
            nearest = exact.topk(k, dim=1, largest=False)
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            size = max(1, min(size, n) // 2)
            continue
        indices[block] = near.gather(1, nearest.indices).cpu().numpy()
        squared[block] = nearest.values.cpu().numpy()
        begin = block.stop
    return indices, squared
