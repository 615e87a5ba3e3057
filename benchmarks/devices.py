"""A fit by the processor and by a graphics card: seconds of its three parts.

Rows are those of ``neighbours_scaling.clouds``.  Each device goes first once without
being counted, as loops are compiled and a card is woken.  The search and the start are
by the processor on both; *kept* is the share of the 15 neighbours, of 500 rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.settings import Settings, resolve, settled
from neighbours_scaling import K, clouds
from shared import arguments, finish, report

SIZES = (70_000, 300_000, 1_300_000)
QUICK_SIZE = 3_000


def row(X: np.ndarray, device: str) -> dict[str, Any]:
    """Return the figures of one fit."""
    settings = settled(resolve(Settings(device=device)), len(X))
    stamps = [time.perf_counter()]
    graph = pipeline.neighbors(X, settings)
    stamps.append(time.perf_counter())
    placed = pipeline.place(graph, X, settings)
    stamps.append(time.perf_counter())
    y = finish(*placed, settings).embedding
    stamps.append(time.perf_counter())
    names = ("neighbours, s", "start, s", "game, s")
    drawn = np.random.default_rng(1).choice(len(X), 500, replace=False)
    shown = NearestNeighbors(n_neighbors=K + 1).fit(y)
    near = shown.kneighbors(y[drawn], return_distance=False)[:, 1:]
    kept = (near[:, :, None] == graph.indices[drawn][:, None, :K]).any(axis=2).mean()
    found = dict(zip(names, np.diff(stamps).round(2), strict=True))
    return {"rows": f"{len(X):,}", "device": device, **found, "kept": float(kept)}


def main() -> None:
    """Print the table."""
    args = arguments(__doc__, repeats=1)
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    rows = []
    for n_rows in (QUICK_SIZE,) if args.quick else SIZES:
        X = clouds(n_rows)
        for device in devices:
            row(clouds(QUICK_SIZE if args.quick else SIZES[0]), device)
            rows += [row(X, device) for _ in range(args.repeats)]
    report("A fit by device", rows, args)


if __name__ == "__main__":
    main()
