"""numba's cache of compiled loops, which several processes may fill at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from glob import escape
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from numba.core.caching import IndexDataCacheFile

LOCK, LOCK_SECONDS = "embedding-game.lock", 10.0
"""The lock file of a cache folder, and the longest wait for another process's lock."""


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return ``numba.njit(**options)`` as a decorator, with a :class:`SharedCacheFile`.

    A version of numba whose cache has other classes keeps numba's own cache.
    """

    def compile_loop(function: Callable[..., Any]) -> Any:
        """Compile by ``numba.njit``, and replace the class of the loop's cache file."""
        loop = numba.njit(**options)(function)
        cache_file = getattr(getattr(loop, "_cache", None), "_cache_file", None)
        if type(cache_file) is IndexDataCacheFile:
            cache_file.__class__ = SharedCacheFile
        return loop

    return compile_loop


def is_cached_on_disk(loop: Any) -> bool:
    """Return whether the cache on disk holds machine code of the present ``loop``.

    True where numba's own cache is in use, whose content cannot be known.
    """
    cache_file = getattr(getattr(loop, "_cache", None), "_cache_file", None)
    return type(cache_file) is not SharedCacheFile or bool(cache_file._load_index())


class SharedCacheFile(IndexDataCacheFile):
    """The cache files of one loop: an index of signatures, and machine code for each.

    numba numbers the files of machine code, and writes the index first: two processes
    that compile two signatures at once both write file 1, and a process that ends in
    between leaves an index entry for the code of a former version.  Here each file of
    machine code has a unique name, and is complete before the index names it.  The lock
    only keeps two processes from overwriting each other's index: without the lock an
    entry may be lost, and its loop compiled again.
    """

    def save(self, key: Any, data: Any) -> None:
        """Save the machine code ``data`` of the signature ``key``, under a lock.

        After :data:`LOCK_SECONDS`, or where files cannot be locked, it is saved without
        the lock.  Nothing is saved where the cache folder cannot be written.
        """
        from filelock import FileLock, Timeout

        with ExitStack() as stack:
            stack.enter_context(suppress(OSError))
            lock = FileLock(Path(self._cache_path, LOCK), timeout=LOCK_SECONDS)
            with suppress(OSError, NotImplementedError, Timeout):
                stack.enter_context(lock)
            overloads = self._load_index()
            if not overloads:
                self._remove_data_files()
            name = self._data_name_pattern.format(number=uuid4().int >> 64)
            self._save_data(name, data)
            self._save_index({**overloads, key: name})

    def _remove_data_files(self) -> None:
        """Remove all files of this function's machine code, which no index names.

        They were left by former versions, as this is called while the index is empty.
        Files that cannot be removed stay.
        """
        before, after = self._data_name_pattern.split("{number:d}")
        for path in Path(self._cache_path).glob(f"{escape(before)}*{after}"):
            with suppress(OSError):  # Windows keeps a file that a process reads
                path.unlink()
