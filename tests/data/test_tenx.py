import gzip
import warnings

import h5py
import numpy as np
import pytest

import worlds
from napari_embedding_game.data.errors import DataError
from worlds import read

N_CELLS, N_GENES = 12, 130


NAMES = [f"gene{i}" for i in range(N_GENES - 1)] + ["gene0"]
KINDS = ["Gene Expression"] * (N_GENES - 2) + ["Antibody Capture", "Gene Expression"]


@pytest.fixture(params=["filtered.h5", "filtered_feature_bc_matrix"])
def path(tmp_path, request):
    counts = np.random.default_rng(0).poisson(1.0, (N_CELLS, N_GENES))
    return worlds.tenx(tmp_path / request.param, counts, NAMES, KINDS, packed=True)


@pytest.fixture
def folder(tmp_path):
    counts = np.random.default_rng(0).poisson(1.0, (N_CELLS, N_GENES))
    return worlds.tenx(tmp_path / "matrix", counts, NAMES, KINDS, packed=True)


def by_scanpy(function, path):
    sc = pytest.importorskip("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = getattr(sc, function)(path, gex_only=True)
        adata.var_names_make_unique()
    return adata


def test_same_as_scanpy(path, spaces, columns):
    adata = by_scanpy("read_10x_mtx" if path.is_dir() else "read_10x_h5", path)
    dataset = read(path)
    assert dataset.X.shape == (N_CELLS, N_GENES - 1)
    np.testing.assert_array_equal(dataset.X.toarray(), adata.X.toarray())
    assert dataset.var_names == tuple(adata.var_names)
    assert dataset.var_names[-1] == "gene0-1"
    assert dataset.obs.index.tolist() == adata.obs_names.tolist()
    assert "1 features that are no genes left out." in dataset.notes
    assert any('second "gene0" is "gene0-1"' in note for note in dataset.notes)
    assert spaces(path) == ["X"]
    assert columns(path) == list(dataset.var_names)


def test_a_folder_of_cell_ranger_2(folder):
    with gzip.open(folder / "features.tsv.gz", "rt") as file:
        lines = ["\t".join(line.split("\t")[:2]) for line in file]
    (folder / "genes.tsv").write_text("\n".join(lines))
    (folder / "features.tsv.gz").unlink()
    (folder / "._matrix.mtx.gz").write_bytes(b"Mac OS X")  # on sticks and shares
    dataset = read(folder)
    assert dataset.X.shape == (N_CELLS, N_GENES)
    assert dataset.var_names[-1] == "gene0-1"


def test_what_is_missing_is_named(folder, tmp_path):
    with pytest.raises(DataError, match='no space "X_pca": choose one of X'):
        read(folder, space="X_pca")
    (folder / "other_matrix.mtx").touch()
    assert any("only matrix.mtx was read" in note for note in read(folder).notes)
    (folder / "barcodes.tsv.gz").unlink()
    with pytest.raises(DataError, match=r"no barcodes\.tsv beside matrix\.mtx"):
        read(folder)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["weights"] = [1, 2]
    with pytest.raises(DataError, match="without counts of 10x Genomics"):
        read(tmp_path / "a.h5")
