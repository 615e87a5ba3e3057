"""The example notebooks, executed as a person would."""

import importlib
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_live_notebook_is_watched_and_steered(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(EXAMPLES / "live.ipynb", as_version=4)
    # Fewer rows and pixels: the sliders and the frames are what is looked at.
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert first.source.count("load_digits(return_X_y") == 1
    first.source = first.source.replace("load_digits(", "load_digits(n_class=4, ")
    first.source += '\nplt.rcParams["figure.dpi"] = 20'
    last = notebook.cells.pop()
    slider = "repulsion.value = 600\nlandmarks.value = 50"
    told = "print(len(game.landmarks_), run.steered[-1][1].repulsion, game.n_iter_)"
    notebook.cells += [new_code_cell(slider), last, new_code_cell(told)]
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    words = notebook.cells[-1].outputs[0].text.split()
    assert words[:2] == ["50", "600.0"]
    assert int(words[2]) >= 500


def executed(name: str) -> dict[str, Any]:
    """Run the code of a notebook here; return its variables."""
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    plt.switch_backend("agg")
    found: dict[str, Any] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, name, "exec"), found)
    plt.close("all")
    return found


def test_the_new_cells_notebook_places_most_digits_among_their_label():
    assert executed("new_cells")["accuracy"] > 0.95


def test_the_any_map_notebook_finds_some_misplaced_points():
    assert 0 < executed("any_map")["doubtful"].mean() < 0.3


@pytest.mark.filterwarnings("ignore")  # of scanpy and what it plots with
def test_the_scanpy_notebook_maps_clusters_and_compares(monkeypatch):
    umap = importlib.import_module("umap.umap_")
    for loop in ("smooth_knn_dist", "compute_membership_strengths"):
        # scanpy's graph: 700 cells are not worth what numba takes to compile these.
        monkeypatch.setattr(umap, loop, getattr(umap, loop).py_func)
    found = executed("scanpy_idiom")
    assert found["adata"].obsm["X_embedding_game"].shape == (700, 2)
    assert found["clusters"].nunique() == 8
    assert found["genes"]["logfoldchanges"].head().gt(1).all()
