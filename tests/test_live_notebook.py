"""The notebook that watches and steers a fit, executed as a person would."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

NOTEBOOK = Path(__file__).parents[1] / "docs" / "examples" / "live.ipynb"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_live_notebook_is_watched_and_steered(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    last = notebook.cells.pop()
    slider = "repulsion.value = 600\nlandmarks.value = 50"
    told = "print(len(game.landmarks_), run.steered[-1][1].repulsion, game.n_iter_)"
    notebook.cells += [new_code_cell(slider), last, new_code_cell(told)]
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    words = notebook.cells[-1].outputs[0].text.split()
    assert words[:2] == ["50", "600.0"]
    assert int(words[2]) >= 500
