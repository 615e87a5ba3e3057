"""Read files in a separate process, which can be killed whatever a library does.

A damaged file can make a library loop or crash in C, where no thread can be stopped.
The process is started with the window, waits for the next file, and is killed where a
person cancels or where it takes too much memory or time; another process is started
then. Without a window files are read in the program itself.

Results come back pickled, arrays as plain bytes. Both ends are this program: no content
of a file is unpickled.
"""

from __future__ import annotations

import importlib
import math
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO
from weakref import finalize

import numpy as np
import psutil

from napari_embedding_game.data.child_process import start_process
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.stages import Stage, Stages, finish

LOOK_SECONDS = 0.1
"""Interval at which the memory, and whether somebody has cancelled, is checked."""
SPARE_BYTES, MAX_BYTES_PER_BYTE = 1 << 28, 10_000
"""Bytes of memory, and bytes for each byte of a file, that no intact file needs."""
SPARE_SECONDS, SECONDS_PER_BYTE = 4.0, 2e-5
"""Seconds of the processor, and for each byte, that no stage of an intact file
needs."""
_DEFLATED = 1_032
"""Largest number of bytes that gzip packs into one."""
LISTENER = "Reading process"
"""Name of the thread that waits for messages of the process."""
_LIBRARIES = ("anndata", "h5py", "pyarrow.parquet", "zarr", f"{__package__}.readers")

_idle: list[_Process] = []
"""Reading processes that wait for a file; at most one."""
has_window = threading.Event()
"""Set once there is a window."""


def read_in_process(
    path: str | Path, read: Callable[..., Any], *values: Any, **options: Any
) -> Stages[Any]:
    """Call ``read(path, *values, **options)`` in the reading process, in stages.

    Without a window it is called here. `read` is a function of a module that returns a
    value, or stages. Closing the generator kills the process within
    :data:`LOOK_SECONDS`; otherwise the process waits for the next file.

    Raises what `read` raises, and DataError if the process took too much memory or time
    (then it is killed), broke off, or cannot be started.
    """
    if not has_window.is_set():
        result = read(path, *values, **options)
        return (yield from result) if isinstance(result, Generator) else result
    process = _take_idle_process()
    path = path.absolute() if isinstance(path, Path) else path
    try:
        kind, content = yield from process.run_job(
            path, (read, (path, *values), options)
        )
    except BaseException:
        process.kill()
        raise
    _keep_idle_or_kill(process)
    if kind == "error":
        raise content
    return content


def start_reading_process() -> None:
    """Note that there is a window, and start a reading process if none is idle.

    A first file is then read at once. An error is not raised here, but when a file is
    read.
    """
    has_window.set()
    with suppress(DataError):  # reading the first file raises the error again
        _keep_idle_or_kill(_take_idle_process())


def _take_idle_process() -> _Process:
    """Return an idle reading process that still runs, else start one.

    Raises DataError if the computer starts no further program.
    """
    with suppress(IndexError):  # another thread may take the last process
        while (process := _idle.pop()).has_ended():
            pass
        return process
    try:
        return _Process()
    except OSError as error:
        raise DataError(
            "Files cannot be read, as this computer starts no further program "
            f"({error.strerror or error}): close others and try again."
        ) from error


def _keep_idle_or_kill(process: _Process) -> None:
    """Keep a process for the next file; kill it if another one is idle already."""
    if _idle:
        process.kill()
    else:
        _idle.append(process)


