"""Files of other programs, against what wrote them."""

import json
from pathlib import Path

import h5py
import imageio.v3 as imageio
import numpy as np
import pandas as pd
import pytest
from anndata import AnnData
from anndata.io import read_elem, write_elem

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.anndata_result import does_h5ad_contain_source
from napari_embedding_game.data.identity import Identity, align_rows
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import can_read, read_row_hashes
from worlds import read

N, N_GENES = 30, 8
R_FILES = Path(__file__).parent / "r"


@pytest.fixture
def counts():
    return np.random.default_rng(0).poisson(1.0, (N, N_GENES))


@pytest.fixture
def spots():
    """A row for each spot, in no order, of which "c7" is missing and one is too much.

    Spot i is in row 100 + i and column 2 i of the picture.
    """
    index = np.random.default_rng(1).permutation([*range(7), *range(8, N + 1)])
    return pd.DataFrame(
        {"barcode": [f"c{i}" for i in index], "in_tissue": 1, "array_row": index}
        | {"array_col": 0, "pxl_row_in_fullres": 100 + index}
        | {"pxl_col_in_fullres": 2 * index}
    )


EXPECTED = np.column_stack([2.0 * np.arange(N), 100.0 + np.arange(N)])
EXPECTED[7] = np.nan


def visium(folder, counts, spots, name="tissue_positions.csv"):
    """Write a folder as Space Ranger does, and return its picture."""
    (folder / "spatial").mkdir(parents=True)
    worlds.tenx(folder / "filtered_feature_bc_matrix.h5", counts)
    if name.endswith(".parquet"):
        spots.to_parquet(folder / "spatial" / name)
    else:
        has_names = not name.endswith("_list.csv")
        spots.to_csv(folder / "spatial" / name, index=False, header=has_names)
    pixels = np.random.default_rng(2).integers(0, 256, (20, 10, 3), np.uint8)
    imageio.imwrite(folder / "spatial/tissue_hires_image.png", pixels)
    scales = json.dumps({"tissue_hires_scalef": 0.1, "spot_diameter_fullres": 8.0})
    (folder / "spatial/scalefactors_json.json").write_text(scales)
    return pixels


@pytest.mark.parametrize("name", ["tissue_positions.csv", "tissue_positions_list.csv"])
def test_a_folder_of_visium(tmp_path, counts, spots, name):
    folder = tmp_path / "section"
    pixels = visium(folder, counts, spots, name)
    dataset = read(folder)
    np.testing.assert_array_equal(dataset.X.toarray(), counts)
    tissue = dataset.tissue
    np.testing.assert_allclose(tissue.positions, EXPECTED)
    assert (tissue.unit, tissue.section_column) == ("pixel", "")
    np.testing.assert_array_equal(tissue.images[""].pixels, pixels)
    np.testing.assert_allclose(tissue.images[""].step, 10)
    assert f"1 of {N} rows are not in {name}." in dataset.notes
    assert can_read(folder)
    assert does_h5ad_contain_source(folder)
    (folder / "spatial/tissue_hires_image.png").write_bytes(b"no picture")
    dataset = read(folder)
    assert any("picture was left out: tissue_hires" in x for x in dataset.notes)
    np.testing.assert_allclose(dataset.tissue.positions, EXPECTED)


def test_bins_of_visium_hd(tmp_path, counts, spots):
    bins = tmp_path / "binned_outputs"
    visium(bins / "square_008um", counts, spots, "tissue_positions.parquet")
    visium(bins / "square_002um", counts[:5], spots, "tissue_positions.parquet")
    dataset = read(tmp_path)
    np.testing.assert_allclose(dataset.tissue.positions, EXPECTED)
    assert any("square_008um were read: for square_002um" in x for x in dataset.notes)


def test_a_folder_of_xenium(tmp_path, counts, spots):
    worlds.tenx(tmp_path / "cell_feature_matrix.h5", counts)
    cells = pd.DataFrame(
        {"cell_id": spots["barcode"].str.encode("ascii"), "cell_area": 1.5}
        | {"x_centroid": spots["pxl_col_in_fullres"] / 1}
        | {"y_centroid": spots["pxl_row_in_fullres"] / 1}
    )
    cells.to_parquet(tmp_path / "cells.parquet")
    dataset = read(tmp_path)
    assert dataset.tissue.unit == "µm"
    np.testing.assert_allclose(dataset.tissue.positions, EXPECTED)
    assert dataset.obs["cell_area"].sum() == 1.5 * (N - 1)
    pd.concat([cells, cells.head(1)]).to_parquet(tmp_path / "cells.parquet")
    with pytest.raises(DataError, match=r"cells\.parquet could not be read"):
        read(tmp_path)


