"""The data of the papers: in a file or folder that a person names, or downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from napari_embedding_game.data.errors import DataError

if TYPE_CHECKING:
    from napari_embedding_game.data.dataset import Dataset

SOURCES: dict[str, str] = {
    "mnist": "mnist_70k.npz",
    "coil20": "coil20_32.npz",
    "cells": "pbmc3k_lognorm.h5ad",
    "covid": "covid_balf_counts.h5ad",
    "words": "glove_words_5000.npz",
    "texts": "newsgroups_5000.npz",
    "digits": "",
}
"""Data sets and the names of their files; "" comes with scikit-learn.

An ``.npz`` holds the rows as ``X`` and their labels as ``y``, an ``.h5ad`` the
principal components as ``obsm["X_pca"]``, or raw counts.
"""


def find(name: str, data: Path | None) -> Path | None:
    """Return the file or folder of a data set, None if it has to be fetched.

    Raises
    ------
    DataError
        There is no such file, and it cannot be downloaded.
    """
    file = SOURCES[name]
    if data is None:
        if name in ("mnist", "digits"):
            return None
        raise DataError(f"This needs {file}: add --data with the folder it lies in.")
    if not data.exists():
        raise DataError(f"{data} does not exist: check the name and the folder.")
    if data.is_file() or not file:
        return data
    if (data / file).exists():
        return data / file
    if name == "mnist":  # the folder with the four original files, perhaps
        return data
    raise DataError(f"There is no {file} in {data}: name the folder it lies in.")


def load(name: str, data: Path | None) -> Dataset:
    """Read a data set; see :func:`find` for where from.  Pixels are from 0 to 1."""
    from napari_embedding_game.data import samples
    from napari_embedding_game.data.readers import read

    if name == "digits":
        return samples.digits()
    path = find(name, data)
    if name == "mnist":
        return samples.mnist(path)
    assert path is not None
    return read(path)


def described(name: str | None, data: Path | None) -> str:
    """Say which data were used: names, with commas between, and sizes of files."""
    if name is None:
        return "none"
    return "; ".join(_described(each, data) for each in name.split(", "))


def _described(name: str, data: Path | None) -> str:
    path = find(name, data)
    if path is None or path.is_dir():
        return name
    return f"{path.name}, {path.stat().st_size:,} bytes"
