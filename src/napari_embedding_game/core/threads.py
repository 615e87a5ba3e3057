"""The number of threads, and loops that are shared among them in blocks.

Small loops run in the calling thread.  Large loops leave a core free where there are
more than two cores; the calling thread takes blocks too, so that a loop proceeds where
other threads are delayed.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

CHECKED: dict[str, Any] = {"nogil": True, "cache": True, "no_cfunc_wrapper": True}
"""numba's options of a loop in which a division by 0 raises; none is called from C."""
LOOP: dict[str, Any] = {"error_model": "numpy", **CHECKED}
"""numba's options of a loop that :func:`run_blocks` may share."""
INNER: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True}
"""Additional options of a function that only loops call.

LLVM inlines the function.  With ``inline="always"`` numba copies and types the function
anew for each call: use that for a few lines, or for arguments that may be None.
"""

PARALLEL = threading.Lock()
"""Lock held around a library's parallel numba loop: two at once crash the process."""

COMPUTING = threading.Lock()
"""Lock held while a run computes: two runs would only slow each other down."""

PARALLEL_WORK = 2_000_000
"""Fewest point-landmark pairs plus edges for which two threads are worth their cost."""
SEARCH_WORK, _SEARCH_BLOCKS = 10**10, 64
"""Least work of a long loop, such as a neighbour search, and its blocks per thread:
many small blocks, so that the loop can be interrupted."""
_N_JOBS = ContextVar[int | None]("n_jobs", default=None)


def do_nothing() -> None:
    """Do nothing: the default of :data:`BETWEEN_BLOCKS`."""


BETWEEN_BLOCKS = ContextVar[Callable[[], object]]("between_blocks", default=do_nothing)
"""Function that the calling thread calls before each block; an exception raised by the
function ends the loop."""
_BLOCKS = 4
"""Blocks per thread, so that no thread waits long for a delayed thread."""


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def limit_threads(n_jobs: int | None) -> Iterator[None]:
    """Set the number of threads of :func:`run_blocks` inside the ``with`` block.

    ``n_jobs`` counts as in scikit-learn: -1 is all cores.  None leaves a core to the
    window where there are more than two.  A generator must not ``yield`` inside the
    block.
    """
    before = _N_JOBS.set(n_jobs)
    try:
        yield
    finally:
        _N_JOBS.reset(before)


def count_threads() -> int:
    """Return the number of threads set by :func:`limit_threads`, at least 1.

    By default all cores but one, and both of two cores.
    """
    n_jobs, cores = _N_JOBS.get(), count_cores()
    if n_jobs is None:
        return max(cores - 1, min(cores, 2))
    return max(1, cores + 1 + n_jobs if n_jobs < 0 else n_jobs)


@cache
def _get_thread_pool() -> ThreadPoolExecutor:
    """Return the threads that help in loops: one less than there are cores."""
    return ThreadPoolExecutor(max(1, count_cores() - 1), "embedding-game")


def run_blocks(loop: Callable[..., object], n: int, work: int, *arguments: Any) -> None:
    """Call ``loop(begin, end, *arguments)`` for blocks that cover ``range(n)``.

    Threads share the blocks; less ``work`` than :data:`PARALLEL_WORK` is one call in
    this thread.  ``loop`` is compiled, releases the interpreter's lock, and no item
    reads what another item writes: the bits are then the same for any number of
    threads.  Sums over items need a partial sum for each item.  An exception of a loop
    or of :data:`BETWEEN_BLOCKS` is raised here; blocks not yet begun are dropped.
    """
    n_sharing = min(count_threads(), n) if work >= PARALLEL_WORK else 1
    if n_sharing <= 1 and work < SEARCH_WORK:
        loop(0, n, *arguments)
        return
    each = _BLOCKS if work < SEARCH_WORK else _SEARCH_BLOCKS
    n_blocks = min(n, each * n_sharing)
    bounds = [i * n // n_blocks for i in range(n_blocks + 1)]
    blocks = deque(itertools.pairwise(bounds))

    def take_blocks(between: Callable[[], object] = do_nothing) -> None:
        """Process blocks until none is left; call ``between`` before each block."""
        while True:
            between()
            try:
                block = blocks.popleft()
            except IndexError:  # another thread has taken the last block
                return
            loop(*block, *arguments)

    helpers = [_get_thread_pool().submit(take_blocks) for _ in range(n_sharing - 1)]
    try:
        take_blocks(BETWEEN_BLOCKS.get())
    finally:
        blocks.clear()
        started = [helper for helper in helpers if not helper.cancel()]
        for helper in started:
            helper.result()


@contextmanager
def use_one_torch_thread() -> Iterator[None]:
    """Limit this thread's torch operations on the CPU to one thread inside the block.

    Each operation is too small to share.  ``torch.set_num_threads`` is avoided: a
    thread of another program that first uses torch meanwhile would keep that limit.
    """
    import torch

    torch.get_num_threads()  # the first call in a thread sets its number of threads
    with _find_controller("openmp").limit(limits=1):
        yield


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Limit numpy's linear algebra to one thread inside the block, in all threads.

    For small matrices: threads that wait for each other take a hundred times as long
    where other programs keep the cores busy.  Blocks must not run at the same time.
    """
    with _find_controller("blas").limit(limits=1):
        yield


@cache
def _find_controller(user_api: str) -> ThreadpoolController:
    """Return the controller of the limits of "openmp" or "blas"; it takes 10 ms."""
    return ThreadpoolController().select(user_api=user_api)
