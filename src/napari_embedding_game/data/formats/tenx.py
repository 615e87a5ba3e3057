"""Read counts of 10x Genomics' Cell Ranger: an .h5 file or a matrix folder.

Rows of the matrix are genes there and columns are cells; here it is turned round.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from napari_embedding_game.data.columns import numbered_names
from napari_embedding_game.data.errors import DataError, check_filled, explain_damage
from napari_embedding_game.data.formats.anndata import from_parts
from napari_embedding_game.data.formats.store import (
    check_part,
    checked_sparse,
    is_array,
    open_store,
)
from napari_embedding_game.data.limits.memory import (
    check_fits,
    check_inflates,
    check_shape_fits,
)
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages

_GENES = "Gene Expression"
_ENTRY_BYTES = 32  # of a value with its place, while a text matrix is read
_NAME_RATIO = 32  # what short names take in memory for each byte of the file

_Counts = tuple[Any, list[str], pd.DataFrame]
"""The matrix (cells, genes), names of cells, and the table of genes."""


def tenx_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read the counts of all cells and genes, in stages.

    `path` is an .h5 file, the folder of ``matrix.mtx``, or that file.
    """
    if options.space not in (None, "X"):
        raise DataError(
            f'{path.name} has no space "{options.space}": it has only counts, X.'
        )
    yield Stage(f"Reading {path.name}, which may take a minute")
    parts = tenx_parts(path)
    return (yield from from_parts(parts, path, options))


def tenx_parts(path: Path) -> dict[str, Any]:
    """Return counts (``X``), cells (``obs``), genes (``var``), and ``notes``.

    Only the genes, where other features are counted too.
    """
    is_h5 = path.suffix.lower() == ".h5"
    kind = "a 10x .h5 file" if is_h5 else "a 10x matrix folder"
    with explain_damage(path, kind):
        counts, barcodes, features = _read_h5(path) if is_h5 else _read_folder(path)
    if counts.shape != (len(barcodes), len(features)):
        raise DataError(
            f"{path.name} is damaged: the matrix is {counts.shape[0]} x "
            f"{counts.shape[1]}, and {len(barcodes)} cells and {len(features)} genes "
            "are named; export it again."
        )
    genes = (features["kind"] == _GENES).to_numpy()
    notes = []
    if genes.any() and not genes.all():
        notes = [f"{np.count_nonzero(~genes):,} features that are no genes left out."]
        counts, features = counts[:, genes], features[genes]
    names, repeats = numbered_names(pd.Index(features["name"]))
    return {
        "X": counts,
        "obs": pd.DataFrame(index=pd.Index(barcodes)),
        "var": pd.DataFrame(index=pd.Index(names)),
        "notes": (*notes, *repeats),
    }


def matrix_file(path: Path) -> Path | None:
    """``matrix.mtx`` or ``matrix.mtx.gz`` of a folder, with whatever before it."""
    if not path.is_dir():
        return path
    files = sorted([*path.glob("*matrix.mtx"), *path.glob("*matrix.mtx.gz")])
    return files[0] if files else None


def _read_h5(path: Path) -> _Counts:
    with open_store(path) as file:
        group = check_part(_matrix_group(file, path.name), path.name, "X")
        data, indices, indptr, shape = (
            group[part][:] for part in ("data", "indices", "indptr", "shape")
        )
        check_shape_fits((int(shape.sum()),), 8, path.name, "X")
        counts = sp.csr_matrix((data, indices, indptr), shape=tuple(shape[::-1]))
        barcodes = _texts(group["barcodes"])
        if "features" in group:
            features = group["features"]
            names, kinds = _texts(features["name"]), _texts(features["feature_type"])
        else:  # before Cell Ranger 3
            names = _texts(group["gene_names"])
            kinds = [_GENES] * len(names)
        table = pd.DataFrame({"name": names, "kind": kinds})
        return checked_sparse(counts), barcodes, table


