"""Ctrl-C that waits until what must not be broken off is done.

torch cannot be imported a second time in a process where its first import was broken
off: parts of it are there already and refuse to be made again.  What is kept of a fit
that was broken off: :meth:`estimator.EmbeddingGame.fit`, :meth:`live_run.Run._settle`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupt_waits() -> Iterator[None]:
    """Hold Ctrl-C back to the end of the block, and raise it there.

    Only the main thread receives it; in any other this does nothing.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before is None:  # None: not Python's to set
        yield
        return
    came = []

    def remember(*_: Any) -> None:
        came.append(True)

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)
