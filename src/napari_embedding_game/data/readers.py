"""Read any supported file by its extension: :func:`read`, :func:`spaces`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.formats.anndata import (
    anndata_columns,
    anndata_spaces,
    anndata_stages,
)
from napari_embedding_game.data.formats.arrays import array_spaces, array_stages
from napari_embedding_game.data.formats.tables import KnownRows, table_stages
from napari_embedding_game.data.formats.tenx import matrix_file, tenx_stages
from napari_embedding_game.data.images.experiment import experiment_stages
from napari_embedding_game.data.images.image_pairs import HOW, has_pairs
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stages, finish


@dataclass(frozen=True)
class _Kind:
    """How files of a kind are read."""

    stages: Callable[..., Stages[ReadResult]]
    spaces: Callable[[Path], list[str]] | None = None
    columns: Callable[[Path, str | None], list[str]] | None = None
    """Both where they can be told without reading all."""


_ANNDATA = _Kind(anndata_stages, anndata_spaces, anndata_columns)
_ARRAY = _Kind(array_stages, array_spaces)
_TABLE = _Kind(table_stages)
_TENX = _Kind(tenx_stages)
_EXPERIMENT = _Kind(experiment_stages)

_KINDS: dict[str, _Kind] = {
    ".h5ad": _ANNDATA,
    ".npy": _ARRAY,
    ".npz": _ARRAY,
    **dict.fromkeys(
        (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz", ".parquet.gz"), _TABLE
    ),
    **dict.fromkeys((".h5", ".mtx", ".mtx.gz"), _TENX),
}
ENDINGS: tuple[str, ...] = tuple(_KINDS)
"""Endings of the names of files that can be read."""
FOLDER_ENDINGS: tuple[str, ...] = (".zarr",)
"""Endings of folders that can be read; those of 10x and of images have any name."""


def read(path: str | Path, **options: Any) -> Dataset:
    """Read and check a file or folder.

    Parameters
    ----------
    path : str or Path
        A file with one of :data:`ENDINGS`, a .zarr folder (AnnData, or tables of
        SpatialData), a folder with ``matrix.mtx`` of 10x Genomics, or one of images
        with their labels, whose objects are measured.
    **options
        ``space``, ``columns``, ``missing``, ``duplicates``, ``several`` and
        ``transposed`` of :class:`~.read_options.ReadOptions`.

    Raises
    ------
    DataError
        One sentence that names the file and the way out.
    """
    return finish(read_stages(path, ReadOptions(**options))).dataset


def read_stages(
    path: str | Path, options: ReadOptions, rows: KnownRows | None = None
) -> Stages[ReadResult]:
    """Do what :func:`read` does, in stages: a generator that may be closed.

    The file is read once: the result also tells what :func:`spaces` and
    :func:`columns` would.  `rows` is the content of a table that was read before.
    """
    path = Path(path)
    kind = _kind(path)
    if kind is _TABLE:
        result = yield from table_stages(path, options, rows)
    elif options.transposed:
        raise DataError(f"{path.name} is no table, which alone can be transposed.")
    else:
        result = yield from kind.stages(path, options)
    return replace(result, dataset=replace(result.dataset, read_options=options))


def spaces(path: str | Path) -> list[str]:
    """List what can be embedded in the file, the default first.

    Raises
    ------
    DataError
        If the file cannot be read or holds nothing to embed.
    """
    path = Path(path)
    told = _kind(path).spaces
    return list(_skimmed(path, None).spaces) if told is None else told(path)


def columns(path: str | Path, space: str | None = None) -> list[str]:
    """List the columns of a space (the default one) of which some may be chosen."""
    path = Path(path)
    told = _kind(path).columns
    if told is not None:
        return told(path, space)
    return list(_skimmed(path, space).columns)


def _skimmed(path: Path, space: str | None) -> ReadResult:
    return finish(read_stages(path, ReadOptions(space=space, missing="drop")))


def can_drop_duplicates(path: str | Path) -> bool:
    """Return whether `duplicates` applies: whether the file is a table."""
    return _kind(Path(path)) in (_TABLE, _EXPERIMENT)


def is_table(path: str | Path) -> bool:
    """Return whether this is a file of rows and columns of any kind, as a .csv is."""
    return _kind(Path(path)) is _TABLE


def can_read(path: str | Path) -> bool:
    """Tell whether this is the name of a file, or a folder, that may be read."""
    if str(path).lower().endswith((*ENDINGS, *FOLDER_ENDINGS)):
        return True
    folder = Path(path)
    with suppress(OSError):  # a name that no file has
        return folder.is_dir() and (
            matrix_file(folder) is not None or is_experiment(folder)
        )
    return False


def is_experiment(path: Path) -> bool:
    """Return whether this is a folder of images and labels, by their names."""
    if not path.is_dir() or path.name.lower().endswith(FOLDER_ENDINGS):
        return False
    return matrix_file(path) is None and has_pairs(path)


def _kind(path: Path) -> _Kind:
    with explain_damage(path, "a file or folder"):
        return _kind_of(path)


def _kind_of(path: Path) -> _Kind:
    if not path.exists():
        raise DataError(f"{path} does not exist: check the name and the folder.")
    if path.is_dir():
        return _kind_of_folder(path)
    if not path.is_file():
        raise DataError(f"{path} is no ordinary file: choose a file.")
    for ending, kind in _KINDS.items():
        if path.name.lower().endswith(ending):
            return kind
    raise DataError(
        f"{path.name} cannot be read: the name has to end in one of "
        f"{', '.join(ENDINGS)}."
    )


def _kind_of_folder(path: Path) -> _Kind:
    if path.name.lower().endswith(FOLDER_ENDINGS):
        return _ANNDATA
    if matrix_file(path) is not None:
        return _TENX
    if is_experiment(path):
        return _EXPERIMENT
    raise DataError(
        f"{path} is a folder: choose a file in it, a .zarr folder, the folder of a "
        f"10x matrix.mtx, or one of images and labels. {HOW}"
    )
