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


def test_an_import_loads_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-c", CODE], check=True, capture_output=True, text=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & (HEAVY | {"anndata", "scanpy"})
