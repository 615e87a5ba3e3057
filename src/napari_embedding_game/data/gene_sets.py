"""Gene sets: read them from a file, and score each cell by a set as scanpy does."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import AddedColumns, Dataset
from napari_embedding_game.data.errors import (
    DataError,
    check_installed,
    wrap_read_errors,
)
from napari_embedding_game.data.formats.tables import decode_utf8
from napari_embedding_game.data.gene_names import FoundNames, split_names

MAX_FILE = 64_000_000
"""Largest size in bytes; all sets of MSigDB together have a third of it."""


@dataclass(frozen=True, slots=True)
class GeneSet:
    """Genes that belong together, such as those of a pathway."""

    name: str
    genes: tuple[str, ...]


def read_gene_sets(path: Path) -> list[GeneSet]:
    """Read the gene sets of a .gmt file, or the single set of a text file.

    A line of a .gmt file has a name, a description and genes between tabs; other lines,
    and sets without genes, are left out. A text file is one set named as the file.
    Lines that begin with "#" are skipped in both.

    Raises DataError if the file cannot be read, is too large, or has no genes.
    """
    if path.stat().st_size > MAX_FILE:
        raise DataError(
            f"{path.name} is larger than lists of genes are "
            f"({MAX_FILE // 1_000_000} MB): choose a .gmt or text file of names."
        )
    with wrap_read_errors(path, "a list of genes"):
        text = decode_utf8(path.read_bytes(), path.name)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    named = [(path.stem, "\n".join(lines))]
    if path.suffix.lower() == ".gmt":
        parts = (line.split("\t", 2) for line in lines)
        named = [(part[0], f"\t{part[2]}") for part in parts if len(part) == 3]
    sets = [GeneSet(name.strip(), tuple(split_names(text))) for name, text in named]
    sets = [one for one in sets if one.genes]
    if not sets:
        raise DataError(
            f"{path.name} has no genes: each line of a .gmt file is a name, a "
            "description and genes between tabs; a text file has a gene in each line."
        )
    return sets


def score_genes(
    dataset: Dataset, gene_set: GeneSet
) -> tuple[NDArray[np.float64], FoundNames]:
    """Return the (n,) scores of ``scanpy.tl.score_genes``, and which genes were found.

    Genes of the set that the data lack are ignored. The global random state of numpy,
    which scanpy seeds, is restored.

    Raises DataError if scanpy is missing, the data hold no expression, no gene of the
    set is in the data, or too few other genes are left to compare with.
    """
    if not dataset.has_expression:
        raise DataError(
            f"{dataset.name} has no expression of genes: open a file that has, or "
            "prepare its raw counts."
        )
    check_installed("scanpy", "The score of a gene set")
    match = dataset.find_profile_columns(gene_set.genes)
    if not match.indices:
        raise DataError(
            f'No gene of "{gene_set.name}" is in the data. {match.note} Use the names '
            "that the data have, such as symbols instead of Ensembl numbers."
        )
    # Imported first, as another thread importing it meanwhile fails:
    # python/cpython#83065.
    import sklearn.metrics  # noqa: F401
    import scanpy as sc  # isort: skip
    from anndata import AnnData

    # Genes are named by numbers, as names of the data may be repeated.
    numbers = pd.RangeIndex(len(dataset.profile_names)).astype(str)
    adata = AnnData(dataset.expression.values, var=pd.DataFrame(index=numbers))
    state = np.random.get_state()  # noqa: NPY002 - scanpy seeds the one of all
    try:
        with warnings.catch_warnings(action="ignore"):
            sc.tl.score_genes(adata, numbers[list(match.indices)])
    except (RuntimeError, ValueError) as error:
        raise DataError(
            f'"{gene_set.name}" cannot be scored, as too few other genes are expressed '
            f"as highly to compare with ({str(error).rstrip('.')}): take fewer genes."
        ) from error
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return adata.obs["score"].to_numpy(dtype=np.float64), match


def with_score_column(
    dataset: Dataset, gene_set: GeneSet, scores: NDArray[np.floating]
) -> tuple[Dataset, str]:
    """Return the dataset with a column of scores (n,), and the name of that column.

    The name is that of the set, with "_" for "/"; "gene set" if the set has none. A
    number is appended if a column has this name already.
    """
    name = gene_set.name.strip().replace("/", "_")  # an .h5ad key has no slash
    name = "gene set" if name in ("", "_index") else name
    how = AddedColumns(kind="score", genes=gene_set.genes)
    return dataset.with_columns(name, {"": scores}, how, replaces=False)
