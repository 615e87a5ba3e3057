"""What an import costs: a napari that merely lists its plugins should not feel it."""

import subprocess
import sys

HEAVY = ("torch", "numba", "napari", "qtpy", "PyQt5", "PyQt6", "PySide2", "PySide6")


def loaded_by(code):
    code = f"{code}\nimport sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()} & set(HEAVY)


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import napari_embedding_game") == set()
    assert loaded_by("import napari_embedding_game.core") == set()
    assert loaded_by("from napari_embedding_game.core import snapshot, errors") == set()


def test_importing_the_estimator_loads_neither_torch_nor_a_window():
    assert loaded_by("from napari_embedding_game import EmbeddingGame") == set()


def test_the_whole_engine_knows_no_window():
    engine = (
        "estimator",
        "dynamics.play",
        "graph.neighbors",
        "graph.start",
        "inspect.cover",
    )
    code = "\n".join(f"import napari_embedding_game.core.{name}" for name in engine)
    assert loaded_by(code) <= {"torch", "numba"}
