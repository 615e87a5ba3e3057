import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.sources import (
    FeaturesSource,
    FileSource,
    SampleSource,
)


def test_a_file_is_read_and_told_of(tmp_path):
    path = tmp_path / "cells.npy"
    np.save(path, np.random.default_rng(0).normal(size=(30, 4)))
    source = FileSource(path)
    assert source.name == "cells.npy"
    assert source.read(None, "error").X.shape == (30, 4)


def test_the_table_of_a_layer(dataset):
    features = pd.DataFrame({"area": np.arange(9.0) ** 2, "kind": list("abcabcabc")})
    features.loc[4, "area"] = np.nan
    source = FeaturesSource(features, "nuclei")
    assert source.name == "the table of layer 'nuclei'"
    with pytest.raises(DataError, match="missing"):
        source.read(None, "error")
    assert source.read(None, "drop").X.shape[0] == 8


def test_a_sample():
    digits = SampleSource("digits").read(None, "error")
    assert digits.images.shape == (1797, 8, 8)
