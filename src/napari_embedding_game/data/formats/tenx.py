"""Read counts of 10x Genomics' Cell Ranger: an .h5 file or a matrix folder.

Rows of the matrix are genes there and columns are cells; here it is turned round.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from napari_embedding_game.data.columns import numbered_names
from napari_embedding_game.data.errors import DataError, check_filled, explain_damage
from napari_embedding_game.data.formats.anndata import from_parts
from napari_embedding_game.data.formats.anndata_store import (
    check_links,
    check_part,
    checked_sparse,
    is_array,
    members,
    read_sparse,
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
_LINE = 1 << 16
_NAME_RATIO = 32  # what short names take in memory for each byte of the file


def tenx_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read the counts of all cells and genes, in stages.

    `path` is an .h5 file, the folder of ``matrix.mtx``, or that file.
    """
    if options.space not in (None, "X"):
        raise DataError(
            f'{path.name} has no space "{options.space}": it has only counts, X.'
        )
    kind = "a 10x .h5 file" if path.suffix.lower() == ".h5" else "a 10x matrix folder"
    with explain_damage(path, kind):
        parts = yield from tenx_parts(path)
    return (yield from from_parts(parts, path, options))


def tenx_parts(path: Path) -> Stages[dict[str, Any]]:
    """Counts (``X``), cells (``obs``), genes (``var``), and ``notes``.

    Only the genes, where other features are counted too.
    """
    yield Stage(f"Opening {path.name}")
    if path.suffix.lower() == ".h5":
        counts, barcodes, features = yield from _read_h5(path)
    else:
        counts, barcodes, features = yield from _read_folder(path)
    shape = (len(barcodes), len(features))
    if counts.shape != shape:
        raise DataError(
            f"{path.name} is damaged: the matrix is {counts.shape[0]} x "
            f"{counts.shape[1]}, and {shape[0]} cells and {shape[1]} genes are named; "
            "export it again."
        )
    kinds = features.get("feature_types")
    notes: list[str] = []
    if kinds is not None and (kinds != _GENES).any() and (kinds == _GENES).any():
        genes = (kinds == _GENES).to_numpy()
        notes = [f"{np.count_nonzero(~genes):,} features that are no genes left out."]
        counts, features = counts[:, genes], features[genes]
    names, repeats = numbered_names(features.index)
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


def _read_h5(path: Path) -> Stages[tuple[Any, list[str], pd.DataFrame]]:
    import h5py

    check_filled(path)
    with h5py.File(path) as file:
        check_links(file, path.name)
        group = _matrix_group(file, path.name)
        shape = tuple(int(n) for n in check_part(group["shape"], path.name, "X")[:])
        counts = yield from read_sparse(group, shape[::-1], "csr", path.name, "X")
        yield Stage("Reading the names of cells and genes")
        barcodes = _texts(group["barcodes"], path.name)
        if "features" not in group:  # before Cell Ranger 3
            names = _texts(group["gene_names"], path.name)
            return counts, barcodes, pd.DataFrame(index=names)
        features = group["features"]
        kinds = _texts(features["feature_type"], path.name)
        names = _texts(features["name"], path.name)
        return counts, barcodes, pd.DataFrame({"feature_types": kinds}, index=names)


def _matrix_group(file: Any, where: str) -> Any:
    if "matrix" in file:
        return file["matrix"]
    groups = [part for _, part in members(file) if not is_array(part)]
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


def _texts(stored: Any, where: str) -> list[str]:
    values = check_part(stored, where, "its list of names")[:]
    return [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v)
            for v in values]  # fmt: skip


def _read_folder(path: Path) -> Stages[tuple[Any, list[str], pd.DataFrame]]:
    from scipy.io import mmread

    matrix = matrix_file(path)
    if matrix is None:
        raise DataError(f"{path} holds no matrix.mtx or matrix.mtx.gz.")
    name = matrix.name.removesuffix(".gz")
    is_prefixed = name.endswith("matrix.mtx")
    prefix = name.removesuffix("matrix.mtx") if is_prefixed else ""
    barcodes = _read_tsv(matrix, prefix, ("barcodes.tsv",))
    features = _read_tsv(matrix, prefix, ("features.tsv", "genes.tsv"))
    _check_size(matrix, len(barcodes), len(features))
    yield Stage(f"Reading {matrix.name}, which may take a minute")
    with _open(matrix) as file:
        genes = sp.csc_matrix(mmread(file, spmatrix=False))
        counts = checked_sparse(genes.T)
    table = pd.DataFrame(index=features[min(1, features.shape[1] - 1)].astype(str))
    if features.shape[1] > 2:
        table["feature_types"] = features[2].to_numpy()
    return counts, barcodes[0].astype(str).tolist(), table


def _open(path: Path, times: int = 1) -> Any:
    if path.suffix != ".gz":
        return path.open("rb")
    check_inflates(path, times)
    return gzip.open(path)


def _read_tsv(matrix: Path, prefix: str, names: Sequence[str]) -> pd.DataFrame:
    folder = matrix.parent
    for name in (prefix + n + end for n in names for end in ("", ".gz")):
        if (folder / name).is_file():
            check_fits(_NAME_RATIO * (folder / name).stat().st_size, name, "its names")
            check_filled(folder / name)
            with _open(folder / name, _NAME_RATIO) as file:
                return pd.read_csv(file, sep="\t", header=None, dtype=str, quoting=3)
    raise DataError(
        f"{folder} has no {prefix}{names[0]} beside {matrix.name}: put it there as "
        "Cell Ranger writes it."
    )


def _check_size(matrix: Path, n_cells: int, n_genes: int) -> None:
    """Compare what the heading of a matrix says with the names, and with the memory."""
    check_filled(matrix)
    with _open(matrix) as file:
        line = file.readline(_LINE)
        while line.startswith(b"%"):
            line = file.readline(_LINE)
        n_rows, n_columns, n_entries = map(int, line.split())
    if (n_rows, n_columns) != (n_genes, n_cells):
        raise DataError(
            f"{matrix.name} says that it has {n_rows:,} genes and {n_columns:,} cells, "
            f"and {n_genes:,} and {n_cells:,} are named beside it: export it again."
        )
    check_shape_fits((n_entries,), _ENTRY_BYTES, matrix.name, "its list of counts")
    smallest = 6 * n_entries  # "1 1 1" and the end of the line
    held = matrix.stat().st_size
    if matrix.suffix != ".gz" and held < smallest:
        raise DataError(
            f"{matrix.name} is cut short: it says that it has {n_entries:,} counts, "
            "and there are fewer; copy or export it again."
        )
