"""Read files of other programs by converting them to an AnnData."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from napari_embedding_game.data.formats.anndata import read_adata_in_stages
from napari_embedding_game.data.formats.loom import read_loom
from napari_embedding_game.data.formats.rds import read_rds
from napari_embedding_game.data.formats.spatial_folders import (
    is_spatial_folder,
    read_spatial_folder,
)
from napari_embedding_game.data.formats.tenx import find_matrix_files, read_counts
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages

if TYPE_CHECKING:
    from anndata import AnnData

_Converter = Callable[[Path], "tuple[AnnData, list[str]]"]
"""Function that reads a path as an AnnData (cells, genes), with notes."""

CONVERTERS: dict[str, _Converter] = {
    **dict.fromkeys((".h5", ".mtx", ".mtx.gz"), read_counts),
    ".loom": read_loom,
    ".rds": read_rds,
}
"""Functions by the ending of the names of files."""


def find_converter(path: Path) -> _Converter | None:
    """Return the function that converts a file or folder; None if there is none."""
    if path.is_dir():
        if is_spatial_folder(path):
            return read_spatial_folder
        return read_counts if find_matrix_files(path) else None
    name = path.name.lower()
    return next((one for end, one in CONVERTERS.items() if name.endswith(end)), None)


def read_converted_in_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Convert a file or folder to an AnnData, and read one space of it, in stages.

    Raises DataError if a file is missing, damaged or too large, or lacks the space.
    """
    yield Stage(f"Reading {path.name}, which may take a minute")
    converter = find_converter(path)
    assert converter is not None
    adata, notes = converter(path)
    result = yield from read_adata_in_stages(adata, path.name, options, path)
    dataset = replace(result.dataset, notes=(*notes, *result.dataset.notes))
    return replace(result, dataset=dataset)
