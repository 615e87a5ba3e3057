import os

import anndata as ad
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

from napari_embedding_game.data import readers
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats import anndata_store
from napari_embedding_game.data.loading import load, load_with_choices
from napari_embedding_game.data.read_options import ReadOptions, Recipe
from napari_embedding_game.data.readers import read
from napari_embedding_game.data.stages import finish


def open_files():
    return {os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{n}")}  # fmt: skip


def test_stages_tell_what_is_done(counts_file, monkeypatch):
    monkeypatch.setattr(anndata_store, "_BLOCK", 1000)
    stages = list(load(counts_file, space="X"))
    texts = list(dict.fromkeys(stage.text for stage in stages))
    assert texts == [
        "Opening counts.h5ad",
        "Reading the table of cells (obs)",
        "Reading the table of genes (var)",
        "Reading X",
        "Checking the numbers",
    ]
    shares = [stage.share for stage in stages if stage.text == "Reading X"]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert len(shares) > 8


def test_blocks_make_up_the_whole(counts_file, counts, monkeypatch):
    monkeypatch.setattr(anndata_store, "_BLOCK", 100)
    X = finish(load(counts_file)).X
    np.testing.assert_array_equal(X.toarray(), counts.X.toarray())


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="asks Linux")
def test_cancelling_at_any_stage_closes_the_file(counts_file):
    n_stages = len(list(load(counts_file)))
    for n in range(1, n_stages + 1):
        stages = load(counts_file)
        for _ in range(n):
            next(stages)
        stages.close()
        assert str(counts_file) not in open_files()


def test_recipe_follows_reading(counts_file):
    dataset = finish(load(counts_file, recipe=Recipe(min_genes=20, n_comps=5)))
    assert dataset.X.shape == (59, 5)
    assert dataset.source == counts_file


def test_options_and_errors_are_those_of_read(counts_file, tmp_path):
    dataset = finish(load(counts_file, columns=["gene3", "gene1"]))
    assert dataset.var_names == ("gene1", "gene3")
    assert dataset.var_names == read(counts_file, columns=["gene1", "gene3"]).var_names
    with pytest.raises(DataError, match="does not exist"):
        finish(load(tmp_path / "nothing.csv"))


def written(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)).astype(np.float32)
    path = tmp_path / f"cells.{kind}"
    if kind == "npz":
        np.savez(path, pca=X[:, :3], X=X, label=np.arange(30) % 3)
    elif kind == "csv":
        pd.DataFrame(X, columns=list("abcd")).assign(same=1).to_csv(path)
    elif kind == "mtx":
        tenx = tmp_path / "tenx"
        tenx.mkdir()
        mmwrite(tenx / "matrix.mtx", sp.csr_matrix(rng.poisson(1, (5, 30))))
        names = "\n".join(f"id{i}\tgene{i}\tGene Expression" for i in range(5))
        (tenx / "features.tsv").write_text(names)
        (tenx / "barcodes.tsv").write_text("\n".join(f"cell{i}" for i in range(30)))
        return tenx
    else:
        cells = pd.Index([f"cell{i}" for i in range(30)])
        adata = ad.AnnData(X, obs=pd.DataFrame({"age": np.arange(30.0)}, index=cells))
        adata.obsm["X_pca"] = X[:, :3]
        adata.write_h5ad(path)
    return path


@pytest.mark.parametrize("kind", ["npz", "csv", "mtx", "h5ad"])
def test_what_else_could_be_read_is_told_by_reading(kind, tmp_path):
    path = written(kind, tmp_path)
    for space in readers.spaces(path):
        result = finish(load_with_choices(path, ReadOptions(space=space)))
        assert result.dataset.space == space
        assert result.spaces == readers.spaces(path)
        assert result.columns == readers.columns(path, space)
        chosen = result.columns[:2]
        options = ReadOptions(space=space, columns=tuple(chosen))
        fewer = finish(load_with_choices(path, options))
        assert fewer.dataset.var_names == tuple(chosen)
        assert fewer.columns == result.columns
