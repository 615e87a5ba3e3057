"""Genes that stay on disk are those in memory, whatever way they are stored."""

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData

from napari_embedding_game.core.inspect import markers as module
from napari_embedding_game.core.inspect.markers import (
    MARKER_METHODS,
    iter_leading,
    markers,
)
from napari_embedding_game.data import stored_columns
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import ON_DISK
from napari_embedding_game.data.gene_sets import GeneSet, score_genes
from napari_embedding_game.data.readers import read
from napari_embedding_game.data.stages import finish
from napari_embedding_game.data.stored_columns import StoredColumns
from napari_embedding_game.session.cluster_expression import iter_cluster_expression

pytestmark = [
    pytest.mark.filterwarnings("ignore:Variable names are not unique"),
    pytest.mark.filterwarnings("ignore:Writing zarr v2 data"),
]

N, GENES = 90, 150


@pytest.fixture(autouse=True)
def few_values_at_a_time(monkeypatch):
    monkeypatch.setattr(stored_columns, "AT_ONCE", 1_000)
    monkeypatch.setattr(module, "FEWEST_CELLS", 2)


def on_disk(path, monkeypatch, **options):
    """Read a file whose genes are larger than may be in memory."""
    with monkeypatch.context() as small:
        place = "napari_embedding_game.data.formats.anndata.part_of_budget"
        small.setattr(place, lambda parts: 10)
        dataset = read(path, **options)
    assert isinstance(dataset.profile, StoredColumns)
    assert ON_DISK in dataset.notes
    return dataset


def cells(form=sp.csr_matrix, *, log1p=False, with_nan=False):
    """Cells of three kinds; two genes have the same name."""
    rng = np.random.default_rng(0)
    kinds = np.arange(N) % 3
    depth = rng.gamma(4, 0.25, N)
    X = rng.poisson(rng.gamma(0.5, 2, (3, GENES))[kinds] * depth[:, None])
    X = X.astype(np.float32)
    X[5] = 0
    X[0, 3] = 700  # more than a byte holds
    if log1p:
        X = np.log1p(X)
    if with_nan:
        X[7, 11] = np.nan
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical.from_codes(kinds, [*"ABC"]),
            "donor": pd.Categorical.from_codes(np.arange(N) // 15 % 3, [*"xyz"]),
        },
        index=[f"cell{i}" for i in range(N)],
    )
    names = [f"gene{i}" for i in range(GENES)]
    names[20] = "gene4"
    adata = AnnData(form(X), obs=obs)
    adata.var_names = names
    adata.obsm["X_pca"] = rng.normal(size=(N, 5)).astype(np.float32)
    return adata


def saved(adata, path, **options):
    """Write a file or folder; the names of genes may occur twice."""
    write = adata.write_zarr if path.suffix == ".zarr" else adata.write_h5ad
    write(path, **options)
    return path


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def check_same(stored, known):
    """Compare all that reads expression with what is in memory."""
    assert stored.profile_names == known.profile_names
    assert stored.expression.kind == known.expression.kind
    assert stored.expression.told == known.expression.told
    ours, theirs = stored.expression, known.expression
    np.testing.assert_array_equal(dense(ours.values.in_memory()), dense(theirs.values))
    np.testing.assert_array_equal(ours.column(3), theirs.column(3))
    assert ours.column(3).dtype == theirs.column(3).dtype
    places = [40, 2, 3, 149, 2]
    columns = dense(ours.columns(places)), dense(theirs.columns(places))
    np.testing.assert_array_equal(*columns)
    assert ours.cell(7, 40) == theirs.cell(7, 40)


def check_same_figures(stored, known):
    inside = (known.obs["kind"] == "A").to_numpy()
    codes = known.obs["kind"].cat.codes.to_numpy()
    ours, theirs = stored.expression, known.expression
    for method in MARKER_METHODS:
        tables = [
            markers(
                one.values, inside, method=method, n_top=None, log1p=theirs.is_log1p
            )
            for one in (ours, theirs)
        ]
        for figure in ("columns", "scores", "logfoldchanges", "pvals_adj", "pts_rest"):
            found, expected = (getattr(table, figure) for table in tables)
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    donors = known.obs["donor"].to_numpy()
    tables = [
        markers(one.values, inside, samples=donors, n_top=None)
        for one in (ours, theirs)
    ]
    np.testing.assert_allclose(tables[0].scores, tables[1].scores, rtol=1e-6)
    leading = [finish(iter_leading(one.values, codes, 3)) for one in (ours, theirs)]
    for found, expected in zip(*leading, strict=True):
        np.testing.assert_array_equal(found[:5], expected[:5])
    plots = [
        finish(iter_cluster_expression(one, codes, (0, 1, 2), known.profile_names[:20]))
        for one in (stored, known)
    ]
    for part in ("means", "shares"):
        found, expected = (getattr(plot.summary, part) for plot in plots)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    chosen = GeneSet("set", known.profile_names[30:38])
    scores = [score_genes(one, chosen).values for one in (stored, known)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-5, atol=1e-6)


FORMS = [
    ("cells.h5ad", sp.csc_matrix, {"compression": "gzip"}),
    ("cells.zarr", sp.csc_matrix, {}),
]


@pytest.mark.parametrize(("name", "form", "options"), FORMS)
@pytest.mark.parametrize("log1p", [False, True])
def test_all_figures_are_those_in_memory(
    name, form, options, log1p, tmp_path, monkeypatch
):
    path = saved(cells(form, log1p=log1p), tmp_path / name, **options)
    stored, known = on_disk(path, monkeypatch), read(path)
    finish(stored.profile.prepare())
    check_same(stored, known)
    check_same_figures(stored, known)
    # A map of a part, and a part of that.
    rows = np.arange(N) % 4 > 0
    stored, known = stored.subset(rows), known.subset(rows)
    check_same(stored, known)
    rows = np.arange(stored.profile.shape[0]) > 20
    check_same(stored.subset(rows), known.subset(rows))
    check_same_figures(stored.subset(rows), known.subset(rows))


def test_a_file_that_goes_or_changes(tmp_path, monkeypatch):
    path = saved(cells(sp.csc_matrix), tmp_path / "cells.h5ad")
    stored, known = on_disk(path, monkeypatch), read(path)
    finish(stored.profile.prepare())
    with h5py.File(path, "r+") as file:  # as results are written beside the genes
        file["obsm/other"] = np.zeros((N, 2))
    np.testing.assert_array_equal(
        stored.expression.column(9), known.expression.column(9)
    )
    path.rename(tmp_path / "moved.h5ad")
    with pytest.raises(DataError, match=r"no longer in .*: put it back"):
        stored.expression.column(10)
    other = cells(sp.csc_matrix)
    other.X.data[:] = 1
    saved(other, path)
    with pytest.raises(DataError, match=r"cells.h5ad has changed.*open it again"):
        stored.expression.column(10)
    (tmp_path / "moved.h5ad").replace(path)
    check_same(stored, known)


def test_an_index_outside_the_matrix_is_damage(tmp_path, monkeypatch):
    path = saved(cells(sp.csc_matrix), tmp_path / "cells.h5ad")
    with h5py.File(path, "r+") as file:
        file["X/indices"][-1] = 10**6
    stored = on_disk(path, monkeypatch)
    with pytest.raises(DataError, match="damaged"):
        stored.expression.column(GENES - 1)
