import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData
from anndata.io import write_elem

from napari_embedding_game.core.inspect.markers import markers
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import (
    ON_DISK,
    anndata_columns,
    anndata_spaces,
    anndata_stages,
    from_anndata,
)
from napari_embedding_game.data.formats.anndata_contents import (
    is_legacy,
    root_of,
    spaces_of,
)
from napari_embedding_game.data.raw_counts import looks_like_counts
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import read
from napari_embedding_game.data.stored_columns import StoredColumns


def cells(n=12, genes=6, **obsm):
    rng = np.random.default_rng(0)
    adata = AnnData(
        X=sp.random(n, genes, 0.5, format="csr", dtype=np.float32, random_state=0),
        obs=pd.DataFrame(
            {"type": pd.Categorical(["B", "T"] * (n // 2)), "depth": np.arange(n)},
            index=[f"cell{i}" for i in range(n)],
        ),
        var=pd.DataFrame(index=[f"gene{i}" for i in range(genes)]),
        layers={"dense": rng.normal(size=(n, genes))},
    )
    for key, width in obsm.items():
        adata.obsm[key] = rng.normal(size=(n, width))
    return adata


def saved(adata, tmp_path):
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path)
    return path


@pytest.mark.parametrize(
    ("obsm", "expected"),
    [
        ({"X_other": 4, "X_pca": 2}, "obsm['X_pca']"),
        ({"X_umap": 3, "spatial": 3, "X_two": 2, "X_scvi": 5}, "obsm['X_scvi']"),
        ({"X_embedding_game": 3}, "X"),
        ({}, "X"),
    ],
)
def test_default_space(tmp_path, obsm, expected):
    path = saved(cells(**obsm), tmp_path)
    assert read(path).space == expected
    assert anndata_spaces(path)[0] == expected
    assert from_anndata(cells(**obsm), "cells").space == expected


def test_spaces_lists_everything_that_can_be_embedded(tmp_path):
    adata = cells(X_pca=4, X_umap=2)
    adata.obsm["names"] = np.array([["a", "b"]] * 12)
    assert anndata_spaces(saved(adata, tmp_path)) == [
        "obsm['X_pca']",
        "obsm['X_umap']",
        "X",
        "layers['dense']",
    ]


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


def test_what_is_read_beside_the_space(tmp_path):
    adata = cells(X_pca=4)
    dataset = read(saved(adata, tmp_path))
    assert dataset.var_names == ("pca 1", "pca 2", "pca 3", "pca 4")
    assert dataset.profile_names == tuple(adata.var_names)
    np.testing.assert_array_equal(dataset.profile.toarray(), adata.X.toarray())
    assert dataset.obs.index.tolist() == adata.obs_names.tolist()
    assert dataset.obs["type"].tolist() == adata.obs["type"].tolist()
    assert dataset.name == "cells.h5ad"


def test_sparse_x_stays_sparse(tmp_path):
    adata = cells()
    adata.X = sp.csc_matrix(adata.X.astype(np.float64))
    dataset = read(saved(adata, tmp_path))
    assert isinstance(dataset.X, sp.csr_matrix)
    assert dataset.X.dtype == np.float32
    assert dataset.var_names == tuple(adata.var_names)
    assert dataset.profile is dataset.X


def test_table_in_obsm(tmp_path):
    adata = cells()
    adata.obsm["scores"] = pd.DataFrame(
        {"a": np.arange(12.0), "b": np.ones(12), "c": ["x"] * 12, "d": range(12)},
        index=adata.obs_names,
    )
    dataset = read(saved(adata, tmp_path))
    assert dataset.space == "obsm['scores']"
    assert dataset.var_names == ("a", "b", "d")


def test_large_x_stays_on_disk(tmp_path, monkeypatch):
    adata = cells(X_pca=4)
    adata.X = adata.X.tocsc()
    path = saved(adata, tmp_path)
    monkeypatch.setattr(
        "napari_embedding_game.data.formats.anndata.part_of_budget", lambda _: 10
    )
    dataset = read(path)
    assert isinstance(dataset.profile, StoredColumns)
    assert dataset.notes[0] == ON_DISK
    assert read(path, space="X").X.shape == (12, 6)


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
        path = tmp_path / f"cells.{ending}"
        (counts.write_h5ad if ending == "h5ad" else counts.write_zarr)(path)
    return counts, path


@pytest.mark.parametrize("ending", ["h5ad", "zarr"])
@pytest.mark.parametrize("space", ["X_pca", "X", "obs"])
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
        assert dataset.X.shape[1] == {"X_pca": 4, "X": 60, "obs": 1}[space]


def test_markers_are_those_of_scanpy_which_looks_at_raw(counts, tmp_path):
    adata, path = with_raw(counts, tmp_path)
    sc = pytest.importorskip("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.tl.rank_genes_groups(adata, "kind", groups=["A"], method="wilcoxon")
        expected = sc.get.rank_genes_groups_df(adata, "A").set_index("names")
    dataset = read(path)
    inside = (dataset.obs["kind"] == "A").to_numpy()
    names = dataset.profile_names
    table = markers(dataset.profile, inside, None, names, n_top=None)
    expected = expected.loc[list(table.names)]
    for figure in ("scores", "logfoldchanges", "pvals_adj"):
        np.testing.assert_allclose(
            getattr(table, figure), expected[figure], rtol=1e-6, atol=1e-12
        )


def test_counts_of_raw_are_not_compared_where_x_has_their_logarithm(counts, tmp_path):
    counts.raw = counts
    counts.X = counts.X.log1p()
    counts.obsm["X_pca"] = counts.X[:, :4].toarray()
    path = saved(counts, tmp_path)
    for dataset in (read(path), from_anndata(counts, "cells")):
        assert dataset.profile.max() < 10
        assert dataset.notes == (
            "Genes are not compared by .raw, because it holds counts.",
        )
    stages = anndata_stages(path, ReadOptions())
    assert "Reading .raw" not in [stage.text for stage in stages]
    counts.X = counts.X.toarray() - 1
    dataset = read(saved(counts, tmp_path))
    np.testing.assert_array_equal(dataset.profile.toarray(), counts.raw.X.toarray())


def test_counts_in_x_are_seen_beside_raw(counts, tmp_path):
    logarithms = counts.copy()
    logarithms.X = counts.X.log1p()
    counts.raw = logarithms
    dataset = read(saved(counts, tmp_path))
    assert looks_like_counts(dataset)
    assert "Genes: 300 from .raw." in dataset.notes


def test_raw_of_other_cells_is_damage(tmp_path):
    adata = cells(X_pca=4)
    adata.raw = adata
    path = saved(adata, tmp_path)
    with h5py.File(path, "r+") as file:
        del file["raw/X"]
        write_elem(file["raw"], "X", np.ones((5, 6)))
    with pytest.raises(DataError, match="damaged"):
        read(path)


def test_scaled_genes_without_raw_are_told(tmp_path):
    adata = cells(X_pca=4)
    adata.X = adata.layers["dense"]
    assert read(saved(adata, tmp_path)).notes == (
        "X has values below 0: fold changes of genes need unscaled values, which "
        "AnnData keeps in .raw.",
    )


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_names_of_genes_that_occur_again_are_numbered(tmp_path):
    adata = cells(X_pca=4)
    adata.var_names = ["g", "a", "g", "b", "g-1", "c"]
    path = saved(adata, tmp_path)
    numbered = ("g", "a", "g-2", "b", "g-1", "c")
    told = 'Genes of the same name are numbered: the second "g" is "g-2".'
    for dataset in (read(path), from_anndata(adata, "cells")):
        assert dataset.profile_names == numbered
        assert dataset.notes == (told,)
    genes = read(path, space="X", columns=["g-2"])
    np.testing.assert_array_equal(genes.X.toarray(), adata.X[:, [2]].toarray())
    assert anndata_columns(path, "X") == list(numbered)


def test_file_without_x(tmp_path):
    adata = AnnData(obs=pd.DataFrame(index=[f"c{i}" for i in range(5)]))
    adata.obsm["X_pca"] = np.random.default_rng(0).normal(size=(5, 3))
    dataset = read(saved(adata, tmp_path))
    assert dataset.X.shape == (5, 3)
    assert dataset.profile_names == dataset.var_names


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


def test_texts_in_x(tmp_path):
    adata = cells()
    adata.layers["names"] = np.full(adata.shape, "a", dtype=object)
    with pytest.raises(DataError, match="where numbers belong"):
        read(saved(adata, tmp_path), space="names")


def test_other_hdf5(tmp_path):
    path = tmp_path / "cells.h5ad"
    with h5py.File(path, "w") as file:
        file["something"] = [1, 2]
    with pytest.raises(DataError, match=r"without cells \(obs\)"):
        read(path)


def test_file_of_an_old_version(tmp_path):
    """As anndata before 0.7 wrote it: tables are arrays of records."""
    path = tmp_path / "cells.h5ad"
    names = np.array([b"a", b"b", b"c"])
    with h5py.File(path, "w") as file:
        file["X"] = np.eye(3, dtype=np.float32)
        for part in ("obs", "var"):
            file[part] = np.rec.fromarrays([names, [1, 2, 3]], names="index,size")
        assert is_legacy(file, "cells.h5ad")
    dataset = read(path)
    np.testing.assert_array_equal(dataset.X, np.eye(3))
    assert dataset.obs.index.tolist() == ["a", "b", "c"]
    assert anndata_spaces(path) == ["X"]


def test_rows_that_do_not_fit(tmp_path):
    path = saved(cells(X_pca=4), tmp_path)
    with h5py.File(path, "r+") as file:
        write_elem(file["obsm"], "X_pca", np.eye(5))
    with pytest.raises(DataError, match=r"5 rows, .* 12 cells"):
        read(path)


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


def test_numbers_of_obs_are_a_space_only_when_asked_for(tmp_path):
    path = saved(cells(X_pca=4), tmp_path)
    assert "obs" not in anndata_spaces(path)
    dataset = read(path, space="obs")
    assert dataset.var_names == ("depth",)
    np.testing.assert_allclose(dataset.X.std(), 1, rtol=1e-6)
    assert dataset.profile_names[0] == "gene0"
    assert "type" in dataset.obs


def test_genes_are_expression_and_components_alone_are_not():
    rows = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    whole = AnnData(np.abs(rows), obsm={"X_pca": rows}, obs={"size": rows[:, 0]})
    for space in ("X", "X_pca", "obs"):
        assert from_anndata(
            whole, "cells", options=ReadOptions(space=space)
        ).has_expression
    bare = AnnData(obsm={"X_pca": rows}, obs=whole.obs)
    for space in ("X_pca", "obs"):
        assert not from_anndata(
            bare, "cells", options=ReadOptions(space=space)
        ).has_expression


class WithXAmongLayers:
    """What anndata 0.13 is like: its layers have X too, called None."""

    def __init__(self, adata):
        self._adata = adata
        self.layers = {None: adata.X, **adata.layers}

    def __getattr__(self, name):
        return getattr(self._adata, name)


def test_x_among_the_layers_is_no_space_of_its_own():
    root = root_of(WithXAmongLayers(cells(X_pca=3)))
    assert spaces_of(root, "cells") == ["obsm['X_pca']", "X", "layers['dense']"]
