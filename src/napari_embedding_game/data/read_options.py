"""How a source is read: the one record of it, which goes wherever the data go."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import TARGET_SUM
from napari_embedding_game.data.quality_control import CellLimits

Missing = Literal["error", "drop"]
Duplicates = Literal["keep", "drop"]
Several = Literal["first", "error"]


@dataclass(frozen=True)
class Recipe:
    """The numbers of the steps from raw counts to principal components."""

    min_genes: int = 200
    """Cells with fewer genes found than these are left out as empty or broken."""
    min_cells: int = 3
    """Genes found in fewer cells than these are left out as noise."""
    target_sum: float = TARGET_SUM
    """Counts of each cell after normalising, so that cells compare."""
    n_top_genes: int = 2_000
    """Genes that vary the most between cells; only these make the map."""
    max_value: float = 10.0
    """Cap of the scaled expression, in standard deviations, against outliers."""
    n_comps: int = 50
    """Principal components: the columns of the space to embed."""
    batch_key: str | None = None
    """Column of obs whose levels Harmony mixes in the components; None for none."""
    max_genes: int = 0
    """Cells with more genes are left out as doublets; 0 for no limit."""
    min_counts: int = 0
    """Cells with fewer counts are left out as empty."""
    max_counts: int = 0
    """Cells with more counts are left out as doublets; 0 for no limit."""
    max_mito: float = 0.0
    """Cells with a higher share of mitochondrial counts, in per cent, are left out as
    dying; 0 for no limit."""
    doublets: bool = False
    """Whether the doublets that scrublet finds, in each batch, are left out."""

    def __post_init__(self) -> None:
        lowest = {"min_genes": 0, "min_cells": 0, "n_top_genes": 2, "n_comps": 2}
        lowest |= {"max_genes": 0, "min_counts": 0, "max_counts": 0, "max_mito": 0}
        for name, least in lowest.items():
            if getattr(self, name) < least:
                raise DataError(f"The recipe's {name} must be at least {least}.")
        for name in ("target_sum", "max_value"):
            if not 0 < getattr(self, name) < np.inf:
                raise DataError(f"The recipe's {name} must be a number above 0.")

    @property
    def limits(self) -> CellLimits:
        """The limits between which the figures of a cell have to be."""
        return CellLimits(**{f.name: getattr(self, f.name) for f in fields(CellLimits)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How a source is to be read, or was read."""

    space: str | None = None
    """What is embedded, one of :func:`~.readers.spaces`; ``obs`` for the numbers among
    the metadata of an AnnData; for a table, names of columns with commas between them;
    None for what suits a map best."""
    columns: tuple[str, ...] | None = None
    """Only these columns of it."""
    missing: Missing = "error"
    """Whether a NaN or infinite value is an error, or its row is left out ("drop")."""
    duplicates: Duplicates = "keep"
    """Whether columns of a table that repeat another one are embedded."""
    several: Several = "first"
    """What happens without a `space` where a file has several arrays, none by a usual
    name such as ``X``, or several tables: the first is embedded, and a note names the
    others; or they are named by an error."""
    transposed: bool = False
    """Whether the columns of a table are its rows."""
    id_column: str | None = None
    """Column of a table that says which object of a label image a row is."""
    recipe: Recipe | None = None
    """Makes principal components of raw counts."""
    batch_key: str | None = None
    """Column whose levels Harmony mixes in components that are there already."""

    def __post_init__(self) -> None:
        kinds = {"missing": Missing, "duplicates": Duplicates, "several": Several}
        for name, kind in kinds.items():
            if getattr(self, name) not in get_args(kind):
                raise DataError(
                    f"{name} can be {' or '.join(map(repr, get_args(kind)))}, not "
                    f"{getattr(self, name)!r}."
                )
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))


AS_USUAL = ReadOptions()
