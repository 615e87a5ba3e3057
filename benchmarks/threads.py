"""How many threads the game should use, with and without another busy program.

500 iterations, diagnosis off.  "always 1" and "always 2" hold every iteration to
that number; "automatic" is what ``core.threads`` chooses.  In the second half
another process keeps one core busy.  The ratio is to the quickest of the size
and load.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from napari_embedding_game.core.energy import pair_sums
from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.initialization import start_layout
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.threads import numba_threads
from napari_embedding_game.core.warm_up import compile_kernels
from shared import Input, arguments, finish, load_all, median, report, timed


class Always:
    """In place of ``ThreadChoice``: the number it is made with, for all work."""

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads

    @contextmanager
    def threads_for(self, work: int) -> Iterator[int]:
        """Give the threads."""
        with numba_threads(self._n_threads):
            yield self._n_threads


def _spin() -> None:
    while True:
        pass


@contextmanager
def one_core_busy() -> Iterator[None]:
    """Let another process use all the time that it gets."""
    process = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def measure(data: Input, load: str, repeats: int) -> list[dict[str, Any]]:
    """Time one size under the present load."""
    weighted = edges(knn_graph(data.X), "fuzzy")
    layout = start_layout(weighted, data.X)
    times: dict[str, list[float]] = {}
    for threads in ("always 1", "always 2", "automatic"):
        held = (
            contextlib.nullcontext()
            if threads == "automatic"
            else mock.patch.object(pair_sums, "ThreadChoice", Always)
        )
        n_jobs = None if threads == "automatic" else int(threads[-1])
        with held:
            _, times[threads] = timed(
                lambda n=n_jobs: finish(weighted, layout, n_jobs=n), repeats
            )
    best = min(map(statistics.median, times.values()))
    return [
        {
            "points": len(data.X),
            "other load": load,
            "threads": threads,
            "s": median(seconds),
            "to quickest": statistics.median(seconds) / best,
        }
        for threads, seconds in times.items()
    ]


def main() -> None:
    """Print the table."""
    args = arguments(__doc__)
    compile_kernels()
    inputs = list(load_all(("pbmc", "mnist"), args))
    rows = [row for data in inputs for row in measure(data, "none", args.repeats)]
    with one_core_busy():
        for data in inputs:
            rows += measure(data, "one core", args.repeats)
    report("Threads", rows, args)


if __name__ == "__main__":
    main()
