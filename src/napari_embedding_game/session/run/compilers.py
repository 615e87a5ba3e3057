"""Processes that compile loops beside the window at its first start on a computer.

numba compiles one function at a time in a process, and blocks the process's other
threads.  These processes share the parts, fill numba's cache, and end.  Where a process
is missing or breaks off, the window compiles the missing parts itself.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any
from weakref import finalize

import numba.core.event

from napari_embedding_game.core.threads import count_cores
from napari_embedding_game.data.child_process import start_process

KIND = "numba:compile"
"""Name of the events that numba sends when it compiles a function; loading a function
from the cache sends none."""
MOST = 3
"""Most processes: more would take longer to import than to compile."""
_BEGUN, _ENDED, _NEEDED_ARE_DONE = b"+", b"-", b"."

numba_event: Any = numba.core.event  # which has no types

Part = Callable[[], object]
"""A function of a module that compiles some loops, see :mod:`first_game`."""


class Compilers:
    """The processes that compile parts, the parts needed first before the others.

    Their numba events are repeated in this process, as if it compiled: see
    :data:`KIND`.
    """

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._waiting: list[threading.Event] = []
        self._is_stopped = False

    def start_processes(self, needed: Sequence[Part], later: Sequence[Part]) -> None:
        """Start processes that compile the needed parts, then the later parts.

        There are at most ``MOST`` of them, one for each core but one, at least one, and
        no more than needed parts.  Without a needed part none is started, and ``later``
        is not compiled.  The parts are dealt out among them.  Where the system starts
        no further process, there are fewer, and the parts of the missing ones are not
        compiled here.

        ``needed``: parts for the first frame. ``later``: parts compiled after them.
        """
        n = min(MOST, max(1, count_cores() - 1), len(needed))
        with suppress(OSError):  # the system starts no further program
            for at in range(n):
                self._start_process(needed[at::n], later[at::n])

    def _start_process(self, needed: Sequence[Part], later: Sequence[Part]) -> None:
        """Start a process that compiles the needed parts, then the later parts.

        A thread relays its events.  If the processes were ended meanwhile, it is
        killed.
        """
        process = start_process(__name__, bufsize=0)
        finalize(self, process.kill)  # also where the program ends
        self._processes.append(process)
        if self._is_stopped:
            process.kill()
        self._waiting.append(are_done := threading.Event())
        assert process.stdin is not None
        with suppress(OSError), process.stdin as pipe:  # it has just ended
            pipe.write(pickle.dumps((list(needed), list(later))))
        listen = self._relay_compile_events, (process, are_done)
        threading.Thread(target=listen[0], args=listen[1], daemon=True).start()

    def wait_for_needed(self) -> bool:
        """Wait until the needed parts are compiled, or the processes have ended.

        Returns False if :meth:`end_processes` was called.
        """
        for are_done in self._waiting:
            are_done.wait()
        return not self._is_stopped

    def end_processes(self) -> None:
        """Kill the processes; loops that they have compiled stay in the cache."""
        self._is_stopped = True
        for process in self._processes:
            process.kill()

    def _relay_compile_events(
        self, process: subprocess.Popen[bytes], are_done: threading.Event
    ) -> None:
        """Repeat the numba events of a process until it ends, in a thread.

        ``are_done``: is set once the needed parts are compiled, or the process has
        ended. Compilations that the process began and did not end are ended here.
        """
        n_open = 0
        assert process.stdout is not None
        with process.stdout as pipe:
            while letter := pipe.read(1):
                if letter == _BEGUN:
                    n_open += 1
                    numba_event.start_event(KIND)
                elif letter == _ENDED:
                    n_open -= 1
                    numba_event.end_event(KIND)
                elif letter == _NEEDED_ARE_DONE:
                    are_done.set()
        for _ in range(n_open):  # the process was killed while it compiled
            numba_event.end_event(KIND)
        process.wait()
        are_done.set()


# In the process


class _CompileEventWriter(numba.core.event.Listener):
    """Writes a byte to a pipe when the compilation of a function begins or ends."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def on_start(self, event: object) -> None:
        os.write(self._pipe, _BEGUN)

    def on_end(self, event: object) -> None:
        os.write(self._pipe, _ENDED)


def serve() -> None:
    """Compile the parts named on the standard input, reporting on the output.

    The input is a pickle of the needed and the later parts.  A byte is written at the
    begin and the end of each compilation, and after the needed and the later parts.
    """
    gc.disable()  # a tenth of the time of a compiler
    warnings.simplefilter("ignore")  # so few rows are no map
    pipe = os.dup(1)
    with ExitStack() as stack:
        nowhere = stack.enter_context(open(os.devnull, "w"))
        for stream in (1, 2):  # what a library prints is no letter
            os.dup2(nowhere.fileno(), stream)
        needed, later = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the window
        numba_event.register(KIND, _CompileEventWriter(pipe))
        for parts in (needed, later):
            for compile_part in parts:
                compile_part()
            os.write(pipe, _NEEDED_ARE_DONE)
