import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.join import JoinRequest
from napari_embedding_game.data.read_options import ReadOptions, Recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.sources import (
    FeaturesSource,
    FileSource,
    MeasuredSource,
    SampleSource,
)


def read(source, **options):
    return finish(source.read(ReadOptions(**options)))


def test_of_a_table_some_columns_may_be_chosen(tmp_path):
    path = tmp_path / "cells.csv"
    rows = np.random.default_rng(0).normal(size=(30, 3))
    pd.DataFrame(rows, columns=list("abc")).to_csv(path, index=False)
    source = FileSource(path)
    assert list(read(source).columns) == ["a", "b", "c"]
    assert read(source, columns=("a", "c")).dataset.var_names == ("a", "c")


def test_raw_counts_are_recognised_and_prepared(tmp_path):
    path = tmp_path / "counts.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.poisson(rng.gamma(1.0, 2.0, size=(1, 150)), size=(60, 150)))
    source = FileSource(path)
    assert read(source).is_counts
    recipe = Recipe(min_genes=1, min_cells=1, n_top_genes=50, n_comps=5)
    prepared = read(source, recipe=recipe)
    assert prepared.is_counts
    assert prepared.dataset.X.shape == (60, 5)


def test_the_table_of_a_layer(dataset):
    features = pd.DataFrame({"area": np.arange(9.0) ** 2, "kind": list("abcabcabc")})
    features.loc[4, "area"] = np.nan
    source = FeaturesSource(features, "nuclei")
    assert source.name == "the table of layer 'nuclei'"
    with pytest.raises(DataError, match="missing"):
        read(source)
    assert read(source, missing="drop").dataset.X.shape[0] == 8


def squares():
    labels = np.zeros((40, 40), np.int32)
    for number in range(9):
        row, column = divmod(number, 3)
        size = 4 + number % 3
        labels[row * 12 : row * 12 + size, column * 12 : column * 12 + 6] = number + 1
    return labels


def of_squares():
    return JoinRequest("nuclei", squares())


def test_rows_of_a_labels_layer_know_their_objects():
    features = pd.DataFrame({"index": range(1, 10), "area": np.arange(9.0) ** 2})
    loaded = read(FeaturesSource(features, "nuclei", of_squares()))
    assert list(loaded.dataset.objects.label_ids) == list(range(1, 10))


def test_a_table_that_fits_no_objects_is_read_with_a_note():
    features = pd.DataFrame({"area": np.arange(5.0) ** 2})
    dataset = read(FeaturesSource(features, "nuclei", of_squares())).dataset
    assert dataset.objects is None
    assert "has no column of labels" in dataset.notes[0]


def test_objects_are_measured():
    image = np.random.default_rng(0).random((40, 40))
    loaded = read(MeasuredSource(image, squares(), "nuclei"))
    assert len(loaded.dataset.objects) == 9
    assert "intensity_mean" in loaded.columns


def test_the_nuclei_bring_their_picture():
    loaded = read(SampleSource("nuclei"))
    assert loaded.image.shape[:2] == loaded.labels.shape
    assert len(loaded.dataset.objects) == len(loaded.dataset.obs)
