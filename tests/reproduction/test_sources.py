import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.reproduction import sources
from napari_embedding_game.reproduction.protocol import Inputs


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(30, 64), dtype=np.uint8)
    for name in ("mnist_70k.npz", "coil20_32.npz"):
        np.savez(tmp_path / name, X=X, y=np.arange(30) % 10)
    return tmp_path


@pytest.mark.parametrize("name", ["mnist", "coil20"])
def test_pixels_from_a_folder_or_a_file(folder, name):
    from_folder = Inputs(folder).load(name)
    from_file = Inputs(folder / sources.SOURCES[name]).load(name)
    assert from_folder.X.shape == (30, 64)
    assert from_folder.X.min() >= 0
    assert from_folder.X.max() == 1
    np.testing.assert_array_equal(from_folder.X, from_file.X)


def test_digits_come_with_scikit_learn():
    assert Inputs().load("digits").X.shape == (1797, 64)


def test_what_was_read_is_told_without_the_folder(folder):
    told = sources.described("coil20", folder)
    assert told.startswith("coil20_32.npz, ")
    assert str(folder) not in told
    assert sources.described(None, folder) == "none"
    both = sources.described("mnist, coil20", folder).split("; ")
    assert [each.split(",")[0] for each in both] == ["mnist_70k.npz", "coil20_32.npz"]
    assert sources.described("mnist", None) == "mnist"


@pytest.mark.parametrize("name", ["coil20", "words", "cells", "texts"])
def test_what_cannot_be_downloaded_is_asked_for(name):
    with pytest.raises(DataError, match="--data"):
        Inputs().load(name)


def test_a_file_that_is_not_there(folder):
    with pytest.raises(DataError, match=r"glove_words_5000\.npz"):
        Inputs(folder).load("words")
    with pytest.raises(DataError, match="does not exist"):
        Inputs(folder / "nowhere").load("mnist")