def _matrix_group(file: Any, where: str) -> Any:
    if "matrix" in file:
        return file["matrix"]
    groups = [file[key] for key in file if not is_array(file[key])]
    genomes = [group for group in groups if "barcodes" in group]
    if len(genomes) == 1:
        return genomes[0]
    if genomes:
        raise DataError(
            f"{where} holds several genomes, which have no common map: write one of "
            "them to a file of its own (scanpy's read_10x_h5 with genome=...)."
        )
    if "obs" in file and "var" in file:
        raise DataError(
            f"{where} holds an AnnData: rename it so that it ends in .h5ad."
        )
    raise DataError(
        f"{where} is an HDF5 file without counts of 10x Genomics: export what it holds "
        "as .h5ad or .csv."
    )


def _texts(stored: Any) -> list[str]:
    return [one.decode("utf-8", "replace") for one in stored[:]]


def _read_folder(path: Path) -> _Counts:
    from scipy.io import mmread

    matrix = matrix_file(path)
    if matrix is None:
        raise DataError(f"{path} holds no matrix.mtx or matrix.mtx.gz.")
    prefix = matrix.name.removesuffix(".gz").removesuffix("matrix.mtx")
    if prefix.endswith(".mtx"):
        prefix = ""
    barcodes = _read_tsv(matrix, f"{prefix}barcodes.tsv")
    features = _read_tsv(matrix, f"{prefix}features.tsv", f"{prefix}genes.tsv")
    _check_size(matrix, len(barcodes), len(features))
    with _unpacked(matrix) as plain:
        genes = sp.csc_matrix(mmread(plain, spmatrix=False))
    names = features[min(1, features.shape[1] - 1)].astype(str).to_numpy()
    kinds = features[2].to_numpy() if features.shape[1] > 2 else _GENES
    table = pd.DataFrame({"name": names, "kind": kinds})
    return checked_sparse(genes.T), barcodes[0].astype(str).tolist(), table


@contextmanager
def _unpacked(path: Path) -> Iterator[str]:
    """Give the name of a plain file: of a damaged stream scipy may end the program."""
    if path.suffix != ".gz":
        yield str(path)
        return
    with TemporaryDirectory() as folder:
        plain = Path(folder, "matrix.mtx")
        with _open(path) as packed, plain.open("wb") as file:
            shutil.copyfileobj(packed, file)
        yield str(plain)


def _open(path: Path, times: int = 1) -> Any:
    if path.suffix != ".gz":
        return path.open("rb")
    check_inflates(path, times)
    return gzip.open(path)


def _read_tsv(matrix: Path, *names: str) -> pd.DataFrame:
    for name in (one + end for one in names for end in ("", ".gz")):
        path = matrix.parent / name
        if path.is_file():
            check_fits(_NAME_RATIO * path.stat().st_size, name, "its names")
            check_filled(path)
            with _open(path, _NAME_RATIO) as file:
                return pd.read_csv(file, sep="\t", header=None, dtype=str, quoting=3)
    raise DataError(
        f"{matrix.parent} has no {names[0]} beside {matrix.name}: put it there as "
        "Cell Ranger writes it."
    )


def _check_size(matrix: Path, n_cells: int, n_genes: int) -> None:
    """Compare what the heading of a matrix says with the names, and with the memory."""
    check_filled(matrix)
    with _open(matrix) as file:
        line = b"%"
        while line.startswith(b"%"):
            line = file.readline(1 << 16)
        n_rows, n_columns, n_entries = map(int, line.split())
    if (n_rows, n_columns) != (n_genes, n_cells):
        raise DataError(
            f"{matrix.name} says that it has {n_rows:,} genes and {n_columns:,} cells, "
            f"and {n_genes:,} and {n_cells:,} are named beside it: export it again."
        )
    check_shape_fits((n_entries,), _ENTRY_BYTES, matrix.name, "its list of counts")
