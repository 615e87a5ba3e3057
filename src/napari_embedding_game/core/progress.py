"""How far a run has come, on one line of the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

from napari_embedding_game.core.snapshot import Snapshot


def shown_on_a_line(
    snapshots: Iterable[Snapshot], is_shown: bool = True
) -> Iterator[Snapshot]:
    """Yield snapshots; a line on stderr is written over with each."""
    if not is_shown:
        yield from snapshots
        return
    begun = time.perf_counter()
    try:
        for snapshot in snapshots:
            done, left = snapshot.iteration, snapshot.n_iter - snapshot.iteration
            if not done:
                begun = time.perf_counter()
            text = f"{done:,} iterations"
            if done and left > 0:
                seconds = (time.perf_counter() - begun) * left / done
                text += f" of {snapshot.n_iter:,}, {seconds:.0f} s left"
            print(f"\r{text:<60}", end="", file=sys.stderr, flush=True)
            yield snapshot
    finally:
        print(file=sys.stderr)
