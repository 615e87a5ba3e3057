"""Write HDF5 so that a full disk raises an error, and does not end the program.

HDF5 2.0 frees a file that it could not write, but not the arrays in it, and crashes
when a later file takes their place in memory: so writing must never hit a full disk.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anndata import AnnData


def reserve_bytes(path: Path, n_bytes: int) -> None:
    """Append `n_bytes` to a file; HDF5 truncates the bytes that it does not need.

    Raises OSError if there is no room.
    """
    with path.open("ab") as end:
        if hasattr(os, "posix_fallocate"):  # on btrfs writing zeros reserves no room
            os.posix_fallocate(end.fileno(), end.tell(), n_bytes)
        else:
            end.write(bytes(n_bytes))


def write_h5ad(adata: AnnData, path: Path) -> None:
    """Write an AnnData as ``AnnData.write_h5ad`` does, through memory.

    Columns of texts in `adata` become categoricals, in place, if texts repeat. Raises
    OSError if there is no room.
    """
    import h5py
    from anndata.io import write_elem

    adata.strings_to_categoricals()
    if adata.raw is not None:
        adata.strings_to_categoricals(adata.raw.var)
    content = BytesIO()
    with h5py.File(content, "w") as file:
        write_elem(file, "/", adata, dataset_kwargs={"compression": "gzip"})
        if adata.raw is None:
            file.pop("raw", None)  # AnnData.write_h5ad writes no empty entry "raw"
    path.write_bytes(content.getbuffer())