class _Process:
    """Handle of a reading process in the main program."""

    def __init__(self) -> None:
        """Start the process, and a thread that receives its messages.

        The process is killed at the latest when the program ends. Raises OSError if the
        computer starts no further program.
        """
        self._process = start_process(__name__, pipesize=1 << 20)
        # Kills the process when the program ends, too.
        finalize(self, self._process.kill)
        self._pid = self._process.pid
        """On Windows an environment's python starts another, which reads."""
        self._answers: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        threading.Thread(
            target=self._receive_messages, name=LISTENER, daemon=True
        ).start()

    def has_ended(self) -> bool:
        """Return whether the process has ended or was killed."""
        return self._process.poll() is not None

    def run_job(
        self, path: str | Path, job: tuple[Any, ...]
    ) -> Stages[tuple[str, Any]]:
        """Run a job in stages; return ("result", value) or ("error", exception).

        ``path``: the file, whose size limits memory and time. ``job``: the function,
        its values and its options. The present stage is yielded again every
        :data:`LOOK_SECONDS`, so that the caller can cancel.

        Raises DataError if the process took three quarters of the free memory, or more
        memory or time than a file of this size needs, or broke off.
        """
        assert self._process.stdin is not None
        # Reading a file may take three quarters of the free memory.
        most = 3 * memory.find_byte_budget() // 2
        before, _ = self._measure_memory_and_seconds()
        name, size = Path(path).name, _measure_unpacked_size(Path(path))
        most_here, patience, begun = math.inf, math.inf, 0.0
        with suppress(OSError):  # if the process has just ended, the listener says so
            pickle.dump(job, self._process.stdin)
            self._process.stdin.flush()
        stage = Stage(f"Reading {name}")
        while True:
            used, seconds = self._measure_memory_and_seconds()
            memory.check_bytes_read(used - before, name, most)
            if used - before > most_here or seconds - begun > patience:
                raise DataError(
                    f"{name} takes far more memory or time than a file of its size, so "
                    "it is damaged: copy or export it again."
                )
            try:
                kind, content = self._answers.get(timeout=LOOK_SECONDS)
            except Empty:
                kind, content = "stage", stage
            if kind == "ended":
                raise DataError(
                    f"{name} could not be read: the library that reads such files "
                    "broke off, so the file is damaged, or too large for this "
                    "computer's memory; copy or export it again."
                ) from content
            if kind != "stage":
                return kind, content
            if content is None:  # all libraries are loaded, and reading begins
                before, most_here = used, SPARE_BYTES + MAX_BYTES_PER_BYTE * size
            if content is not stage:
                begun, patience = seconds, SPARE_SECONDS + SECONDS_PER_BYTE * size
            stage = content or stage
            yield stage

    def kill(self, *, waits: bool = False) -> None:
        """Kill the process, also one that loops; with `waits` until it has ended."""
        self._process.kill()
        if waits:
            self._process.wait()

    def _measure_memory_and_seconds(self) -> tuple[int, float]:
        """Return the bytes of memory and seconds of processor time of the process.

        Both are 0 once the process has ended.
        """
        with suppress(psutil.Error):
            process = psutil.Process(self._pid)
            return process.memory_info().rss, process.cpu_times().user
        return 0, 0.0

    def _receive_messages(self) -> None:
        """Queue the messages of the process until it ends; runs in a thread.

        The first message is the process id, which is kept. At the end, or at a broken
        message, the process is killed and ("ended", reason) is queued.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        reason: Exception | None = None
        try:
            with self._process.stdout as pipe:
                _, self._pid = _receive_message(pipe)
                while True:
                    self._answers.put(_receive_message(pipe))
        except Exception as error:  # a truncated pickle raises any type
            reason = error
        self.kill(waits=True)
        with suppress(OSError):
            self._process.stdin.close()
        self._answers.put(("ended", reason))


def _measure_unpacked_size(path: Path) -> float:
    """Return the bytes of a file, or of all files in a .zarr folder; inf if unknown.

    For a .gz file this is the most that it may hold. The size of another folder is
    unknown.
    """
    with suppress(OSError):
        if path.is_file():
            is_packed = path.suffix.lower() == ".gz"
            return path.stat().st_size * (_DEFLATED if is_packed else 1)
        parts = path.rglob("*") if path.suffix == ".zarr" else ()
        return sum(one.stat().st_size for one in parts if one.is_file()) or math.inf
    return math.inf


# Messages, which both processes send and receive


def _send_message(pipe: BinaryIO, kind: str, content: Any) -> None:
    """Write a pickled message to a pipe, then the arrays in it as plain bytes.

    ``kind``: "stage", "result", "error" or "pid".
    """
    arrays: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(content, protocol=5, buffer_callback=arrays.append)
    parts = [array.raw() for array in arrays]
    pickle.dump((kind, pickled, [part.nbytes for part in parts]), pipe)
    for part in parts:
        pipe.write(part)
    pipe.flush()


def _receive_message(pipe: Any) -> tuple[str, Any]:
    """Read a message from a pipe; raise EOFError if it is cut short."""
    kind, pickled, sizes = pickle.load(pipe)  # noqa: S301
    parts = [np.empty(n_bytes, np.uint8) for n_bytes in sizes]
    for part in parts:
        if pipe.readinto(part) < len(part):
            raise EOFError
    return kind, pickle.loads(pickled, buffers=parts)  # noqa: S301


# Code that runs in the reading process


def serve() -> None:
    """Run the jobs that arrive on the standard input, until the input ends.

    Answers go to the standard output: the process id once, then for each job a stage of
    None, the stages, and the result or error. Anything that a library prints is
    discarded; an interrupt from the keyboard is ignored.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    _send_message(answers, "pid", os.getpid())
    # Output printed by a library would be read as an answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for module in _LIBRARIES:
        importlib.import_module(module)
    while True:
        result: Any = None  # frees the former result's memory while waiting
        try:
            read, values, options = pickle.load(jobs)  # noqa: S301
        except EOFError:
            return
        # Tells the main process that reading begins.
        _send_message(answers, "stage", None)
        try:
            result = read(*values, **options)
            if isinstance(result, Generator):
                result = finish(result, partial(_send_message, answers, "stage"))
            _send_message(answers, "result", result)
        except Exception as error:
            # If tblib is installed, causes are pickled, too, which can fail for errors
            # of libraries.
            error.__cause__ = error.__context__ = None
            _send_message(answers, "error", error)
