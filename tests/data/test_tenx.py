import gzip
import warnings

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write
from worlds import layout, read

N_CELLS, N_GENES = 12, 130


@pytest.fixture
def matrix():
    """Genes x cells, as 10x stores it."""
    rng = np.random.default_rng(0)
    return sp.csc_matrix(rng.poisson(1.0, (N_GENES, N_CELLS)).astype(np.int32))


NAMES = [f"gene{i}" for i in range(N_GENES - 1)] + ["gene0"]
KINDS = ["Gene Expression"] * (N_GENES - 2) + ["Antibody Capture", "Gene Expression"]


@pytest.fixture
def folder(tmp_path, matrix):
    path = tmp_path / "filtered_feature_bc_matrix"
    path.mkdir()
    rows = zip(range(N_GENES), NAMES, KINDS, strict=True)
    files = {
        "barcodes.tsv": "".join(f"AC{i}-1\n" for i in range(N_CELLS)),
        "features.tsv": "".join(f"ENSG{i}\t{n}\t{k}\n" for i, n, k in rows),
    }
    for name, text in files.items():
        with gzip.open(path / f"{name}.gz", "wt") as file:
            file.write(text)
    with gzip.open(path / "matrix.mtx.gz", "wb") as file:
        mmwrite(file, matrix)
    return path


@pytest.fixture
def h5(tmp_path, matrix):
    path = tmp_path / "filtered.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        group["data"], group["indices"] = matrix.data, matrix.indices
        group["indptr"], group["shape"] = matrix.indptr, matrix.shape
        group["barcodes"] = [f"AC{i}-1".encode() for i in range(N_CELLS)]
        features = group.create_group("features")
        features["id"] = [f"ENSG{i}".encode() for i in range(N_GENES)]
        features["name"] = [name.encode() for name in NAMES]
        features["feature_type"] = [kind.encode() for kind in KINDS]
        features["genome"] = [b"GRCh38"] * N_GENES
    return path


def by_scanpy(function, path):
    sc = pytest.importorskip("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = getattr(sc, function)(path, gex_only=True)
        adata.var_names_make_unique()
    return adata


@pytest.mark.parametrize("kind", ["h5", "folder"])
def test_same_as_scanpy(request, kind, spaces, columns):
    path = request.getfixturevalue(kind)
    adata = by_scanpy("read_10x_h5" if kind == "h5" else "read_10x_mtx", path)
    dataset = read(path)
    assert dataset.X.shape == (N_CELLS, N_GENES - 1)
    np.testing.assert_array_equal(dataset.X.toarray(), adata.X.toarray())
    assert dataset.var_names == tuple(adata.var_names)
    assert dataset.var_names[-1] == "gene0-1"
    assert dataset.obs.index.tolist() == adata.obs_names.tolist()
    assert "1 features that are no genes left out." in dataset.notes
    assert any('second "gene0" is "gene0-1"' in note for note in dataset.notes)
    assert any("looks like raw counts" in note for note in dataset.notes)
    assert spaces(path) == ["X"]
    assert columns(path) == list(dataset.var_names)


def test_a_folder_of_cell_ranger_2(folder):
    with gzip.open(folder / "features.tsv.gz", "rt") as file:
        lines = ["\t".join(line.split("\t")[:2]) for line in file]
    (folder / "genes.tsv").write_text("\n".join(lines))
    (folder / "features.tsv.gz").unlink()
    dataset = read(folder)
    assert dataset.X.shape == (N_CELLS, N_GENES)
    assert dataset.var_names[-1] == "gene0-1"


def test_what_is_missing_is_named(folder, tmp_path):
    with pytest.raises(DataError, match='no space "X_pca": it has only counts'):
        read(folder, space="X_pca")
    (folder / "barcodes.tsv.gz").unlink()
    with pytest.raises(DataError, match=r"no barcodes\.tsv beside matrix\.mtx"):
        read(folder)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["weights"] = [1, 2]
    with pytest.raises(DataError, match="without counts of 10x Genomics"):
        read(tmp_path / "a.h5")


@pytest.mark.parametrize("kind", ["h5", "folder"])
def test_result_beside_the_counts(request, kind, tmp_path):
    import anndata

    path = request.getfixturevalue(kind)
    dataset = read(path)
    result = layout(N_CELLS)
    write(dataset, result, tmp_path / "out.h5ad")
    adata = anndata.read_h5ad(tmp_path / "out.h5ad")
    np.testing.assert_array_equal(adata.X.toarray(), dataset.X.toarray())
    assert adata.obs["embedding_game_cluster"].tolist() == ["0", "1"] * 6
    if kind == "folder":
        with pytest.raises(DataError, match="inside the input"):
            write(dataset, result, path / "out.h5ad")
