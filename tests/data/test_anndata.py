import warnings
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData

from napari_embedding_game.data import samples, validation
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write_result
from napari_embedding_game.data.formats.anndata import (
    from_anndata,
    read_adata_in_stages,
    read_whole_anndata,
)
from napari_embedding_game.data.formats.lazy_rows import LazyRows
from napari_embedding_game.data.lazy_recipe import read_counts_shape
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.axis_values import list_numeric_columns
from worlds import SMALL, layout, read, write_adata
from worlds import annotated as cells


def saved(adata, tmp_path):
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path)
    return path


@pytest.mark.parametrize(
    ("obsm", "expected"),
    [
        ({"X_other": 4, "X_pca": 2}, "obsm['X_pca']"),
        ({"X_umap": 3, "spatial": 3, "X_two": 2, "X_scvi": 5}, "obsm['X_scvi']"),
        ({"X_embedding_game": 3, "X_umap3d": 3, "X_phate": 3}, "X"),
        ({}, "X"),
    ],
)
def test_default_space(tmp_path, obsm, expected):
    path = saved(cells(**obsm), tmp_path)
    assert read(path).space == expected
    assert from_anndata(cells(**obsm), "cells").space == expected


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        ("X_pca", "obsm['X_pca']"),
        ("obsm['X_pca']", "obsm['X_pca']"),
        ('obsm["X_pca"]', "obsm['X_pca']"),
        ("obsm/X_pca", "obsm['X_pca']"),
        ("X", "X"),
        ("dense", "layers['dense']"),
        ("layers['dense']", "layers['dense']"),
    ],
)
def test_spellings_of_a_space(tmp_path, space, expected):
    adata = cells(X_pca=4)
    dataset = read(saved(adata, tmp_path), space=space)
    assert dataset.space == expected
    values = {
        "obsm['X_pca']": adata.obsm["X_pca"],
        "X": adata.X.toarray(),
        "layers['dense']": adata.layers["dense"],
    }[expected]
    found = dataset.X.toarray() if sp.issparse(dataset.X) else dataset.X
    np.testing.assert_allclose(found, values, rtol=1e-6)


def test_parts_that_are_read_when_they_are_asked_for(tmp_path):
    da = pytest.importorskip("dask.array")
    adata = cells(X_pca=4)
    adata.obsm["X_map"] = sp.csr_matrix(np.eye(12, 2))
    backed = anndata.read_h5ad(saved(adata, tmp_path), backed="r")
    lazy = adata.copy()
    lazy.X = da.from_array(adata.X.toarray(), chunks=5).map_blocks(sp.csr_matrix)
    for one in (backed, lazy):
        for space in ("X_pca", "X"):
            dataset = from_anndata(one, "cells", ReadOptions(space=space))
            assert (dataset.profile != adata.X).nnz == 0
            assert dataset.obs["X_map 1"].tolist() == [1] + [0] * 11


def test_values_of_one_row_and_column_are_summed(monkeypatch):
    data, columns = np.array([1, 2, 3, 1, 4], "f4"), [1, 1, 0, 0, 2]
    X = sp.csr_matrix((data, columns, [0, 3, 5]), shape=(2, 3))
    dataset = from_anndata(AnnData(X), "cells")
    assert dataset.X.toarray().tolist() == [[3, 3, 0], [1, 0, 4]]
    assert (dataset.X.nnz, X.nnz) == (4, 5)
    counts = dataset.expression.values.toarray()
    np.testing.assert_allclose(np.expm1(counts[0]), [5000, 5000, 0], rtol=1e-5)
    monkeypatch.setattr(validation, "_ROWS", 1)
    last = sp.csr_matrix((data[:4], [0, 1, 0, 0], [0, 1, 2, 4]), shape=(3, 2))
    assert from_anndata(AnnData(last), "cells").X[2].toarray().tolist() == [[4, 0]]
    assert from_anndata(AnnData(last), "cells").X.nnz == 3


