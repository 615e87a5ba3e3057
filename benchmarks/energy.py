"""The `fast` schedule beside the paper's: true energy (Eq. 1), iterations, time.

MNIST, 70,000 x 784, K = 15, edges of weight 1, lambda = 0.001, both from the
same start.  Only the game is timed.  Fewer rows get a larger lambda, so that
lambda N stays.  The ratio is to the paper's schedule of the same run.
"""

from __future__ import annotations

import statistics
from typing import Any

from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.initialization import start_layout
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import true_energy
from napari_embedding_game.core.types import GameSettings
from napari_embedding_game.core.warm_up import compile_kernels
from shared import arguments, finish, load, median, report, timed

STRENGTH = 0.001 * 70_000
OPTIONS: dict[str, dict[str, Any]] = {
    "paper_landmarks": {
        "type": int,
        "nargs": "+",
        "default": [50],
        "help": "L of both schedules (default: 50); fast is played with 200, too",
    },
    "sampled_rows": {
        "type": int,
        "help": "rows of the true energy to draw (default: all, which is exact)",
    },
}


def main() -> None:
    """Print the table."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    data = load("mnist pixels", args)
    if data is None:
        return
    compile_kernels()
    n_points = len(data.X)
    graph = knn_graph(data.X, 15)
    uniform = edges(graph, "uniform")
    layout = start_layout(uniform, data.X)
    games = [("paper", n) for n in args.paper_landmarks]
    games += [("fast", n) for n in sorted({*args.paper_landmarks, 200})]
    rows: list[dict[str, Any]] = []
    for schedule, n_landmarks in games:
        settings = GameSettings(
            schedule=schedule, n_landmarks=n_landmarks, strength=STRENGTH
        )
        last, seconds = timed(
            lambda s=settings: finish(uniform, layout, s), args.repeats
        )
        energy = true_energy(
            uniform, last.embedding, STRENGTH / n_points, args.sampled_rows
        )
        middle = statistics.median(seconds)
        peer = rows[0] if rows else {"seconds": middle, "true energy": energy}
        rows.append(
            {
                "schedule": schedule,
                "L": n_landmarks,
                "iterations": last.iteration,
                "s": median(seconds),
                "seconds": middle,
                "true energy": round(energy),
                "bound": round(last.energy),
                "time, to paper": middle / peer["seconds"],
                "energy, to paper": energy / peer["true energy"],
            }
        )
    for row in rows:
        del row["seconds"]
    report(f"Energy, {n_points:,} points, lambda N = {STRENGTH:g}", rows, args)


if __name__ == "__main__":
    main()
