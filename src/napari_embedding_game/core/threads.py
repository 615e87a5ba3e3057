"""How many threads a piece of work gets.

In napari the window needs a core too, and a parallel region waits for its
slowest thread: with one of two cores held, 500 iterations on 2,638 cells take
seconds with two threads and a tenth of one with a single thread
(``python benchmarks/threads.py``).  So small work is serial, and large work
leaves a core free where there are more than two.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numba

PARALLEL_WORK = 2_000_000
"""Point-landmark pairs plus edges from which an iteration is worth two threads."""


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Return a thread count: scikit-learn's meaning of ``n_jobs``; None chooses.

    None leaves one core to the window where there are more than two;
    negative values count from the number of cores (-1 is all of them).
    """
    cores = n_cores()
    if n_jobs is None:
        return max(cores - 1, min(cores, 2))
    if n_jobs < 0:
        return max(1, cores + 1 + n_jobs)
    return max(1, n_jobs)


def threads_for(work: int, n_jobs: int | None) -> int:
    """Return the threads for ``work`` inner steps of one iteration, 1 or more."""
    return 1 if work < PARALLEL_WORK else resolve_n_jobs(n_jobs)


@contextmanager
def numba_threads(n_threads: int) -> Iterator[None]:
    """Run numba's parallel loops of this thread on ``n_threads`` threads."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(n_threads, numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(before)
