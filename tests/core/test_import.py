"""What an import costs: a napari that merely lists its plugins should not feel it."""

import subprocess
import sys

import pytest

HEAVY = {"torch", "numba", "napari", "qtpy", "PyQt5", "PyQt6", "PySide2", "PySide6"}


@pytest.mark.parametrize(
    "code",
    [
        "import napari_embedding_game.core, napari_embedding_game.cli",
        "from napari_embedding_game.core import snapshot, errors",
        "import napari_embedding_game as own; own.EmbeddingGame, own.tl.embedding_game",
    ],
)
def test_an_import_loads_nothing_heavy(code):
    code = f"{code}\nimport sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & (HEAVY | {"anndata", "scanpy"})
