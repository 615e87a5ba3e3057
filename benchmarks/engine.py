"""What each stage of a fit costs: processor seconds, seconds, and peak memory.

Rows are the clouds of ``neighbours_scaling.py``.  Each size is a process of its own.
Processor seconds change little with what else runs on the machine; seconds do, so the
load stands beside them.  ``MiB``: the most memory during a stage, numpy and torch among
it.  ``kept``: the share of 15 neighbours that the map keeps, of 500 rows.

    python benchmarks/engine.py --sizes 70000 300000
    python benchmarks/engine.py --sizes 1300000 --folder graphs   # keeps the neighbours

``--folder`` keeps the neighbours of each size there, and reads them the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neighbours_scaling import clouds
from shared import arguments, report

ONE_SIZE = "--one-size"
SIZES, QUICK_SIZES = (70_000, 300_000), (60_000,)
N_CHECKED = 500
_STATUS = Path("/proc/self/status")


class Stages:
    """The processor seconds, seconds and peak memory of each stage, by its name."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}

    def measure(self, name: str, job: Callable[[], Any]) -> Any:
        """Do a job, add its three figures, and return its result."""
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        used, begun = time.process_time(), time.perf_counter()
        result = job()
        self.figures[f"{name}, processor s"] = round(time.process_time() - used, 2)
        self.figures[f"{name}, s"] = round(time.perf_counter() - begun, 2)
        peak = _STATUS.read_text().split("VmHWM:")[1].split()[0]
        self.figures[f"{name}, MiB"] = int(peak) // 1024
        return result


def measure_fit(n_rows: int, folder: Path | None, n_jobs: int | None) -> dict[str, Any]:
    """Return the figures of every stage of a fit of so many rows."""
    from napari_embedding_game.core import pipeline
    from napari_embedding_game.core.dynamics.play import play
    from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
    from napari_embedding_game.core.settings import (
        Settings,
        fill_affinity,
        fill_approximation_by_size,
    )

    settings = replace(fill_affinity(Settings()), n_jobs=n_jobs)
    settings = fill_approximation_by_size(settings, n_rows)
    X, stages = clouds(n_rows), Stages()
    path = None if folder is None else folder / f"{n_rows}.npz"
    if path is not None and path.exists():
        with np.load(path) as kept:
            graph = NeighborGraph(kept["indices"], kept["distances"], "leaves")
    else:
        graph = stages.measure(
            "neighbours", lambda: pipeline.find_neighbors(X, settings)
        )
        if path is not None:
            np.savez(path, indices=graph.indices, distances=graph.distances)
    edges, layout = stages.measure(
        "edges and start", lambda: pipeline.make_edges_and_layout(graph, X, settings)
    )
    playing = play(edges, layout, settings, diagnose=False)
    stages.measure("first snapshot", lambda: next(playing))
    last = stages.measure("iterations", lambda: next(s for s in playing if s.finished))
    checked = np.random.default_rng(1).choice(n_rows, N_CHECKED, replace=False)
    near = knn_graph(last.embedding, 15).indices[checked]
    wanted = graph.indices[checked][:, None, :]
    return {
        "rows": f"{n_rows:,}",
        **stages.figures,
        "iterations": last.iteration,
        "load": round(os.getloadavg()[0], 1),
        "map": last.map_hash,
        "span": round(float(np.ptp(last.embedding, axis=0).max()), 1),
        "kept": round(float((near[:, :, None] == wanted).any(axis=2).mean()), 4),
    }


def main() -> None:
    """Print a column for each size."""
    if ONE_SIZE in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument(ONE_SIZE, type=int)
        parser.add_argument("--folder", type=Path)
        parser.add_argument("--n-jobs", type=int)
        one = parser.parse_args()
        print(json.dumps(measure_fit(one.one_size, one.folder, one.n_jobs)))
        return
    args = arguments(
        __doc__,
        sizes={"type": int, "nargs": "+", "default": SIZES},
        folder={"type": Path, "help": "keeps the neighbours"},
        n_jobs={"type": int, "help": "threads"},
    )
    rows = []
    for n_rows in QUICK_SIZES if args.quick else args.sizes:
        command = [sys.executable, __file__, ONE_SIZE, str(n_rows)]
        command += ["--folder", str(args.folder)] if args.folder else []
        command += ["--n-jobs", str(args.n_jobs)] if args.n_jobs else []
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        rows.append(json.loads(told.splitlines()[-1]))
    names = dict.fromkeys(name for row in rows for name in row if name != "rows")
    turned = [
        {"stage": name} | {row["rows"]: row.get(name, "") for row in rows}
        for name in names
    ]
    report("Stages of a fit", turned, args)


if __name__ == "__main__":
    main()
