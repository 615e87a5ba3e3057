"""Time every stage of a run, and how long it keeps other Python threads waiting.

A second thread asks for its turn every 5 ms, as a window's thread does; the
longest time that it was late is the stage's "held".  The stages run twice: the
first time in a cold process, where modules are still loaded.  The ratio is the
stage's share of the whole run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from shared import Input, arguments, finish, load, report

INTERVAL = 0.005


class Ticker:
    """Notes how late a thread is that wakes every 5 ms."""

    def __init__(self) -> None:
        self.late: list[tuple[float, float]] = []
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        last = time.perf_counter()
        while True:
            time.sleep(INTERVAL)
            now = time.perf_counter()
            self.late.append((now, now - last - INTERVAL))
            last = now

    def worst_since(self, begin: float) -> float:
        """Return the longest lateness, in seconds, that ended after ``begin``."""
        time.sleep(4 * INTERVAL)
        return max(late for when, late in self.late if when >= begin)


def stages(data: Input) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """Return the stages by name; each takes what those before it returned."""
    from napari_embedding_game.core.graph.affinities import edges
    from napari_embedding_game.core.graph.initialization import start_layout
    from napari_embedding_game.core.graph.neighbors import knn_graph

    return {
        "neighbours": lambda _: knn_graph(data.X),
        "edges, uniform": lambda done: edges(done["neighbours"], "uniform"),
        "edges, fuzzy": lambda done: edges(done["neighbours"], "fuzzy"),
        "start, pca": lambda done: start_layout(
            done["edges, fuzzy"], data.X, init="pca"
        ),
        "start, spectral": lambda done: start_layout(done["edges, fuzzy"], data.X),
        "game": lambda done: finish(
            done["edges, fuzzy"], done["start, spectral"], diagnose=True
        ),
    }


def measure(data: Input, ticker: Ticker, process: str) -> list[dict[str, Any]]:
    """Run all stages once."""
    done: dict[str, Any] = {}
    rows = []
    for name, stage in stages(data).items():
        begin, worked = time.perf_counter(), time.process_time()
        done[name] = stage(done)
        seconds = time.perf_counter() - begin
        worked = time.process_time() - worked
        held = ticker.worst_since(begin)
        rows.append(
            {
                "stage": name,
                "process": process,
                "s": seconds,
                "processor, s": worked,
                "held, ms": 1e3 * held,
            }
        )
    whole = sum(row["s"] for row in rows)
    return [{**row, "share": f"{row['s'] / whole:.0%}"} for row in rows]


def main() -> None:
    """Print a table for each input."""
    args = arguments(__doc__)
    ticker = Ticker()
    process = "cold"
    for name in ("mnist", "mnist pixels"):
        data = load(name, args)
        if data is None:
            continue
        for _ in range(2):
            rows = measure(data, ticker, process)
            process = "warm"
            report(f"Stages, {name}, {len(data.X):,} x {data.X.shape[1]}", rows, args)


if __name__ == "__main__":
    main()
