"""What an import costs: a napari that merely lists its plugins should not feel it."""

import subprocess
import sys

HEAVY = {"torch", "numba", "napari", "qtpy", "PyQt5", "PyQt6", "PySide2", "PySide6"}


CODE = """
import napari_embedding_game.core, napari_embedding_game.cli
from napari_embedding_game.core import snapshot, errors
import napari_embedding_game as own
own.EmbeddingGame
import sys
print(*sys.modules)
"""
MENU = """
import napari_embedding_game.ui.plugin, sys
print(*sys.modules)
"""
AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Barrier
from napari_embedding_game.core.graph.neighbors import choose_search
import numpy as np
rows, wait = np.empty((9, 3)), Barrier(2).wait
with ThreadPoolExecutor() as pool:
    search = pool.submit(lambda: wait() is choose_search(rows, "chebyshev"))
    pool.submit(lambda: wait() is import_module("sklearn.metrics")).result()
    search.result()
"""


def in_a_new_process(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_an_import_loads_nothing_heavy():
    loaded = {name.partition(".")[0] for name in in_a_new_process(CODE).split()}
    assert not loaded & (HEAVY | {"anndata", "scanpy"})


def test_the_menu_of_napari_answers_before_the_dock_is_imported():
    loaded = {name.partition(".")[0] for name in in_a_new_process(MENU).split()}
    assert "napari" in loaded
    assert not loaded & {"torch", "pandas", "sklearn", "anndata"}


def test_two_threads_that_load_scikit_learn_do_not_break_each_other():
    in_a_new_process(AT_ONCE)