def with_raw(counts, tmp_path, ending="h5ad"):
    """File with scaled X, as scanpy's pp.scale leaves it, and logarithms in raw."""
    sc = pytest.importorskip("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.log1p(counts)
        counts.raw = counts
        counts = counts[:, 20:80].copy()
        sc.pp.scale(counts)
        counts.obsm["X_pca"] = counts.X[:, :4]
    return counts, write_adata(counts, tmp_path / f"cells.{ending}")


@pytest.mark.parametrize("space", ["X", "X_pca", "layers['dense']"])
def test_what_others_do_to_an_object_changes_no_map(space):
    adata = cells(X_pca=4)
    adata.layers["dense"] = adata.layers["dense"].astype(np.float32)
    options = ReadOptions(space=space)
    dataset = finish(
        read_adata_in_stages(adata, "layer", options, is_shared=True)
    ).dataset
    X, genes = dataset.X.copy(), dataset.expression.make_dense_column(0).copy()
    adata.X.data[:] = 7
    adata.obsm["X_pca"][:] = adata.layers["dense"][:] = 7
    assert abs(dataset.X - X).max() == 0
    np.testing.assert_array_equal(dataset.expression.make_dense_column(0), genes)


def test_columns_of_one_name_are_numbered():
    adata = cells()
    adata.obs.columns = ["depth", "depth"]
    adata.obs["self"], adata.obs["is_dead"] = [[1]] * adata.n_obs, None
    adata.obs.iloc[1:, -1] = True
    dataset = from_anndata(adata, "layer")
    assert list(dataset.obs) == ["depth", "depth-1", "self", "is_dead"]
    assert list_numeric_columns(dataset) == ["depth-1"]
    assert set(dataset.obs["self"]) == {"[1]"}
    assert dataset.obs["is_dead"].dtype == "boolean"


def test_files_of_old_versions_are_read_and_written_beside(tmp_path):
    """scanpy's own example has tables of anndata 0.6; with 0.7 no root had a type."""
    scanpy, path = pytest.importorskip("scanpy"), tmp_path / "map.h5ad"
    folder = Path(scanpy.__file__).parent / "datasets"
    for dataset in (read(folder / "10x_pbmc68k_reduced.h5ad"), samples.pbmc()):
        assert (dataset.space, dataset.X.shape) == ("obsm['X_pca']", (700, 50))
        assert dataset.profile.shape == (700, 765)
        assert dataset.profile.min() == 0  # logarithms of .raw, not scaled values
        assert dataset.notes == ("Genes: 765 from .raw.",)
        assert {"bulk_labels", "louvain"} <= set(dataset.obs)
    rows = LazyRows(folder / "10x_pbmc68k_reduced.h5ad")  # of fit --reference
    np.testing.assert_array_equal(rows.read_range(600, 700), dataset.X[600:])
    assert read_counts_shape(rows.path) == (700, 765)
    assert dataset.source is None
    dataset = read(rows.path)
    write_result(dataset, layout(700), path)
    with h5py.File(path, "r+") as file:
        file.attrs.clear()
    found = read_whole_anndata(path)
    assert found.raw.shape == (700, 765)
    assert found.obs["louvain"].tolist() == dataset.obs["louvain"].tolist()
    np.testing.assert_array_equal(read(path).X, dataset.X)


@pytest.mark.parametrize("ending", ["h5ad", "zarr"])
@pytest.mark.parametrize("space", ["X_pca", "X"])
def test_genes_of_raw_are_compared(counts, tmp_path, ending, space):
    adata, path = with_raw(counts, tmp_path, ending)
    for dataset in (
        read(path, space=space),
        from_anndata(adata, "cells", options=ReadOptions(space=space)),
    ):
        np.testing.assert_array_equal(dataset.profile.toarray(), adata.raw.X.toarray())
        assert dataset.profile_names == tuple(adata.raw.var_names)
        assert "Genes: 300 from .raw." in dataset.notes
        assert not any("below 0" in note for note in dataset.notes)
        assert dataset.X.shape[1] == {"X_pca": 4, "X": 60}[space]
    counts.X = counts.X.expm1().rint()
    adata.raw = counts  # of all genes, beside counts of some
    adata.X = counts[:, adata.var_names].X
    assert from_anndata(adata, "cells").profile.shape == (60, 300)


def test_symbols_and_raw_counts_of_a_file_of_cellxgene(counts, tmp_path):
    expected = read(saved(counts, tmp_path), recipe=SMALL)
    counts.var["feature_name"] = pd.Categorical([*counts.var_names[:-1], None])
    counts.var_names = [f"ENSG{i:011}" for i in range(300)]
    counts.raw = counts
    counts.X = counts.X.log1p()
    path = saved(counts[:, :50].copy(), tmp_path)
    dataset = read(path, space="raw", recipe=SMALL)
    names = (*expected.profile_names[:-1], "ENSG00000000299")
    assert dataset.profile_names == names
    np.testing.assert_array_equal(dataset.X, expected.X)
    assert read(path).profile_names == tuple(f"gene{i}" for i in range(50))


@pytest.mark.parametrize("space", ["X", "X_pca"])
def test_missing_values(tmp_path, space):
    adata = cells(X_pca=4)
    adata.obsm["X_pca"][4, 1] = np.nan
    adata.X.data[adata.X.indptr[4]] = np.inf
    path = saved(adata, tmp_path)
    with pytest.raises(DataError, match=r'cells\.h5ad .* row 5 \("cell4"\), column'):
        read(path, space=space)
    dataset = read(path, space=space, missing="drop")
    assert dataset.X.shape[0] == len(dataset.obs) == dataset.profile.shape[0] == 11
    assert "cell4" not in dataset.obs.index
    assert dataset.n_source_rows == 12


def test_files_that_give_no_map(tmp_path):
    adata = cells(X_pca=4)
    adata.obsm["X_pca"][:] = 1
    with pytest.raises(DataError, match=r"cells\.h5ad \(obsm.*\) is constant"):
        read(saved(adata, tmp_path))
    with pytest.raises(DataError, match="only one row"):
        read(saved(adata[:1].copy(), tmp_path))
    with pytest.raises(DataError, match="is empty"):
        read(saved(adata[:0].copy(), tmp_path))
    with pytest.raises(DataError, match='no space "X_pc": choose one of obsm'):
        read(saved(adata, tmp_path), space="X_pc")
    empty = AnnData(obs=adata.obs, var=pd.DataFrame(index=pd.Index([], dtype=str)))
    with pytest.raises(DataError, match="holds nothing to embed"):
        read(saved(empty, tmp_path))


def test_chosen_columns_of_a_space(tmp_path):
    path = saved(cells(X_pca=4), tmp_path)
    dataset = read(path, columns=["pca 3", "pca 1"])
    assert dataset.var_names == ("pca 1", "pca 3")
    assert dataset.notes == (
        "Embedded: 2 of 4 columns of obsm['X_pca'] (pca 1, pca 3).",
    )
    assert dataset.profile.shape == (12, 6)
    genes = read(path, space="X", columns=["gene2"])
    assert genes.var_names == ("gene2",)
    assert genes.profile_names == tuple(f"gene{i}" for i in range(6))
    with pytest.raises(DataError, match='no column "gene9": it has gene0'):
        read(path, space="X", columns=["gene9"])
