"""Raw counts are normalised before genes are compared; all else stays as it is."""

import numpy as np
import pytest
import scanpy as sc
import scipy.sparse as sp
from anndata import AnnData

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import Expression, to_dense
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.loader import load
from napari_embedding_game.data.stages import finish


@pytest.mark.filterwarnings("ignore:Some cells have zero counts")
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix, np.asarray])
def test_counts_beside_given_components_are_compared_as_scanpy_does(counts, form):
    X = counts.X.toarray().astype(np.int32)
    X[5] = 0
    counts.X = form(X)
    counts.obsm["X_pca"] = np.random.default_rng(0).normal(size=(60, 5))
    ours = from_anndata(counts, "cells").expression
    assert ours.note == "Expression: counts, normalised to 10,000 per cell, log1p."
    counts.X = counts.X.astype(np.float32)
    sc.pp.normalize_total(counts, target_sum=1e4)
    sc.pp.log1p(counts)
    theirs = from_anndata(counts, "cells").expression
    assert theirs.note == "Expression: log1p of the file, as it is."
    wanted = to_dense(counts.X)
    for one in (ours, theirs):
        np.testing.assert_allclose(to_dense(one.values), wanted, rtol=1e-5)
        np.testing.assert_allclose(one.make_dense_column(3), wanted[:, 3], rtol=1e-5)
        assert one.value_at(8, 3) == pytest.approx(wanted[8, 3])
    counts.X, counts.uns["log1p"]["base"] = counts.X / np.log(2), 2
    of_two = from_anndata(counts, "cells")
    np.testing.assert_allclose(to_dense(of_two.expression.values), wanted, rtol=1e-5)
    assert "Logarithms of base 2 are compared as ln(1 + x)." in of_two.notes
    logs = np.repeat(np.float32([[0, 0.5], [0, 1.5]]), 50_000, axis=0)
    assert Expression(logs, True).kind == "logarithms"  # also without the first gene


def test_genes_are_taken_for_what_a_person_says(tmp_path):
    counts = np.random.default_rng(0).poisson(3.0, (60, 120)).astype(np.float32)
    path = tmp_path / "cells.h5ad"
    AnnData(counts * 0.75).write_h5ad(path)  # as after a correction of ambient RNA
    found = finish(load(path)).expression
    assert found.kind == "logarithms"  # as its numbers are no whole ones
    said = finish(load(path, gene_kind="counts")).expression
    assert (said.kind, said.note[:18]) == ("counts", "Expression: counts")
    expected = np.log1p(counts[:, 0] * 1e4 / counts.sum(axis=1))
    np.testing.assert_allclose(said.make_dense_column(0), expected, rtol=1e-5)
    AnnData(counts - 3).write_h5ad(path)
    with pytest.raises(DataError, match="hold negative numbers, so they are no raw"):
        finish(load(path, gene_kind="counts"))
    with pytest.raises(DataError, match="Genes can hold counts, logarithms, values"):
        finish(load(path, gene_kind="log"))


@pytest.mark.parametrize("form", [sp.csr_matrix, np.asarray])
@pytest.mark.parametrize("unit", [1, 0.75])
def test_genes_of_a_subset_are_those_of_a_copy_of_its_rows(counts, form, unit):
    counts.X = form(counts.X.toarray() * np.float32(unit))
    counts.obsm["X_pca"] = np.random.default_rng(0).normal(size=(60, 5))
    part = from_anndata(counts, "cells").subset(np.arange(60) % 3 == 1)
    ours, copied = part.expression, part.with_own_matrices().expression
    assert (ours.kind, ours.n_rows) == (copied.kind, copied.n_rows)
    np.testing.assert_array_equal(to_dense(ours.values), to_dense(copied.values))
    np.testing.assert_array_equal(
        ours.make_dense_column(3), copied.make_dense_column(3)
    )
    assert ours.value_at(8, 3) == copied.value_at(8, 3) == ours.make_dense_column(3)[8]
