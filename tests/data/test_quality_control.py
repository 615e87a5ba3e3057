"""Quality of cells before the recipe: scanpy's figures, limits, doublets."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scanpy as sc
import scipy.sparse as sp

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.quality_control import (
    compute_cell_quality,
    find_cells_left_out,
    find_doublets,
)
from napari_embedding_game.data.read_options import Recipe
from worlds import prepared


@pytest.fixture
def mixed(counts):
    """Counts of which three genes are mitochondrial, most of all those of cell 3."""
    names = counts.var_names.to_series()
    names.iloc[:3] = ["MT-CO1", "mt-Nd1", "MT.ATP6"]
    counts.var_names = names.to_numpy()
    X = counts.X.toarray()
    X[:, :3] = 1
    X[3, 0], X[:, -1] = 400, 0
    counts.X = sp.csr_matrix(X)
    return counts


@pytest.mark.parametrize("kind", [sp.csr_matrix, lambda X: X.toarray()])
def test_the_figures_are_those_of_scanpy(mixed, kind):
    found = compute_cell_quality(kind(mixed.X), list(mixed.var_names))
    mixed.var["mt"] = np.arange(300) < 3
    sc.pp.calculate_qc_metrics(mixed, qc_vars=["mt"], inplace=True, percent_top=None)
    for name, values in found.items():
        np.testing.assert_allclose(values, mixed.obs[name], rtol=1e-6, err_msg=name)


def test_the_recipe_leaves_out_what_is_beyond_the_limits(mixed):
    dataset = prepared(mixed, max_mito=30.0)
    assert np.flatnonzero(~dataset.kept).tolist() == [3, 7]
    assert dataset.notes[:2] == (
        "1 of 60 cells left out because they have fewer than 20 genes.",
        "1 of 60 cells left out because they have more than 30 % mitochondrial counts.",
    )
    notes = prepared(mixed, max_mito=30.0, min_cells=0).notes
    assert any("genes left out as found in no cell." in note for note in notes)
    assert dataset.expand_to_source_rows(np.ones(58), np.nan).shape == (60,)
    assert dataset.obs["pct_counts_mt"].max() <= 30
    noted = dataset.provenance["recipe"]
    assert (noted["max_mito"], noted["cells_left_out"]) == (30.0, 2)
    assert sum(noted["left_out"].values()) == 2
    with pytest.raises(DataError, match=r"Only 0 of 60 cells .* change that number"):
        prepared(mixed, min_genes=0, max_genes=1)
    reasons = find_cells_left_out(
        Recipe(min_genes=0), compute_cell_quality(mixed.X[:9], [])
    )
    assert reasons["min_genes"][1] == "no genes"


@pytest.fixture(scope="module")
def crowd():
    return sp.csr_matrix(worlds.crowd())


def test_doublets_are_those_of_scrublet(crowd):
    scores, are_doublets = find_doublets(crowd)
    adata = anndata.AnnData(crowd.copy())
    sc.pp.scrublet(adata, random_state=0, verbose=False)
    np.testing.assert_allclose(scores, adata.obs["doublet_score"], rtol=1e-6)
    assert are_doublets[400:].mean() > 0.9
    assert are_doublets[:400].mean() < 0.1


def test_the_recipe_leaves_out_doublets_in_each_batch_and_tells(crowd):
    obs = pd.DataFrame({"day": ["mon", "tue"] * 210})
    obs.index = [f"c{i}" for i in range(420)]
    cells = from_anndata(anndata.AnnData(crowd.copy(), obs), "cells")
    dataset = prepared(cells, doublets=True)
    n_out = int(np.count_nonzero(~dataset.kept))
    assert n_out >= 20
    told = f"{n_out} of 420 cells left out because scrublet takes them for doublets."
    assert told in dataset.notes
    assert len(dataset.obs["doublet_score"]) == 420 - n_out
    days = cells.obs["day"].astype("category").cat.add_categories("wed")
    by_batch, _ = find_doublets(crowd, days)
    assert not np.array_equal(by_batch, find_doublets(crowd)[0])


def test_what_doublets_need_is_told(crowd):
    with pytest.raises(DataError, match='"day" of cells cannot name batches'):
        prepared(anndata.AnnData(crowd.copy()), doublets=True, batch_key="day")
    with pytest.raises(DataError, match="cannot be found among 20 cells"):
        find_doublets(crowd[:20])
    assert len(find_doublets(crowd[:50])[0]) == 50
    poor = crowd[:120].tolil()
    poor[5] = 0
    poor[5, 3] = 1
    for batches in (None, pd.Series(["mon", "tue"] * 60)):
        with pytest.raises(DataError, match="scrublet cannot tell doublets"):
            find_doublets(poor.tocsr(), batches)
