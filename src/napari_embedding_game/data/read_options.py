"""Options that say how a source is read; they are kept with the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from napari_embedding_game.data.column_names import Role
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import TARGET_SUM, GeneKind
from napari_embedding_game.data.quality_control import LIMITS

Missing = Literal["error", "drop"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The numbers of the steps from raw counts to principal components."""

    min_genes: int = 200
    """Cells with fewer genes found than these are left out as empty or broken."""
    max_genes: int = 0
    """Cells with more genes are left out as doublets; with 0 none are."""
    min_counts: int = 0
    """Cells with fewer counts are left out as empty."""
    max_counts: int = 0
    """Cells with more counts are left out as doublets; with 0 none are."""
    max_mito: float = 0.0
    """Cells with a higher share of mitochondrial counts, in per cent, are left out as
    dying; with 0 none are."""
    min_cells: int = 3
    """Genes found in fewer cells than these are left out as noise."""
    target_sum: float = TARGET_SUM
    """Counts of each cell after normalising, so that cells compare."""
    n_top_genes: int = 2_000
    """Genes that vary the most between cells; only these make the map."""
    max_value: float = 10.0
    """Cap of the scaled expression, in standard deviations, against outliers."""
    n_comps: int = 50
    """Principal components, the columns of the space to embed."""
    batch_key: str | None = None
    """Column of obs whose levels Harmony mixes in the components; None for none."""
    doublets: bool = False
    """Whether the doublets that scrublet finds, in each batch, are left out."""

    def __post_init__(self) -> None:
        lowest = {**dict.fromkeys(LIMITS, 0), "n_top_genes": 2, "n_comps": 2}
        for name, least in {**lowest, "min_cells": 0}.items():
            if getattr(self, name) < least:
                raise DataError(f"The recipe's {name} must be at least {least}.")
        for name in ("target_sum", "max_value"):
            if not 0 < getattr(self, name) < np.inf:
                raise DataError(f"The recipe's {name} must be a number above 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of reading a source, or by which it was read."""

    space: str | None = None
    """What is embedded, one of :attr:`~.read_result.ReadResult.spaces`; for a table,
    names of columns with commas between them; None for what suits a map best."""
    columns: tuple[str, ...] | None = None
    """Only these columns of it."""
    missing: Missing = "error"
    """Whether a NaN or infinite value is an error, or its row is left out ("drop")."""
    transposed: bool = False
    """Whether the columns of a table are its rows."""
    id_column: str | None = None
    """Column of a table that says which object of a label image a row is; 0, the
    background, is left out."""
    recipe: Recipe | None = None
    """Makes principal components of raw counts."""
    batch_key: str | None = None
    """Column of batches that Harmony mixes in components of the file."""
    gene_kind: GeneKind | None = None
    """What the genes hold: "counts", "logarithms" of counts, or other "values"; None
    where their numbers are to tell."""
    roles: Mapping[str, Role] = field(default_factory=dict, hash=False)
    """What columns of metadata are to be taken for, by their names; the others go by
    their type and name."""

    def __post_init__(self) -> None:
        if self.missing not in get_args(Missing):
            raise DataError(f"missing can be 'error' or 'drop', not {self.missing!r}.")
        kinds, roles = get_args(GeneKind), get_args(Role)
        if self.gene_kind is not None and self.gene_kind not in kinds:
            raise DataError(
                f"Genes can hold {', '.join(kinds)}, not {self.gene_kind!r}."
            )
        for name, role in self.roles.items():
            if role not in roles:
                raise DataError(
                    f"{name} can be taken for {', '.join(roles)}, not {role!r}."
                )
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))

    def choose_space(self, spaces: Sequence[str], where: str) -> str:
        """Return the requested space, by default the first of `spaces`.

        Raises DataError if the requested space is not among `spaces`.
        """
        if self.space is not None and self.space not in spaces:
            raise DataError(
                f'{where} has no space "{self.space}": choose one of '
                f"{', '.join(spaces)}."
            )
        return self.space or spaces[0]


DEFAULT_OPTIONS = ReadOptions()
