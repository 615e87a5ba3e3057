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
    """Settings of the steps from raw counts to principal components."""

    min_genes: int = 200
    """Cells with fewer genes found than these are left out as empty or broken."""
    max_genes: int = 0
    """Cells with more genes are left out as doublets; 0 is no limit."""
    min_counts: int = 0
    """Cells with fewer counts are left out as empty."""
    max_counts: int = 0
    """Cells with more counts are left out as doublets; 0 is no limit."""
    max_mito: float = 0.0
    """Cells with a higher percentage of mitochondrial counts are left out as dying; 0
    is no limit."""
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
    """Column of obs whose levels Harmony mixes in the components; None: not mixed."""
    doublets: bool = False
    """Whether the doublets that scrublet finds, in each batch, are left out."""

    def __post_init__(self) -> None:
        """Raise DataError if a setting is out of range, naming the setting."""
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
    """Name of the space to embed, among :attr:`~.read_result.ReadResult.spaces`; for a
    table, names of columns with commas between them; None for the space that suits a
    map best."""
    second_space: str | None = None
    """Name of a space of an AnnData that is read beside the first, to mix both."""
    columns: tuple[str, ...] | None = None
    """Columns of the space to embed; None for all."""
    missing: Missing = "error"
    """Whether a NaN or infinite value raises an error, or its row is left out
    ("drop")."""
    transposed: bool = False
    """Whether the columns of a table are the rows to embed."""
    id_column: str | None = None
    """Column of a table with the label of each row's object in a label image; rows
    about the background, 0, are left out."""
    recipe: Recipe | None = None
    """Recipe that computes principal components of raw counts; None: not applied."""
    batch_key: str | None = None
    """Column of batches that Harmony mixes in components of the file."""
    gene_kind: GeneKind | None = None
    """Kind of values of the genes: "counts", "logarithms" of counts, or other "values";
    None: guessed from the values."""
    roles: Mapping[str, Role] = field(default_factory=dict, hash=False)
    """Roles of metadata columns by name; other columns get roles by type and name."""

    def __post_init__(self) -> None:
        """Raise DataError if an option has no valid value; make ``columns`` a tuple."""
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
