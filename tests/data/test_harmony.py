"""Harmony in the recipe: equal to harmonypy's own, told, recorded, stopped, refused."""

import numpy as np
import pandas as pd
import pytest

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.anndata_result import find_components_key
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.harmony import find_batch_columns
from napari_embedding_game.data.loader import load
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file.rows import (
    read_saved_data,
    to_dataset,
    to_stored_rows,
)
from worlds import prepared

run_harmony = pytest.importorskip("harmonypy").run_harmony
pytest.importorskip("scanpy")


@pytest.fixture
def cells():
    """240 cells of three kinds from two days, with columns that name no batches."""
    adata, many = worlds.of_two_days(), np.arange(240)
    depth = adata.X.sum(axis=1).A1 + np.random.default_rng(1).random(240)
    gaps = np.where(many < 3, None, np.where(many == 9, "z", "y"))
    barcode = [f"id{i}" for i in many]
    adata.obs = adata.obs.assign(constant="x", gaps=gaps, barcode=barcode, depth=depth)
    adata.obs["n_genes_by_counts"] = many % 30  # few, as of a small panel
    return adata


@pytest.fixture
def dataset(cells):
    return from_anndata(cells, "cells")


def test_components_are_those_of_harmonypy_and_genes_stay(dataset):
    plain, mixed = prepared(dataset), prepared(dataset, batch_key="day")
    expected = run_harmony(
        plain.X.astype(np.float64), plain.obs, ["day"], random_state=0, verbose=False
    ).Z_corr
    np.testing.assert_array_equal(mixed.X, expected.astype(np.float32))
    assert not np.allclose(mixed.X, plain.X, atol=0.1)
    assert (mixed.profile != plain.profile).nnz == 0


@pytest.fixture
def components(cells, tmp_path):
    """A file with components of its own."""
    path = tmp_path / "components.h5ad"
    made = prepared(cells)
    part = cells[made.kept].copy()
    part.obsm["X_pca"] = made.X
    part.obs["gaps"] = part.obs["gaps"].astype(str)
    part.write_h5ad(path)
    return path


def test_given_components_are_mixed_as_those_of_the_recipe(components, dataset):
    made = finish(load(components, batch_key="day"))
    expected = prepared(dataset, batch_key="day").X
    np.testing.assert_array_equal(made.X, expected)
    assert made.space == "obsm['X_pca'], \"day\" mixed by Harmony"
    assert "Harmony mixed" in made.notes[-1]
    assert find_components_key(made) == "X_pca_harmony"
    back = finish(
        read_saved_data(to_dataset(to_stored_rows(made)), components.parent, {})
    ).dataset
    np.testing.assert_array_equal(back.X, made.X)
    assert back.provenance["harmony"]["batch_key"] == "day"


@pytest.mark.parametrize("key", ["constant", "gaps", "barcode", "depth", "sample"])
def test_columns_that_cannot(dataset, key):
    with pytest.raises(DataError, match=f'"{key}" of .* cannot .* Choose day, kind[.]'):
        prepared(dataset, batch_key=key)


def test_batches_are_at_most_500_of_5_rows_and_30_rows_or_more():
    def offered(n_rows, *numbers):
        levels = {f"of {n}": np.arange(n_rows) % n for n in numbers}
        obs = pd.DataFrame(levels).astype("category")
        return find_batch_columns(worlds.rows(np.eye(n_rows, 2), obs=obs))

    assert offered(2_505, 500, 501) == ["of 500"]
    assert offered(29, 6) == []
    assert offered(30, 6, 7) == ["of 6"]


def test_what_harmonypy_raises_is_a_sentence(monkeypatch, dataset):
    def fails(*_, **__):
        raise RuntimeError("singular matrix")

    monkeypatch.setattr("harmonypy.run_harmony", fails)
    with pytest.raises(DataError, match=r'mix by "day" \(singular matrix\): choose'):
        prepared(dataset, batch_key="day")
