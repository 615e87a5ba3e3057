import os

import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats import anndata_store
from napari_embedding_game.data.loading import load
from napari_embedding_game.data.readers import read
from napari_embedding_game.data.recipe import Recipe
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
