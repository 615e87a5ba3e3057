"""Read any supported file by its extension: :func:`read`, :func:`spaces`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from napari_embedding_game.data.formats.arrays import (
    array_columns,
    array_spaces,
    array_stages,
)
from napari_embedding_game.data.formats.tables import (
    KnownRows,
    table_columns,
    table_spaces,
    table_stages,
)
from napari_embedding_game.data.formats.tenx import (
    matrix_file,
    tenx_columns,
    tenx_spaces,
    tenx_stages,
)
from napari_embedding_game.data.images.experiment import (
    experiment_columns,
    experiment_spaces,
    experiment_stages,
)
from napari_embedding_game.data.images.image_pairs import HOW, has_pairs
from napari_embedding_game.data.read_options import (
    Duplicates,
    Missing,
    ReadOptions,
    Several,
)
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stages, finish
from napari_embedding_game.data.validation import (
    check_duplicates,
    check_missing,
    check_several,
)


@dataclass(frozen=True)
class _Kind:
    """How files of a kind are read, and what is in them to choose from."""

    stages: Callable[..., Stages[ReadResult]]
    spaces: Callable[[Path], list[str]]
    columns: Callable[[Path, str | None], list[str]]
    has_duplicates: bool = False
    has_several: bool = False


_ANNDATA = _Kind(anndata_stages, anndata_spaces, anndata_columns, has_several=True)
_ARRAY = _Kind(array_stages, array_spaces, array_columns, has_several=True)
_TABLE = _Kind(table_stages, table_spaces, table_columns, has_duplicates=True)
_TENX = _Kind(tenx_stages, tenx_spaces, tenx_columns)
_EXPERIMENT = _Kind(
    experiment_stages, experiment_spaces, experiment_columns, has_duplicates=True
)

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


def read(
    path: str | Path,
    *,
    space: str | None = None,
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "keep",
    several: Several = "first",
    transposed: bool = False,
) -> Dataset:
    """Read and check a file or folder.

    Parameters
    ----------
    path : str or Path
        A file with one of :data:`ENDINGS`, a .zarr folder (AnnData, or tables of
        SpatialData), a folder with ``matrix.mtx`` of 10x Genomics, or one of images
        with their labels, whose objects are measured.
    space : str, optional
        What to embed, one of :func:`spaces`; ``obs`` for the numbers among the
        metadata of an AnnData; for a table, names of columns with commas between
        them.
    columns : sequence of str, optional
        Only these of :func:`columns`.
    missing : {"error", "drop"}
        Whether a NaN or infinite value is an error, or its row is left out.
    duplicates : {"keep", "drop"}
        Whether columns of a table that repeat another one are embedded.
    several : {"first", "error"}
        What happens where no `space` is given and there are several arrays in an .npz,
        none by a usual name such as ``X``, or several tables of SpatialData: the first
        is embedded, and a note names the others, or they are named by an error.

    Raises
    ------
    DataError
        One sentence that names the file and the way out.
    """
    options = ReadOptions(
        space=space,
        columns=None if columns is None else tuple(columns),
        missing=missing,
        duplicates=duplicates,
        several=several,
        transposed=transposed,
    )
    return finish(read_stages(path, options)).dataset


def read_stages(
    path: str | Path, options: ReadOptions, rows: KnownRows | None = None
) -> Stages[ReadResult]:
    """Do what :func:`read` does, in stages: a generator that may be closed.

    The file is read once: the result also tells what :func:`spaces` and
    :func:`columns` would.  `rows` is the content of a table that was read before.
    """
    path = Path(path)
    kind = _kind(path)
    check_missing(options.missing)
    check_duplicates(options.duplicates)
    check_several(options.several)
    more: dict[str, Any] = {}
    if kind.has_duplicates:
        more["duplicates"] = options.duplicates
    if kind is _TABLE:
        more |= {"transposed": options.transposed, "rows": rows}
    elif options.transposed:
        raise DataError(f"{path.name} is no table, which alone can be transposed.")
    if kind.has_several:
        more["several"] = options.several
    result = yield from kind.stages(
        path,
        space=options.space,
        columns=options.columns,
        missing=options.missing,
        **more,
    )
    return replace(result, dataset=replace(result.dataset, read_options=options))


def spaces(path: str | Path) -> list[str]:
    """List what can be embedded in the file, the default first.

    Raises
    ------
    DataError
        If the file cannot be read or holds nothing to embed.
    """
    path = Path(path)
    return _kind(path).spaces(path)


def columns(path: str | Path, space: str | None = None) -> list[str]:
    """List the columns of a space (the default one) of which some may be chosen."""
    path = Path(path)
    return _kind(path).columns(path, space)


def can_drop_duplicates(path: str | Path) -> bool:
    """Return whether `duplicates` applies: whether the file is a table."""
    return _kind(Path(path)).has_duplicates


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
