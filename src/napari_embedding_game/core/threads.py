"""How many threads a piece of work gets.

In napari the window needs a core too, and a parallel region waits for its
slowest thread: with one of two cores held, small data take much longer with two
threads than with one (``benchmarks/threads.py``, b9dd4b2).  So small work is serial,
and large work leaves a core free where there are more than two.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_FIRST_PATIENCE = 8
_MOST_PATIENCE = 256

PARALLEL = threading.Lock()
"""Held by the Python thread that is in one of numba's parallel loops.

With numba's default threading layer two of them there at once end the process.
"""

COMPUTING = threading.Lock()
"""Held by who computes for one run, so that another one waits instead.

Two runs at once would only slow each other down; they do not disturb each other, see
:data:`PARALLEL`.
"""

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


class ThreadChoice:
    """Serial or parallel, whichever ran faster lately.

    A core that is free now may be held by the window a moment later, so the
    slower way is tried again now and then: the longer it has been losing, the
    more rarely.

    Nobody sees the change: both ways give the same bits.  They are compiled apart,
    but from one loop over chunks, which own the partial sums; and the compiler may
    change neither the order of a sum nor the rounding of a product in it, see
    :data:`lanes.STRICT`.  So both do the same operations on the same numbers.
    """

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._seconds = {False: 0.0, True: 0.0}
        self._untimed = {False, True}
        self._wait = 0
        self._patience = _FIRST_PATIENCE

    @contextmanager
    def threads_for(self, work: int) -> Iterator[int]:
        """Give the threads for ``work`` inner steps, and time what they do."""
        if work < PARALLEL_WORK or self._n_threads == 1:
            yield 1
            return
        is_parallel, is_trial = self._next()
        if not is_parallel:
            begin = time.perf_counter()
            yield 1
        elif PARALLEL.acquire(blocking=False):
            try:
                begin = time.perf_counter()
                with numba_threads(self._n_threads):
                    yield self._n_threads
            finally:
                PARALLEL.release()
        else:  # another game is in a parallel loop: that tells nothing of ours
            yield 1
            return
        self._learn(is_parallel, is_trial, time.perf_counter() - begin)

    def _next(self) -> tuple[bool, bool]:
        faster = self._seconds[True] <= self._seconds[False]
        self._wait -= 1
        is_trial = self._wait < 0
        return faster != is_trial, is_trial

    def _learn(self, is_parallel: bool, is_trial: bool, seconds: float) -> None:
        if is_parallel in self._untimed:  # it may have been compiled, or loaded
            self._untimed.remove(is_parallel)
            return
        known = self._seconds[is_parallel]
        self._seconds[is_parallel] = 0.5 * (known + seconds) if known else seconds
        if is_trial:
            has_lost = self._seconds[is_parallel] > self._seconds[not is_parallel]
            self._patience = (
                min(2 * self._patience, _MOST_PATIENCE) if has_lost else _FIRST_PATIENCE
            )
            self._wait = self._patience


class Loops:
    """Compiled loops that stand in a module twice, serial and parallel.

    Parameters
    ----------
    n_jobs : int, optional
        Threads, see :func:`resolve_n_jobs`.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs
        self.n_threads = resolve_n_jobs(n_jobs)
        self._choices: dict[str, ThreadChoice] = {}

    def run(self, module: ModuleType, name: str, work: int, *arguments: Any) -> None:
        """Run ``name`` of a module, whichever of its two is faster now.

        ``work``: its inner steps.
        """
        choice = self._choices.get(name)
        if choice is None:
            choice = self._choices[name] = ThreadChoice(self.n_threads)
        with choice.threads_for(work) as n_threads:
            kind = "serial" if n_threads == 1 else "parallel"
            getattr(module, f"{name}_{kind}")(*arguments)


class RowBlocks:
    """Does the same with blocks of rows, each in a thread of its own.

    For compiled loops without the interpreter's lock in which no row sees another: the
    bits are then the same for any number of threads.

    Parameters
    ----------
    n_rows : int
    work : int
        Inner steps for all rows; few are done in this thread.
    n_jobs : int, optional
        Threads, see :func:`resolve_n_jobs`.
    """

    def __init__(self, n_rows: int, work: int, n_jobs: int | None = None) -> None:
        n_threads = resolve_n_jobs(n_jobs) if work >= PARALLEL_WORK else 1
        n_threads = max(1, min(n_threads, n_rows))
        bounds = [i * n_rows // n_threads for i in range(n_threads + 1)]
        self._blocks = list(itertools.pairwise(bounds))
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __enter__(self) -> RowBlocks:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def __call__(self, job: Callable[[int, int], object]) -> None:
        """Call ``job(begin, end)`` for every block; return when all are done."""
        if self._pool is None:
            job(*self._blocks[0])
            return
        for done in [self._pool.submit(job, *block) for block in self._blocks]:
            done.result()


def at_most_numba(n_threads: int) -> int:
    """Return the thread count, or numba's limit where that is lower."""
    import numba

    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    return min(n_threads, most)


@contextmanager
def numba_threads(n_threads: int) -> Iterator[None]:
    """Run numba's parallel loops of this thread on ``n_threads`` threads."""
    import numba  # here: a session asks for the lock before it needs any loop

    before = numba.get_num_threads()
    numba.set_num_threads(at_most_numba(n_threads))
    try:
        yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Run torch's CPU operations of this thread on one thread.

    An iteration has a dozen of them, each too small to win by a second thread
    and each a place to wait for one that the window holds.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
