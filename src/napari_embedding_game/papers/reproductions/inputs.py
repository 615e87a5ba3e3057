"""What a person chose for a reproduction, and the data sets there are."""

from __future__ import annotations

from dataclasses import dataclass
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
}
"""Data sets and their files, which ``docs/reproduction.md`` describes."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a person chose for a reproduction."""

    data: Path | None = None
    """A folder with the files of ``SOURCES``."""
    quick: bool = False
    """Small sizes, to see that it works: seconds instead of minutes or hours."""
    random_state: int = 0

    def path(self, name: str) -> Path:
        """Return the file of a data set, or raise DataError."""
        file = SOURCES[name]
        if self.data is not None and (self.data / file).exists():
            return self.data / file
        raise DataError(f"This needs {file}: name the folder it lies in by --data.")

    def load(self, name: str) -> Dataset:
        """Read a data set, or raise DataError.  Pixels are from 0 to 1."""
        from napari_embedding_game.data.loader import load
        from napari_embedding_game.data.stages import finish

        return finish(load(self.path(name)))

    def described(self, names: str) -> str:
        """Return names and sizes of the files of data sets, with ", " between."""
        files = [self.path(name) for name in names.split(", ") if name]
        descriptions = (f"{file.name}, {file.stat().st_size:,} bytes" for file in files)
        return "; ".join(descriptions) or "none"
