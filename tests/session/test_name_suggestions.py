"""Suggested names: evidence in words, the clusters they are of, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game import tl
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.as_anndata import as_anndata
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.name_suggestions import (
    Candidate,
    NameSuggestions,
    Suggestion,
    validate_genes,
)
from worlds import rows

N, G = 240, 300
B, T = ("Cd79a", "Ms4a1", "Cd19"), ("Cd3d", "Cd3e", "Cd2")
TYPES = {"B cell": ["CD79A", "MS4A1", "CD19", "PAX5"], "T cell": [x.upper() for x in T]}


@pytest.fixture
def cells():
    """Mouse cells: a third are B cells, a third T cells, the others nothing."""
    rng = np.random.default_rng(0)
    names = [*B, *T, *(f"g{i}" for i in range(G - 6))]
    group = np.repeat(["a", "b", "c"], N // 3)
    rates = np.tile(np.r_[np.full(6, 0.02), rng.gamma(0.6, 0.8, G - 6)], (N, 1))
    rates[group == "a", :3] = 3
    rates[group == "b", 3:6] = 3
    obs = pd.DataFrame({"group": group}, index=[f"c{i}" for i in range(N)])
    counts = rng.poisson(rates).astype(np.float32)
    return rows(counts, obs=obs, var_names=names, has_expression=True)


def test_names_come_with_genes_folds_shares_and_what_is_missing(cells):
    table = tl.suggest_names(as_anndata(cells), "group", TYPES)
    assert table.index.tolist() == ["a", "b", "c"]
    assert table["name"].tolist() == ["B cell", "T cell", ""]
    assert table["evidence"]["a"].startswith("3 of 4 genes high: ")
    assert "Cd79a over 100× in 9" in table["evidence"]["a"]
    assert table["score"]["a"] > 5
    assert np.isnan(table["score"]["c"])
    assert "1 of its 7 genes are not in the data: PAX5." in table.attrs["note"]


def test_the_own_table_finds_genes_of_mice_and_a_file_is_read(cells, tmp_path):
    path = tmp_path / "mine.gmt"
    path.write_text("Lymphocyte\tx\tCD3D\tCD3E\tCD2\n")
    adata = as_anndata(cells)
    assert tl.suggest_names(adata, "group")["name"]["a"] == "B cell"
    table = tl.suggest_names(adata, "group", path)
    assert table["name"].tolist() == ["", "Lymphocyte", ""]
    assert table["source"]["b"] == "mine.gmt"


def test_what_cannot_be_named_is_told(cells):
    adata = as_anndata(cells)
    with pytest.raises(InputError, match="no column 'kind'"):
        tl.suggest_names(adata, "kind", TYPES)
    with pytest.raises(DataError, match="at most one gene of each type"):
        tl.suggest_names(adata, "group", {"B": ["ENSG1", "CD19"]})
    adata.obs["one"] = "x"
    with pytest.raises(DataError, match="only one cluster"):
        tl.suggest_names(adata, "one", TYPES)
    with pytest.raises(DataError, match="The columns of x are no genes"):
        validate_genes(replace(cells, has_expression=False).expression, "x")
    adata.X = adata.X - 1
    with pytest.raises(DataError, match="neither counts nor log1p"):
        tl.suggest_names(adata, "group", TYPES)


def test_a_suggestion_is_of_the_points_it_was_made_for():
    best = Candidate(name="B", score=9.0, n_high=3, n_genes=4, evidence="")
    one = Suggestion(best, replace(best, name="T", score=8.0))
    assert one.second_text == "T (nearly as good)"
    assert Suggestion(best, replace(best, name="T", score=2.0)).second_text == "T"
    labels = np.array([0, 0, 1, 1, 2], np.int32)
    found = NameSuggestions(labels, {0: one, 1: Suggestion(), 2: one}, "")
    moved = np.array([0, 0, 1, 2, 2], np.int32)
    assert found.find_suggestion(0, moved) is one
    assert found.find_suggestion(1, moved) is found.find_suggestion(2, moved) is None
    assert (
        found.find_suggestion(3, labels) is found.find_suggestion(0, labels[:3]) is None
    )
