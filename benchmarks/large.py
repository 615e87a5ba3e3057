"""A file larger than a worker's memory, mapped by a Dask cluster on this machine.

Rows are MNIST's 50 principal components, each moved by a random share of the way to
another digit of its kind, in a zarr array.  A reference is drawn and fitted, then all
rows are placed by ``--workers`` processes of one thread; with ``--kill`` one of them is
ended after a quarter of the chunks.  Told are the seconds of each step, the processor
time of the workers, which other programs hardly change, and the most memory of any of
them; and, from that, the seconds for 100,000,000 rows on 1, 10 and 100 workers that
have a core each.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import zarr

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.data.formats.lazy_rows import LazyRows
from napari_embedding_game.session import large_fit
from shared import Input, arguments, load, report

OPTIONS: dict[str, dict[str, Any]] = {
    "rows": {"type": int, "default": 2_000_000},
    "reference": {"type": int, "default": 100_000},
    "workers": {"type": int, "default": 2},
    "memory": {"default": "2GB", "help": "limit of each worker"},
    "kill": {"action": "store_true"},
}
MANY = 100_000_000


def write_rows(data: Input, n_rows: int, path: Path) -> None:
    """Write so many rows between those of the data, chunk by chunk."""
    array = zarr.create_array(
        str(path),
        shape=(n_rows, data.X.shape[1]),
        chunks=(large_fit.CHUNK, data.X.shape[1]),
        dtype="float32",
    )
    rng = np.random.default_rng(0)
    by_label = np.argsort(data.labels, kind="stable")
    first = np.searchsorted(data.labels[by_label], data.labels)
    count = np.bincount(np.unique(data.labels, return_inverse=True)[1])
    count = count[np.unique(data.labels, return_inverse=True)[1]]
    for begin in range(0, n_rows, large_fit.CHUNK):
        end = min(begin + large_fit.CHUNK, n_rows)
        one = rng.integers(len(data.X), size=end - begin)
        other = by_label[first[one] + rng.integers(count[one])]
        share = rng.uniform(0, 0.3, size=(end - begin, 1)).astype(np.float32)
        array[begin:end] = (1 - share) * data.X[one] + share * data.X[other]


class Watch:
    """The most memory of any worker and the processor time of all, now and then."""

    def __init__(self, cluster: Any) -> None:
        self.most = 0
        self._seconds: dict[int, float] = {}
        self._cluster = cluster
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def seconds(self) -> float:
        """Processor time of all workers up to now, those that were ended among them."""
        return sum(self._seconds.values())

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            for worker in list(self._cluster.workers.values()):
                try:
                    process = psutil.Process(worker.pid)
                    used, times = process.memory_info().rss, process.cpu_times()
                except (psutil.NoSuchProcess, TypeError, ValueError):
                    continue  # it was ended, or has not begun
                self.most = max(self.most, used)
                self._seconds[worker.pid] = times.user + times.system


def killing(run: large_fit.Run, cluster: Any, seen: list[float]) -> large_fit.Run:
    """Return what works on chunks and ends a worker after a quarter of them."""

    def run_and_kill(work: large_fit.Work, chunks: list[tuple[int, int]]) -> Any:
        for number, done in enumerate(run(work, chunks)):
            if number == len(chunks) // 4:
                os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
            seen.append(time.perf_counter())
            yield done

    return run_and_kill


def measure(data: Input, args: Any, folder: Path) -> dict[str, Any]:
    """Write, draw, fit and place."""
    from distributed import LocalCluster

    write_rows(data, args.rows, folder / "rows.zarr")
    rows = LazyRows(folder / "rows.zarr")
    times, of_workers = [time.perf_counter()], [0.0]
    with (
        LocalCluster(
            n_workers=args.workers,
            threads_per_worker=1,
            memory_limit=args.memory,
            dashboard_address=":0",
        ) as cluster,
        large_fit.on_cluster(cluster.scheduler_address) as run,
        Watch(cluster) as watch,
    ):
        drawn = large_fit.draw_reference(rows, args.reference, 0, run)
        times.append(time.perf_counter())
        of_workers.append(watch.seconds)
        model = EmbeddingGame(random_state=0).fit(rows.take(drawn))
        times.append(time.perf_counter())
        place = killing(run, cluster, []) if args.kill else run
        large_fit.place_all(rows, model, folder / "map.zarr", {}, place)
        times.append(time.perf_counter())
        of_workers.append(watch.seconds)
    draw, fit, placing = np.diff(times)
    drawing_cores, placing_cores = np.diff(of_workers)
    placed = zarr.open_group(str(folder / "map.zarr"), mode="r")
    alone = np.random.default_rng(1).integers(args.rows - 100)
    again = model.transform(rows.read(alone, alone + 100))
    same = np.array_equal(placed["X_embedding_game"][alone : alone + 100], again)
    seconds = (drawing_cores + placing_cores) * MANY / args.rows
    return {
        "rows": args.rows,
        "reference": len(drawn),
        "workers": args.workers,
        "one killed": args.kill,
        "draw s": draw,
        "fit s": fit,
        "place s": placing,
        "draw core s": drawing_cores,
        "place core s": placing_cores,
        "rows placed a core s": args.rows / placing_cores,
        "file MB": args.rows * rows.shape[1] * 4 / 1e6,
        "worker MB": watch.most / 1e6,
        "same as transform": same,
        **{f"1e8 rows, {n} workers, s": seconds / n + fit for n in (1, 10, 100)},
    }


def main() -> None:
    """Measure and print."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    data = load("mnist", args) or load("digits", args)
    assert data is not None
    with tempfile.TemporaryDirectory() as folder:
        report("Rows placed by a cluster", [measure(data, args, Path(folder))], args)


if __name__ == "__main__":
    main()
