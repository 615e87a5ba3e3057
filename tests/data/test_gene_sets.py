"""Gene sets from files and by hand: their scores are scanpy's, and reach files."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scanpy as sc
import scipy.sparse as sp

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.gene_sets import (
    GeneSet,
    read_gene_sets,
    score_genes,
    with_score_column,
)
from worlds import rows

N, G = 120, 400
NAMES = [f"g{i}" for i in range(G)]
SET = GeneSet("cytotoxic", ("g3", "G7", "g11", "absent"))


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(0.5, 2, G), (N, G)).astype(np.float32)


@pytest.fixture
def dataset(counts):
    obs = pd.DataFrame(index=[f"c{i}" for i in range(N)])
    parts = {"var_names": NAMES, "kept": np.arange(N) != 5, "has_expression": True}
    return rows(sp.csr_matrix(counts), obs=obs, **parts)


def test_the_scores_are_those_of_scanpy(dataset, counts):
    adata = anndata.AnnData(sp.csr_matrix(np.delete(counts, 5, axis=0)))
    adata.var_names = NAMES
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    sc.tl.score_genes(adata, ["g3", "g7", "g11"])
    np.random.seed(7)  # noqa: NPY002
    wanted = np.random.rand()  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    values, found = score_genes(dataset, SET)
    assert np.random.rand() == wanted  # noqa: NPY002
    np.testing.assert_allclose(values, adata.obs["score"], rtol=1e-6, atol=1e-6)
    assert np.ptp(values) > 0.1
    assert (len(found.indices), found.note) == (3, "Not in the data: absent.")


def test_a_score_is_a_column_of_its_own_name(dataset):
    values, _ = score_genes(dataset, SET)
    scored, name = with_score_column(dataset, SET, values)
    again, other = with_score_column(scored, SET, values)
    assert (name, other) == ("cytotoxic", "cytotoxic 2")
    np.testing.assert_array_equal(again.obs[name], values)
    part = again.subset(np.arange(N - 1) < 10)
    assert part.obs["cytotoxic"].tolist() == values[:10].tolist()
    part, _ = with_score_column(part, GeneSet("a/b", ("g1", "g2")), values[:10])
    assert part.added_columns == ["cytotoxic", "cytotoxic 2", "a_b"]
    assert "a_b" not in again.added


def test_a_gmt_file_has_a_set_in_each_line(tmp_path):
    path = tmp_path / "sets.gmt"
    path.write_text(
        "A\thttp://where\tg1\tg2\n\n# remark\nB set\t\tg3,x\tg4\nC\tempty\n"
    )
    assert read_gene_sets(path) == [
        GeneSet("A", ("g1", "g2")),
        GeneSet("B set", ("g3", "x", "g4")),
    ]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("sets.gmt", b"A\tdescription\n", "has no genes"),
        ("sets.txt", b"\n", "has no genes"),
        ("sets.gmt", b"", "is empty"),
        ("sets.gmt", b"\xff\xfe\x00A\tb", "is not written in UTF-8"),
    ],
)
def test_a_file_without_genes_is_refused(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_gene_sets(path)
