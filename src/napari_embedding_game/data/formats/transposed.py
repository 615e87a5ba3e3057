"""Tables with a gene in each row and a cell in each column: recognise and turn them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from napari_embedding_game.data.columns import listed, numbered_names, numbers
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.table_files import NOTES

# What the column of gene names is called.
_GENES = re.compile(
    r"(hgnc|mgi|ensembl)?[_\- .]?(genes?|symbols?|gene[_\- .]?(ids?|names?|symbols?))"
    r"|ensembl([_\- .]?ids?)?",
    re.IGNORECASE,
)
_GENE = re.compile(r"ENS[A-Z]{0,4}G\d{6,}(\.\d+)?")
# Perhaps with the name of the sample before it, or the number of the lane after it.
_BARCODE = re.compile(r"(.*[_\-.:#])?[ACGT]{10,}([_\-.:].*)?")
_LOOKED_AT = 1000


def has_genes_in_rows(frame: pd.DataFrame) -> bool:
    """Return whether the rows of a table look like genes, or its columns like cells."""
    names = [str(name) for name in frame.columns[:_LOOKED_AT]]
    if frame.shape[1] < 3:
        return False
    first = _names_of_rows(frame)
    rows = [str(name) for name in first[:_LOOKED_AT]]
    return (
        (bool(_GENES.fullmatch(str(first.name))) and _is_text(first))
        or 2 * sum(map(bool, map(_GENE.fullmatch, rows))) >= len(rows)
        or 2 * sum(map(bool, map(_BARCODE.fullmatch, names))) >= len(names)
    )


def transposed(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a table whose rows are the columns of numbers of another one.

    Its columns are called as the rows of the other; those of one name are numbered.

    Raises
    ------
    DataError
        There are no numbers.
    """
    first = _names_of_rows(frame)
    values = {
        str(name): column
        for name in frame.columns
        if name != first.name and (column := numbers(frame[name], where)) is not None
    }
    if not values:
        raise DataError(
            f"{where} has no column of numbers to be turned into a row: leave it as it "
            "is, or choose another source."
        )
    names, notes = numbered_names(pd.Index(first.astype(str)))
    turned = pd.DataFrame(np.stack(list(values.values())), list(values), names)
    told = (
        f"Transposed: {len(names):,} rows became columns, {len(values):,} columns rows"
    )
    others = [str(c) for c in frame.columns if c != first.name and str(c) not in values]
    left_out = f", without {listed(others)}" if others else ""
    turned.attrs[NOTES] = [*frame.attrs.get(NOTES, []), f"{told}{left_out}.", *notes]
    return turned


def _names_of_rows(frame: pd.DataFrame) -> pd.Series:
    """Return what the rows are called, by the first column or the index, or numbers."""
    if not isinstance(frame.index, pd.RangeIndex):
        return frame.index.to_series()
    first = frame.iloc[:, 0]
    if _is_text(first) or _GENES.fullmatch(str(first.name)):
        return first
    return pd.Series(range(1, len(frame) + 1))


def _is_text(column: pd.Series) -> bool:
    return bool(pd.api.types.infer_dtype(column, skipna=True) == "string")
