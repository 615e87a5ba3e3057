"""Read any supported file by its extension."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats import tables
from napari_embedding_game.data.formats.anndata import (
    read_anndata_in_stages,
    read_file_identity,
)
from napari_embedding_game.data.formats.arrays import read_arrays_in_stages
from napari_embedding_game.data.formats.conversion import (
    CONVERTERS,
    find_converter,
    read_converted_in_stages,
)
from napari_embedding_game.data.formats.fcs import ENDING as FCS
from napari_embedding_game.data.formats.fcs import find_fcs_files, read_fcs_in_stages
from napari_embedding_game.data.formats.mudata import ENDING as ENDING_OF_MUDATA
from napari_embedding_game.data.formats.mudata import (
    read_modality_hashes,
    read_mudata_in_stages,
)
from napari_embedding_game.data.formats.store import is_zarr, read_attributes
from napari_embedding_game.data.formats.tables import TABLES, read_table_in_stages
from napari_embedding_game.data.identity import Identity, RowHashes
from napari_embedding_game.data.images.experiment import measure_folder_in_stages
from napari_embedding_game.data.images.folder import PAIRING_HINT, has_image_pairs
from napari_embedding_game.data.images.ome_zarr import is_plate
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stages

_Reader = Callable[..., Stages[ReadResult]]

_READERS: dict[str, _Reader] = {
    ".h5ad": read_anndata_in_stages,
    ENDING_OF_MUDATA: read_mudata_in_stages,
    FCS: read_fcs_in_stages,
    **dict.fromkeys((".npy", ".npz"), read_arrays_in_stages),
    **dict.fromkeys(TABLES, read_table_in_stages),
    **dict.fromkeys(CONVERTERS, read_converted_in_stages),
}
ENDINGS: tuple[str, ...] = tuple(_READERS)
"""Endings of the names of files that can be read."""
FOLDER_ENDINGS: tuple[str, ...] = (".zarr",)
"""Endings of the names of folders that can be read; other folders have any name."""
_PICTURE_SIDE = 64
"""Pixels of the shorter side of an array of whole numbers that is taken for a picture.
"""
_PARTS_OF_TABLES = "matrix", "obs"
"""Parts of an .h5 file of 10x Genomics, and of an AnnData."""
_HEADINGS_OF_LAYERS = ("index,axis-0", "index,shape-type")
_KEYS_OF_IMAGES = {"multiscales", "plate", "well", "bioformats2raw.layout"}


def read_in_stages(path: str | Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read and check a file or folder, in stages.

    `path` is a file with one of :data:`ENDINGS`, a .zarr folder (AnnData, or the first
    table of SpatialData), a folder of 10x Genomics (``matrix.mtx``, Visium, Xenium), of
    .fcs files, or of images with their labels, or a plate of OME-Zarr; the objects of
    labels are measured. The options are kept with the dataset, but the recipe is not
    applied: see :func:`~.loader.load`.

    Raises DataError with one sentence that names the file and the remedy, also if
    anything but a table is to be transposed.
    """
    path = Path(path)
    reader = _find_reader(path)
    if options.transposed and reader is not read_table_in_stages:
        raise DataError(f"{path.name} is no table, which alone can be transposed.")
    result = yield from reader(path, options)
    return replace(result, dataset=replace(result.dataset, read_options=options))


def read_row_hashes(
    path: str | Path, known: Identity, options: ReadOptions
) -> RowHashes:
    """Read the parts of a file by which its rows were `known`, and return their hashes.

    Parts that are gone, as after reading with other options, are absent from the
    result. It is empty for files that are neither tables, AnnData nor MuData.
    """
    path = Path(path)
    reader = _find_reader(path)
    if reader is read_table_in_stages:
        (part,) = known.row_hashes
        return tables.read_row_hashes(path, part, options)
    if reader is read_anndata_in_stages:
        return read_file_identity(path, known).row_hashes
    if reader is read_mudata_in_stages:
        return read_modality_hashes(path, known)
    return {}


def is_table_file(path: str | Path) -> bool:
    """Return whether a path is a file of rows and columns of any kind, as .csv is.

    Raises DataError if no reader can read the path, or it does not exist.
    """
    return _find_reader(Path(path)) is read_table_in_stages


def can_read(path: str | Path) -> bool:
    """Return whether a path can be read, by its ending or the content of a folder.

    A file is not opened, and need not exist. False where the system refuses the name.
    """
    if str(path).lower().endswith((*ENDINGS, *FOLDER_ENDINGS)):
        return True
    with suppress(OSError):  # the system may refuse the name
        return _find_folder_reader(Path(path)) is not None
    return False


def holds_layers_or_images(path: Path) -> bool:
    """Return whether a path holds napari layers or images, and no table of rows.

    Such are points and shapes that napari saved as .csv, by their headings; OME-Zarr,
    by its metadata; an .npy of more than two axes or of a picture's whole numbers; and
    an .h5 without counts of 10x Genomics and without AnnData. False if these cannot be
    read.
    """
    ending = path.suffix.lower()
    with suppress(OSError, ValueError):
        if ending == ".csv":
            with path.open(encoding="utf-8") as file:
                return file.readline(100).startswith(_HEADINGS_OF_LAYERS)
        if ending == ".npy":
            array = np.load(path, mmap_mode="r")  # the header alone is read
            is_picture = (
                array.dtype.kind in ("b", "u") and min(array.shape) >= _PICTURE_SIDE
            )
            return bool(array.ndim > 2 or is_picture)
        if ending == ".h5":
            import h5py  # 0.2 s

            with h5py.File(path) as file:
                links = [file.get(x, getlink=True) for x in _PARTS_OF_TABLES]
                return not any(isinstance(link, h5py.HardLink) for link in links)
        return not _KEYS_OF_IMAGES.isdisjoint(read_attributes(path))
    return False


def is_image_folder(path: Path) -> bool:
    """Return whether a path is a folder of images with label images."""
    return _find_folder_reader(path) is measure_folder_in_stages


def _find_reader(path: Path) -> _Reader:
    """Return the reader of a folder by its content, or of a file by its ending.

    Raises DataError if the path does not exist, or no reader can read it.
    """
    with wrap_read_errors(path, "a file or folder"):
        if not path.exists():
            raise DataError(f"{path} does not exist: check the name and the folder.")
        reader = _find_folder_reader(path)
        if reader is not None:
            return reader
        if path.is_dir():
            raise DataError(
                f"{path} is a folder: choose a file in it, a .zarr folder, one of 10x "
                f"(matrix.mtx, Visium, Xenium), of .fcs files, or images and labels. "
                f"{PAIRING_HINT}"
            )
        if not path.is_file():
            raise DataError(f"{path} is no ordinary file: choose a file.")
    for ending, reader in _READERS.items():
        if path.name.lower().endswith(ending):
            return reader
    raise DataError(
        f"{path.name} cannot be read: the name has to end in one of "
        f"{', '.join(ENDINGS)}."
    )


def _find_folder_reader(path: Path) -> _Reader | None:
    """Return the reader of a folder; None if no reader can read it, or it is no folder.

    Tried in turn: a plate of OME-Zarr; other .zarr; Visium, Xenium or a
    ``matrix.mtx``; pairs of images and labels; .fcs files.
    """
    if not path.is_dir():
        return None
    if is_plate(path):
        return measure_folder_in_stages
    if path.name.lower().endswith(FOLDER_ENDINGS) or is_zarr(path):
        return read_anndata_in_stages
    if find_converter(path):
        return read_converted_in_stages
    if has_image_pairs(path):
        return measure_folder_in_stages
    return read_fcs_in_stages if find_fcs_files(path) else None
