"""Options of a reproduction, and the data sets that reproductions read."""

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
"""File of each data set by its name; ``docs/reproduction.md`` describes the files."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Options that a person chose for a reproduction."""

    data: Path | None = None
    """Folder with the files of ``SOURCES``."""
    quick: bool = False
    """Whether to use small sizes, which take seconds instead of minutes or hours."""
    random_state: int = 0

    def find_file(self, name: str) -> Path:
        """Return the file of a data set; DataError where it is not in the folder."""
        file = SOURCES[name]
        if self.data is not None and (self.data / file).exists():
            return self.data / file
        raise DataError(f"This needs {file}: name the folder it lies in by --data.")

    def load(self, name: str) -> Dataset:
        """Read a data set, with pixels from 0 to 1; DataError if it cannot be read."""
        from napari_embedding_game.data.loader import load
        from napari_embedding_game.data.stages import finish

        return finish(load(self.find_file(name)))

    def describe_files(self, names: str) -> str:
        """Return the names and sizes of data files as text, or "none".

        ``names``: of data sets, separated by ", ", or "".  DataError where a file is
        not in the folder.
        """
        files = [self.find_file(name) for name in names.split(", ") if name]
        descriptions = (f"{file.name}, {file.stat().st_size:,} bytes" for file in files)
        return "; ".join(descriptions) or "none"
