"""Read counts of 10x Genomics' Cell Ranger: an .h5 file or a matrix folder.

Rows of the stored matrix are genes and columns are cells; it is transposed.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from napari_embedding_game.data.columns import make_gene_names_unique
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats import store
from napari_embedding_game.data.formats.matrices import build_anndata
from napari_embedding_game.data.limits.memory import check_fits, read_unpacked

if TYPE_CHECKING:
    from anndata import AnnData

_GENES = "Gene Expression"
_ENTRY_RATIO = 5  # bytes of a value and its indices for each byte of a line
_NAME_RATIO = 32  # bytes that short names take in memory for each byte of the file

_Counts = tuple[Any, list[str], pd.DataFrame]
"""The matrix (cells, genes), names of cells, and the ``var`` table as scanpy has it."""


def read_counts(path: Path) -> tuple[AnnData, list[str]]:
    """Read counts as an AnnData (cells, genes), and notes on what was left out.

    Where genes and other features are counted, only the genes are kept. Repeated gene
    names are numbered. Of several matrices in a folder the first is read. Raises
    DataError if a file is missing, damaged or too large.
    """
    is_h5 = path.suffix.lower() == ".h5"
    kind = "a 10x .h5 file" if is_h5 else "a 10x matrix folder"
    with wrap_read_errors(path, kind):
        counts, cells, var = _read_h5(path) if is_h5 else _read_folder(path)
        genes, notes = (var["feature_types"] == _GENES).to_numpy(), list[str]()
        if genes.any() and not genes.all():
            n_others = np.count_nonzero(~genes)
            notes = [f"{n_others:,} features that are no genes left out."]
            counts, var = counts[:, genes], var[genes]
        unique, repeats = make_gene_names_unique(var.index)
        adata = build_anndata(counts, pd.DataFrame(index=pd.Index(cells)), unique)
        adata.var = var.set_axis(unique)
    files = list(
        dict.fromkeys(f.name.removesuffix(".gz") for f in find_matrix_files(path))
    )
    if len(files) > 1:
        note = f"Of {len(files)} matrices in {path.name} only {files[0]} was read"
        notes += [f"{note}: open the matrix.mtx of another one for its cells."]
    return adata, [*notes, *repeats]


def find_matrix_files(path: Path) -> list[Path]:
    """Return the files ``*matrix.mtx`` or ``*matrix.mtx.gz`` of a folder, sorted.

    Hidden files are left out. For a path that is no folder the result is that path.
    """
    if not path.is_dir():
        return [path]
    files = (*path.glob("*matrix.mtx"), *path.glob("*matrix.mtx.gz"))
    # MacOS adds hidden files.
    return sorted(x for x in files if not x.name.startswith("."))


def _read_h5(path: Path) -> _Counts:
    """Read an .h5 file of Cell Ranger 3 or later.

    Raises DataError if it holds something else, or exceeds the memory, and ValueError
    if an index points outside the matrix.
    """
    with store.open_store(path) as file:
        if "matrix" not in file:
            is_anndata = "obs" in file and "var" in file
            raise DataError(
                f"{path.name} holds an AnnData: rename it so that it ends in .h5ad."
                if is_anndata
                else f"{path.name} is an HDF5 file without counts of 10x Genomics, as "
                "Cell Ranger 3 and later write them: export what it holds as .h5ad or "
                ".csv."
            )
        group = file["matrix"]
        check_fits(store.count_declared_bytes(group), path.name, "X")
        data, indices, indptr, shape = (
            group[part][:] for part in ("data", "indices", "indptr", "shape")
        )
        counts = sp.csr_matrix((data, indices, indptr), shape=tuple(shape[::-1]))
        features = group["features"]
        names = _decode_texts(features["name"])
        ids = _decode_texts(features["id"]) if "id" in features else names
        var = _build_var(names, ids, _decode_texts(features["feature_type"]))
        return store.to_checked_csr(counts), _decode_texts(group["barcodes"]), var


def _build_var(names: list[str], ids: Any, kinds: Any) -> pd.DataFrame:
    """Return the ``var`` table of genes as scanpy has it, indexed by their names."""
    return pd.DataFrame({"gene_ids": list(ids), "feature_types": list(kinds)}, names)


def _decode_texts(stored: Any) -> list[str]:
    """Return stored bytes as texts; invalid UTF-8 is replaced."""
    return [one.decode("utf-8", "replace") for one in stored[:]]


def _read_folder(path: Path) -> _Counts:
    """Read the first matrix.mtx of a folder with its tables of barcodes and features.

    The tables begin with the same prefix as the matrix. Without a column of names,
    identifiers are names; without a column of types, all features are genes. Raises
    DataError if a file is missing, or their sizes differ.
    """
    from scipy.io import mmread

    matrix = next(iter(find_matrix_files(path)), None)
    if matrix is None:
        raise DataError(f"{path} holds no matrix.mtx or matrix.mtx.gz.")
    prefix = matrix.name.removesuffix(".gz").removesuffix("matrix.mtx")
    if prefix.endswith(".mtx"):
        prefix = ""
    barcodes = _read_tsv(matrix, f"{prefix}barcodes.tsv")
    features = _read_tsv(matrix, f"{prefix}features.tsv", f"{prefix}genes.tsv")
    content = _read_text_bytes(matrix, _ENTRY_RATIO)
    genes = mmread(io.BytesIO(content), spmatrix=False)
    names = features[min(1, features.shape[1] - 1)].tolist()
    kinds = features[2] if features.shape[1] > 2 else [_GENES] * len(names)
    cells = barcodes[0].tolist()
    if genes.shape != (len(names), len(cells)):
        raise DataError(
            f"{matrix.name} has {genes.shape[0]:,} genes and {genes.shape[1]:,} cells, "
            f"and {len(names):,} and {len(cells):,} are named beside it: export it "
            "again."
        )
    counts = store.to_checked_csr(sp.csr_matrix(genes.T))
    return counts, cells, _build_var(names, features[0], kinds)


def _read_text_bytes(path: Path, memory_factor: int) -> bytes:
    """Return the unpacked content of a text file; raise ValueError for a zero byte.

    Zero bytes are refused, as scipy's reader may crash the program at a damaged file.
    Raises DataError if the content, times `memory_factor`, exceeds the memory.
    """
    content = read_unpacked(path, memory_factor)
    if b"\0" in content:
        raise ValueError("a text has no zeros")
    return content


def _read_tsv(matrix_file: Path, *names: str) -> pd.DataFrame:
    """Read a table of texts beside a matrix: the first of `names` that exists.

    Each name is tried as it is, then with ".gz". Raises DataError if no file exists.
    """
    for name in (one + end for one in names for end in ("", ".gz")):
        path = matrix_file.parent / name
        if path.is_file():
            text = io.BytesIO(_read_text_bytes(path, _NAME_RATIO))
            options: Any = {"dtype": str, "quoting": 3, "keep_default_na": False}
            return pd.read_csv(text, sep="\t", header=None, **options)
    raise DataError(
        f"{matrix_file.parent} has no {names[0]} beside {matrix_file.name}: put it "
        "there as Cell Ranger writes it."
    )
