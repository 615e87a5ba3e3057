"""Delay Ctrl-C during work that must not be interrupted, such as importing torch.

torch cannot be imported a second time in a process where its first import was
interrupted: some of its types are registered already and refuse to be made again.  What
is kept of an interrupted fit: :meth:`estimator.EmbeddingGame.fit`,
:meth:`live_run.Run._store_fit`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block, and raise KeyboardInterrupt there.

    Only the main thread receives Ctrl-C; in any other thread this does nothing.  At the
    end the former handler of SIGINT is called, which may do something else.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before is None:  # None: the handler was not set from Python
        yield
        return
    received = []

    def note_interrupt(*_: Any) -> None:
        received.append(True)

    signal.signal(signal.SIGINT, note_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if received:
            signal.raise_signal(signal.SIGINT)
