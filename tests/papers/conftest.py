import numpy as np
import pytest
from sklearn.datasets import load_digits

from napari_embedding_game.papers.reproductions.table import SOURCES


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Digits of 8 x 8 pixels under the name of the large ones; no other is read."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("covid", "cells", "words", "texts"):
        (folder / SOURCES[name]).write_bytes(b"")
    digits = load_digits()
    pixels = (digits.data * 15).astype(np.uint8)
    np.savez(folder / SOURCES["mnist"], X=pixels, y=digits.target)
    return folder
