"""Find gene names, typed or read from a file, among the genes of the data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ENSEMBL = r"ENS[A-Z]{0,4}G\d{6,}(\.\d+)?"
SYMBOLS = (
    *("featurename", "genesymbols", "genesymbol", "genenames", "genename", "symbol"),
    *("symbols", "hgncsymbol", "mgisymbol", "externalgenename", "geneshortname"),
)
"""Letters of the names of ``var`` columns that hold symbols beside Ensembl
identifiers."""


@dataclass(frozen=True, eq=False)
class FoundNames:
    """Result of a search for G names among the names of the data."""

    names: tuple[str, ...]
    index_of_each: NDArray[np.intp]
    """(G,) index in the data of each name searched for, -1 for a missing name."""
    by: str = "names"
    """What was compared: "names", or the name of the column with other names."""

    @property
    def indices(self) -> list[int]:
        """Distinct indices in the data of the names that were found."""
        return list(dict.fromkeys(self.index_of_each[self.index_of_each >= 0].tolist()))

    @property
    def share(self) -> float:
        """Share of the names that were found, 0 to 1."""
        return float(np.mean(self.index_of_each >= 0))

    @property
    def missing(self) -> list[str]:
        """Names that were not found, in the order of the search."""
        return [
            n
            for n, index in zip(self.names, self.index_of_each, strict=True)
            if index < 0
        ]

    @property
    def missing_text(self) -> str:
        """The first eight missing names with commas, and how many more are missing."""
        first, more = ", ".join(self.missing[:8]), len(self.missing) - 8
        return f"{first} and {more:,} more" if more > 0 else first

    @property
    def note(self) -> str:
        """Sentence on the names that were not found; "" if all were found."""
        return f"Not in the data: {self.missing_text}." if self.missing else ""


def choose_gene_display_names(var: pd.DataFrame) -> pd.Index:
    """Return the (G,) names of genes to show.

    These are the index of ``var``; but if at least half of the index are Ensembl
    identifiers, symbols from a column such as "feature_name", where they are not empty,
    as in files of CELLxGENE.
    """
    ids = var.index.astype(str)
    columns = {re.sub(r"[\W_]", "", str(c)).casefold(): v for c, v in var.items()}
    column = next((columns[name] for name in SYMBOLS if name in columns), None)
    if column is None or not _are_ensembl_ids(ids):
        return ids
    names = column.astype(object)
    return pd.Index(np.where(names.isna() | names.eq(""), ids, names).astype(str))


def find_ensembl_ids(var: pd.DataFrame) -> pd.Series | None:
    """Return the (G,) Ensembl identifiers of genes, "" where absent.

    Taken is the index, else the first text column, of which at least half are Ensembl
    identifiers; None without such a column.
    """
    columns = (one.astype(str) for _, one in var.items() if one.dtype.kind == "O")
    every = (pd.Series(var.index.astype(str)), *columns)
    ids = next((one for one in every if _are_ensembl_ids(one)), None)
    return ids if ids is None else ids.where(ids.str.fullmatch(ENSEMBL), "")


def _are_ensembl_ids(names: pd.Index | pd.Series) -> bool:
    """Return whether at least half of the names are Ensembl identifiers."""
    return bool(len(names) and names.str.fullmatch(ENSEMBL).mean() >= 0.5)


def split_names(text: str) -> list[str]:
    """Split a text into distinct names, in their order.

    Separators are commas, semicolons, tabs and line ends; in a text without any of
    these, spaces. Quotation marks around names, and empty names, are dropped.
    """
    parts = re.split(r"[,;\t\r\n]+", text)
    if len(parts) == 1:
        parts = text.split()
    names = (part.strip().strip("\"'").strip() for part in parts)
    return list(dict.fromkeys(name for name in names if name))


def find_names(
    wanted: Sequence[str],
    data_names: Sequence[str],
    by: str = "names",
    data_ids: Sequence[str] = (),
) -> FoundNames:
    """Find each wanted name among the data's names, or else among their identifiers.

    1. A name equals a name of the data, of repeated ones the first.
    2. Else it equals one name, if case and versions of Ensembl identifiers are ignored.
    3. Else it equals one of `data_ids` (G,), likewise.

    In steps 2 and 3 a name that matches several is not found. ``by``: recorded in the
    result.
    """
    asked, known = (
        pd.Series(list(wanted), dtype=str),
        pd.Series(list(data_names), dtype=str),
    )
    each = _find_indices_of_texts(asked, known.drop_duplicates())
    for other in (known, pd.Series(list(data_ids), dtype=str)):
        if (absent := each < 0).any():
            each[absent] = _find_indices_of_texts(
                _fold_case_and_version(asked[absent]),
                _fold_case_and_version(other).drop_duplicates(keep=False),
            )
    return FoundNames(tuple(asked), each, by)


def _fold_case_and_version(names: pd.Series) -> pd.Series:
    """Return names in lower case, without the version of an Ensembl identifier."""
    texts = names.str.casefold()
    return texts.str.replace(r"^(ens[a-z]*g\d+)\.\d+$", r"\1", regex=True)


def _find_indices_of_texts(asked: pd.Series, known: pd.Series) -> NDArray[np.intp]:
    """Return the position in the data of each text in `asked`; -1 for a missing text.

    The index of `known`, whose texts are unique, holds positions in the data.
    """
    indices = pd.Index(known).get_indexer(asked)
    return np.asarray(np.append(known.index, -1)[indices], np.intp)
