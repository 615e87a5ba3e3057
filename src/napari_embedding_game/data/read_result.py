"""What comes of reading a file once: its data, and what else it could have given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from napari_embedding_game.data.dataset import Dataset


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A dataset with the choices that its file offers."""

    dataset: Dataset
    spaces: Sequence[str]
    """What can be embedded, the default first."""
    columns: Sequence[str]
    """All columns of the space that was read, of which some may be chosen."""
    quality: pd.DataFrame | None = None
    """:func:`~.cell_quality` of every cell that was read, where it has raw counts."""
    has_genes_in_rows: bool = False
    """Whether the file is a table whose rows look like genes, and may be transposed."""
