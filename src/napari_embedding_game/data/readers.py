"""One door for every kind of file: :func:`read` and :func:`spaces`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .anndata import anndata_spaces, read_anndata
from .arrays import array_spaces, read_array
from .dataset import Dataset
from .errors import DataError
from .tables import read_table, table_spaces
from .validation import Missing

Reader = Callable[..., Dataset]
Lister = Callable[[Path], list[str]]

_KINDS: dict[str, tuple[Reader, Lister]] = {
    ".h5ad": (read_anndata, anndata_spaces),
    ".npy": (read_array, array_spaces),
    ".npz": (read_array, array_spaces),
    **dict.fromkeys(
        (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz", ".parquet.gz"),
        (read_table, table_spaces),
    ),
}
ENDINGS: tuple[str, ...] = tuple(_KINDS)
"""Endings of file names that can be read."""


def read(
    path: str | Path, *, space: str | None = None, missing: Missing = "error"
) -> Dataset:
    """Read and check a file.

    Parameters
    ----------
    path : str or Path
        A file with one of :data:`ENDINGS`.
    space : str, optional
        What to embed, one of :func:`spaces`; for a table, names of columns with
        commas between them.
    missing : {"error", "drop"}
        Whether a NaN or infinite value is an error, or its row is left out.

    Raises
    ------
    DataError
        One sentence that names the file and the way out.
    """
    path = Path(path)
    reader, _ = _kind(path)
    return reader(path, space=space, missing=missing)


def spaces(path: str | Path) -> list[str]:
    """List what can be embedded in the file, the default first.

    Raises
    ------
    DataError
        If the file cannot be read or holds nothing to embed.
    """
    path = Path(path)
    _, lister = _kind(path)
    return lister(path)


def can_read(path: str | Path) -> bool:
    """Tell whether the name of the file has one of :data:`ENDINGS`."""
    return str(path).lower().endswith(ENDINGS)


def _kind(path: Path) -> tuple[Reader, Lister]:
    if not path.exists():
        raise DataError(f"{path} does not exist: check the name and the folder.")
    if path.is_dir():
        raise DataError(f"{path} is a folder: choose a file in it.")
    for ending, kind in _KINDS.items():
        if path.name.lower().endswith(ending):
            return kind
    raise DataError(
        f"{path.name} cannot be read: the name has to end in one of "
        f"{', '.join(ENDINGS)}."
    )
