"""Compile the numeric kernels now, so that the first run or test need not wait.

python tools/warm_up.py
"""

from __future__ import annotations

import gc
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from subprocess import DEVNULL, run
from typing import Any

import numpy as np
import torch

from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.objective import MeshSum
from napari_embedding_game.core.energy.pressure import compute_labels_and_pressure
from napari_embedding_game.core.errors import EmbeddingWarning
from napari_embedding_game.core.estimator import EmbeddingGame, to_parameters
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.graph.neighbors import SHORT_ROWS, knn_graph
from napari_embedding_game.session.run import engine
from napari_embedding_game.ui.pixels import compile_loops


def fit(**settings: Any) -> tuple[EmbeddingGame, Any]:
    """Fit a few rows; after so few iterations no map says much."""
    X = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    return EmbeddingGame(**to_parameters(settings), random_state=0).fit(X), X


def of_the_window() -> None:
    """Compile all that the window needs, in the types that it needs them in."""
    engine.warm_up()
    compile_loops()
    for n_components in (2, 3):
        for affinity in ("uniform", "mixed"):
            model, X = fit(n_components=n_components, affinity=affinity, max_iter=3)
    model.transform(X[:2] + 1)


def of_a_method(method: str) -> None:
    """Compile the sums of a method, by each approximation."""
    few = {"method": method, "perplexity": 10.0, "max_iter": 2}
    for approximation in METHODS[method].approximations:
        fit(**few, approximation=approximation)


def of_many_rows() -> None:
    """Compile the searches in leaves and components, and the grid of a wide map."""
    rows = np.zeros((800, SHORT_ROWS + 1), np.float32)
    rows[:, 0] = np.arange(800)
    knn_graph(rows, 1, search="projected")
    two = np.array([[0, 1], [1, 0]], np.float32)
    objective = MeshSum(CompiledForces(Edges.from_symmetric_matrix(two)), 1.0)
    for width in (1.0, 100.0):  # the grid of a small map has float64
        y = torch.tensor([[0.0, 0.0], [width, 0.0]])
        objective.energy_and_gradients(y, y[:1])
        compute_labels_and_pressure(objective, y, y[:1])


def of_the_libraries() -> None:
    """Have Python compile what the processes of the tests would all import at once.

    pytest writes anew what its plugins are made of, napari with them.
    """
    run([sys.executable, "-c", "import napari.qt, scanpy"], check=True)
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-qqq", "tests"]
    run(collect, check=False, stdout=DEVNULL)


def compile_only() -> None:
    """Have a process look for no garbage, a tenth of the time of a compiler."""
    gc.disable()
    warnings.simplefilter("ignore", EmbeddingWarning)


if __name__ == "__main__":
    spawn = get_context("spawn")
    with ProcessPoolExecutor(2, spawn, compile_only) as processes:
        # Libraries second: what windows and many rows both need is compiled once.
        first = of_the_window, of_the_libraries, of_many_rows
        begun = [processes.submit(each) for each in first]
        played = (method for method in METHODS if method != "given")  # needs a map
        begun += [processes.submit(of_a_method, method) for method in played]
        for each in begun:
            each.result()
