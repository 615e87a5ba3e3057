"""How many threads a piece of work gets, and the one way that it is shared among them.

Small work stays in its thread, large work leaves a core free where there are more than
two, and whoever asks for work does most of it itself where other threads are held up.
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
"""numba's options of a loop in which a division by 0 raises; C calls none of ours."""
LOOP: dict[str, Any] = {"error_model": "numpy", **CHECKED}
"""numba's options of a loop that :func:`run_blocks` may share."""
INNER: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True}
"""More of them, of a function that only loops call.

LLVM inlines it.  With ``inline="always"`` numba copies and types it anew for each call
of each of its callers: that is for a few lines, or for arguments that may be None.
"""

PARALLEL = threading.Lock()
"""Held in a library's parallel loop of numba: two at once end the process."""

COMPUTING = threading.Lock()
"""Held while one run computes: two would only slow each other down."""

PARALLEL_WORK = 2_000_000
"""Point-landmark pairs plus edges from which an iteration is worth two threads."""
SEARCH_WORK, _SEARCH_BLOCKS = 10**10, 64
"""Work of a neighbour search, and its blocks for each thread: it can be broken off."""
_N_JOBS = ContextVar[int | None]("n_jobs", default=None)


def do_nothing() -> None:
    """Go on."""


BETWEEN_BLOCKS = ContextVar[Callable[[], object]]("between_blocks", default=do_nothing)
"""Called by who asked for work between its blocks: what it raises breaks it off."""
_BLOCKS = 4
"""Blocks for each thread, so that none waits long for a delayed one."""


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def limited(n_jobs: int | None) -> Iterator[None]:
    """Share the work of the block among so many threads, counted as by scikit-learn.

    None leaves a core to the window.  No ``yield`` of a generator may be in the block.
    """
    before = _N_JOBS.set(n_jobs)
    try:
        yield
    finally:
        _N_JOBS.reset(before)


def n_threads() -> int:
    """Return among how many threads work is shared here: see :func:`limited`."""
    n_jobs, cores = _N_JOBS.get(), n_cores()
    if n_jobs is None:
        return max(cores - 1, min(cores, 2))
    return max(1, cores + 1 + n_jobs if n_jobs < 0 else n_jobs)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, n_cores() - 1), "embedding-game")


def run_blocks(loop: Callable[..., object], n: int, work: int, *arguments: Any) -> None:
    """Call ``loop(begin, end, *arguments)`` for blocks that cover ``range(n)``.

    For compiled loops without the interpreter's lock in which no item sees what another
    one writes: the bits are then the same for any number of threads.  What is summed
    over items goes to a partial sum of each.  Little ``work`` is done in this thread.
    """
    n_sharing = min(n_threads(), n) if work >= PARALLEL_WORK else 1
    if n_sharing <= 1 and work < SEARCH_WORK:
        loop(0, n, *arguments)
        return
    each = _BLOCKS if work < SEARCH_WORK else _SEARCH_BLOCKS
    n_blocks = min(n, each * n_sharing)
    bounds = [i * n // n_blocks for i in range(n_blocks + 1)]
    blocks = deque(itertools.pairwise(bounds))

    def take_blocks(between: Callable[[], object] = do_nothing) -> None:
        while True:
            between()
            try:
                block = blocks.popleft()
            except IndexError:  # another thread has taken the last one
                return
            loop(*block, *arguments)

    helpers = [_pool().submit(take_blocks) for _ in range(n_sharing - 1)]
    try:
        take_blocks(BETWEEN_BLOCKS.get())
    finally:
        blocks.clear()
        started = [helper for helper in helpers if not helper.cancel()]
        for helper in started:
            helper.result()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Run torch's CPU operations of this thread on one thread, as each is small.

    Not by ``torch.set_num_threads``: a thread of another program that first uses torch
    meanwhile would keep one thread for ever.
    """
    import torch

    torch.get_num_threads()  # the first call in a thread sets its number of threads
    with _openmp().limit(limits=1):
        yield


@cache
def _openmp() -> ThreadpoolController:
    """Return what sets OpenMP's number of threads for one thread; find it in 10 ms."""
    return ThreadpoolController().select(user_api="openmp")
