"""Labels by CellTypist, with a small module that has its API in place of it."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.notebook.column_cells import column_cells
from napari_embedding_game.session.notebook.data_cells import Loaded
from napari_embedding_game.session.notebook.draft import Draft, as_script
from napari_embedding_game.session.notebook.methods_text import _of_columns, _Paper
from napari_embedding_game.session.reference.celltypist_labels import (
    has_celltypist,
    predict_by_celltypist,
    told_of_model,
)
from napari_embedding_game.session.session import Session

GENES = ("g0", "g1", "elsewhere")


class Model:
    """Says "T" where gene g0 is higher than g1, else "B"."""

    features = np.array(GENES)

    @staticmethod
    def load(path):
        if "/" not in path:
            raise AssertionError("a mere name would be looked up in the net")
        if not Path(path).is_file():
            raise Exception(f"🛑 No such file: {path}.")
        return Model()


def annotate(cells, model, majority_voting=False):
    model = Model.load(model) if isinstance(model, str) else model
    assert isinstance(model, Model)
    assert not majority_voting
    sums = np.expm1(cells.X.toarray()).sum(axis=1)
    if np.abs(sums - 10_000).max() > 1:
        raise ValueError("Invalid expression matrix")
    first = cells[:, "g0"].X.toarray().ravel() - cells[:, "g1"].X.toarray().ravel()
    share = 1 / (1 + np.exp(-first))
    table = pd.DataFrame({"B": 1 - share, "T": share}, index=cells.obs_names)
    labels = pd.DataFrame({"predicted_labels": table.idxmax(axis=1).astype("category")})
    return SimpleNamespace(predicted_labels=labels, probability_matrix=table)


@pytest.fixture
def celltypist(monkeypatch):
    module = ModuleType("celltypist")
    module.__spec__ = ModuleSpec("celltypist", None)
    module.annotate, module.models = annotate, SimpleNamespace(Model=Model)
    monkeypatch.setitem(sys.modules, "celltypist", module)


@pytest.fixture
def dataset():
    rng = np.random.default_rng(0)
    counts = sp.csr_matrix(rng.poisson(3, (30, 8)).astype(np.float32))
    names = pd.DataFrame(index=[f"g{i}" for i in range(8)])
    obs = pd.DataFrame(index=[f"c{i}" for i in range(30)])
    return from_anndata(AnnData(counts, obs, names), "cells")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "blood.pkl"
    path.write_bytes(b"a model")
    return path


@pytest.fixture
def found(celltypist, dataset, model):
    found, notes = finish(predict_by_celltypist(dataset, model))
    assert notes == ("From X: 2 of the 3 genes of the model are there.",)
    return found


def test_it_is_there_where_it_is_installed(celltypist, monkeypatch):
    assert has_celltypist()
    monkeypatch.setitem(sys.modules, "celltypist", None)
    monkeypatch.setattr(
        "napari_embedding_game.session.reference.celltypist_labels.find_spec",
        lambda name: None,
    )
    assert not has_celltypist()


def test_the_likeliest_label_and_its_probability_become_columns(dataset, found):
    session = Session()
    session.load(dataset)
    assert session.add_predicted(found) == "celltypist_predicted"
    counts = dataset.profile.toarray()
    wanted = np.where(counts[:, 0] > counts[:, 1], "T", "B")
    assert dataset.obs["celltypist_predicted"].tolist() == wanted.tolist()
    confidence = dataset.obs["celltypist_predicted_confidence"]
    assert confidence.between(0.5, 1).all()
    assert list(dataset.obs) == ["celltypist_predicted", confidence.name]
    assert told_of_model(found).startswith("Labels of blood.pkl for 30 cells: ")


def test_a_session_file_and_the_code_have_them(dataset, found, tmp_path, monkeypatch):
    session = Session()
    session.load(dataset)
    session.add_predicted(found)
    path = tmp_path / "map.zip"
    archive.save(SavedSession(maps=(session.capture("a"),), current="a"), path)
    again = archive.load(path)["a"].dataset
    assert list(again.obs) == list(dataset.obs)
    labels = again.obs["celltypist_predicted"].tolist()
    assert labels == dataset.obs["celltypist_predicted"].tolist()
    (methods,) = _of_columns(dataset, _Paper())
    assert "by CellTypist (Dominguez Conde et al. 2022)" in methods
    assert "the model blood.pkl" in methods
    draft = Draft(tmp_path / "map.py")
    column_cells(draft, dataset, Loaded({"use_rep": "X"}, None, True, True))
    lines = [line for line in as_script(draft.cells).splitlines() if line[:1] != "#"]
    adata = AnnData(dataset.profile, pd.DataFrame(index=dataset.obs.index))
    adata.var_names = dataset.profile_names
    monkeypatch.chdir(tmp_path)
    exec("\n".join(lines), {"adata": adata})
    assert adata.obs["celltypist_predicted"].tolist() == labels
    np.testing.assert_allclose(
        adata.obs["celltypist_predicted_confidence"], found.confidence, rtol=1e-5
    )


def test_what_is_no_model_is_told(celltypist, dataset, tmp_path):
    with pytest.raises(DataError, match=r"could not use none\.pkl .*No such file"):
        finish(predict_by_celltypist(dataset, tmp_path / "none.pkl"))