@pytest.fixture
def loom(tmp_path, counts):
    path = tmp_path / "cells.loom"
    with h5py.File(path, "w") as file:
        file["matrix"] = counts.T.astype(np.float32)
        file["layers/spliced"] = counts.T
        file["col_attrs/CellID"] = [f"c{i}".encode() for i in range(N)]
        file["col_attrs/kind"] = np.array(["a", "b"] * (N // 2), h5py.string_dtype())
        file["col_attrs/X"], file["col_attrs/Y"] = EXPECTED.T[::-1]
        file["col_attrs/_X"], file["col_attrs/_Y"] = np.zeros((2, N))
        file["col_attrs/PCA"] = np.arange(5.0 * N).reshape(N, 5)
        file["row_attrs/Gene"] = [f"g{i}".encode() for i in range(N_GENES)]
        file["row_attrs/Accession"] = [f"ENSG{i:011}".encode() for i in range(N_GENES)]
    return path


def test_loom(loom, counts):
    dataset = read(loom, space="X")
    np.testing.assert_array_equal(dataset.X.toarray(), counts)
    assert dataset.var_names == tuple(f"g{i}" for i in range(N_GENES))
    assert dataset.gene_ids["g3"] == "ENSG00000000003"
    assert dataset.obs["kind"].tolist() == ["a", "b"] * (N // 2)
    assert dataset.tissue is None  # X and Y of loompy are a map
    map_columns = dataset.obs[["X_loom 1", "X_loom 2"]]
    np.testing.assert_array_equal(map_columns, EXPECTED[:, ::-1])
    assert dataset.notes[0] == "Not read: the layers spliced."
    usual = read(loom)
    assert usual.space == "obsm['PCA']"
    np.testing.assert_array_equal(usual.X[:, 0], np.arange(0, 5 * N, 5))
    with h5py.File(loom, "r+") as file:
        del file["col_attrs/kind"]
        file["col_attrs/kind"] = np.zeros(N + 1)
    with pytest.raises(DataError, match="damaged"):
        read(loom)
    with h5py.File(loom, "r+") as file:
        del file["matrix"]
        file.create_dataset("matrix", (10**7, 10**7), np.float32, chunks=(64, 64))
    with pytest.raises(DataError, match="memory free"):
        read(loom)


@pytest.fixture
def mudata(tmp_path, counts):
    """RNA of all cells, and proteins of 20 in another order; factors of all."""
    names = pd.Index([f"c{i}" for i in range(N)])
    genes = AnnData(counts.astype(np.float32), pd.DataFrame({"n": 1.0}, names))
    genes.obsm["spatial"] = EXPECTED
    X = np.random.default_rng(3).random((20, 4), np.float32)
    proteins = AnnData(X, pd.DataFrame({"q": 2.0}, names[::-1][:20]))
    obs = pd.DataFrame({"rna:n": 1.0, "donor": ["d", "e"] * (N // 2)}, index=names)
    path = tmp_path / "cells.h5mu"
    with h5py.File(path, "w") as file:
        modalities = file.create_group("mod")
        write_elem(modalities, "prot", proteins)
        write_elem(modalities, "rna", genes)
        write_elem(file, "obs", obs)
        factors = np.arange(5.0 * N).reshape(N, 5) ** 1.5
        write_elem(file, "obsm", {"X_mofa": factors, "rna": np.ones(N, bool)})
    return path, proteins, factors


def test_a_space_of_a_modality(mudata, counts, spaces):
    path, proteins, factors = mudata
    assert spaces(path) == [
        *("obsm['X_mofa'] of rna", "obsm['spatial'] of rna", "X of rna"),
        *("obsm['X_mofa'] of prot", "X of prot"),
    ]
    genes = read(path, space="X of rna")
    np.testing.assert_array_equal(genes.X, counts)
    assert [*genes.obs] == ["n", "donor", "spatial 1", "spatial 2"]
    np.testing.assert_allclose(genes.tissue.positions, EXPECTED)
    other = read(path, space="obsm['X_mofa'] of prot")
    assert other.obs.index.equals(proteins.obs_names)
    np.testing.assert_allclose(other.X, factors[::-1][:20], rtol=1e-6)
    np.testing.assert_array_equal(other.profile, proteins.X)
    assert other.obs["donor"].tolist() == (["e", "d"] * N)[:20]
    known = Identity.from_dataset(read(path, space="X of prot"))
    found = read_row_hashes(path, known, ReadOptions())
    align_rows(known, Identity(other.source_obs_names, found), path.name)
    with pytest.raises(DataError, match="choose one of obsm"):
        read(path, space="X_umap")


def test_a_second_space_is_that_of_its_modality(mudata, counts):
    path, proteins, factors = mudata
    of_proteins = {"space": "X of rna", "second_space": "X of prot"}
    both = read(path, **of_proteins)
    assert (both.space, both.second_space) == ("X of rna", "X of prot")
    expected = proteins.to_df().reindex(both.obs.index).to_numpy()
    assert np.isnan(expected).all(axis=1).sum() == N - 20
    np.testing.assert_array_equal(both.second_X, expected)
    other = read(path, space="X of prot", second_space="X of rna")
    np.testing.assert_array_equal(other.second_X, counts[::-1][:20])
    same = read(path, space="X of rna", second_space="obsm['X_mofa'] of rna")
    np.testing.assert_allclose(same.second_X, factors, rtol=1e-6)
    known = Identity.from_dataset(both)
    found = read_row_hashes(path, known, ReadOptions(**of_proteins))
    align_rows(known, Identity(both.source_obs_names, found), path.name)
    with pytest.raises(DataError, match='no space "X_umap": choose one of'):
        read(path, space="X of rna", second_space="X_umap")


def test_cells_of_repeated_names_in_modalities(mudata):
    path, _, _ = mudata
    with h5py.File(path, "r+") as file:
        obs = read_elem(file["mod/prot/obs"])
        obs.index = [obs.index[0], *obs.index[[0, *range(2, len(obs))]]]
        write_elem(file["mod/prot"], "obs", obs)
    twice = read(path, space="X of prot")
    assert len(twice.obs) == 20
    assert twice.obs["donor"].tolist() == ["e", "e", *(["e", "d"] * N)[2:20]]
    with pytest.raises(DataError, match="repeated names of cells"):
        read(path, space="X of rna", second_space="X of prot")


@pytest.mark.parametrize("name", ["seurat", "seurat5", "experiment"])
def test_files_that_r_wrote(name):
    pytest.importorskip("rdata")
    path = R_FILES / f"{name}.rds"
    cell, gene = np.arange(40, 0, -1), np.arange(1, 13)
    known = np.outer(cell, gene) % 5
    dataset = read(path)
    assert dataset.obs.index.tolist() == [f"cell{i}" for i in cell]
    assert dataset.space == "obsm['X_pca']"
    np.testing.assert_allclose(dataset.X, cell[:, None] + np.arange(1, 5) / 10)
    assert dataset.obs["kind"].tolist() == ["even", "odd"] * 20
    np.testing.assert_array_equal(dataset.obs["size"], cell / 2)
    assert dataset.profile_names == tuple(f"gene{i}" for i in gene)
    profile = dataset.profile.toarray()
    has_logs = name != "seurat5"
    np.testing.assert_allclose(profile, np.log1p(known) if has_logs else known, 1e-6)
    if has_logs:
        X = read(path, space="layers['counts']").X.toarray()
        np.testing.assert_array_equal(X, known)
    if name == "experiment":
        assert dataset.tissue is None
        return
    np.testing.assert_array_equal(
        dataset.tissue.positions, np.column_stack([cell, 100 + cell])
    )
    if name == "seurat5":
        image = dataset.tissue.images[""]
        np.testing.assert_allclose(image.step, 4)
        assert image.pixels.shape == (4, 5, 3)
        assert image.pixels[1, 0, 0] == np.float32(2 / 60)  # R counts rows first


def test_what_r_may_hold_else_is_named(monkeypatch):
    rdata = pytest.importorskip("rdata")
    monkeypatch.setattr(rdata, "read_rds", lambda path: pd.DataFrame({"a": [1]}))
    with pytest.raises(DataError, match=r"holds a DataFrame.*zellkonverter::writeH5AD"):
        read(R_FILES / "seurat.rds")
    monkeypatch.setattr(rdata, "read_rds", lambda path: int("no number"))
    with pytest.raises(DataError, match="rdata cannot read: write it anew in R"):
        read(R_FILES / "seurat.rds")


def test_without_rdata_a_line_of_r_is_named(monkeypatch):
    monkeypatch.setattr("napari_embedding_game.data.errors.find_spec", lambda _: None)
    with pytest.raises(DataError, match=r"pip install rdata.*zellkonverter"):
        read(R_FILES / "seurat.rds")
