import os

import anndata as ad
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

from napari_embedding_game.data.loading import load, load_with_choices
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import finish


def open_files():
    return {os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{n}")}  # fmt: skip


def test_stages_tell_what_is_done(counts_file):
    texts = [stage.text for stage in load(counts_file, space="X")]
    assert texts == [
        "Opening counts.h5ad",
        "Reading the table of cells (obs)",
        "Reading the table of genes (var)",
        "Reading X",
        "Reading the genes",
        "Checking the numbers",
    ]


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="asks Linux")
def test_cancelling_at_any_stage_closes_the_file(counts_file):
    n_stages = len(list(load(counts_file)))
    for n in range(1, n_stages + 1):
        stages = load(counts_file)
        for _ in range(n):
            next(stages)
        stages.close()
        assert str(counts_file) not in open_files()


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
def test_what_else_could_be_read_is_told_by_reading(kind, tmp_path, spaces, columns):
    path = written(kind, tmp_path)
    for space in spaces(path):
        result = finish(load_with_choices(path, ReadOptions(space=space)))
        assert result.dataset.space == space
        assert result.spaces == spaces(path)
        assert result.columns == columns(path, space)
        chosen = result.columns[:2]
        options = ReadOptions(space=space, columns=tuple(chosen))
        fewer = finish(load_with_choices(path, options))
        assert fewer.dataset.var_names == tuple(chosen)
        assert fewer.columns == result.columns
