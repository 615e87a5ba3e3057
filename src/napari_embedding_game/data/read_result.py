"""Result of reading a source: its dataset, and the choices that it offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.harmony import find_batch_columns
from napari_embedding_game.data.raw_counts import looks_like_counts
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions


@dataclass(frozen=True, eq=False)
class ReadResult:
    """A dataset with the choices that its source offers."""

    dataset: Dataset
    spaces: Sequence[str] = ()
    """Spaces that can be embedded, the default first; one or none: no choice."""
    columns: Sequence[str] = ()
    """All columns of the space that was read, of which some may be chosen."""
    quality: pd.DataFrame | None = None
    """:func:`~.compute_cell_quality` of each cell read, where it has raw counts."""
    is_of_table: bool = False
    """Whether each column can be embedded or be metadata, as in a table."""
    has_genes_in_rows: bool = False
    """Whether the file is a table whose rows look like genes, and may be transposed."""
    image: Any = None
    labels: Any = None
    """Image and labels that were measured, where the source has its own."""
    images: Any = None
    """:class:`~.ExperimentImages` that were measured, for a folder of images."""
    join: Any = None
    """How the rows were joined with label images (:class:`~.Join`), if they were."""
    source: Any = None
    """Source that was read, with ``options``."""
    options: ReadOptions = DEFAULT_OPTIONS
    is_counts: bool = False
    """Whether ``X`` holds raw counts, for which the recipe is meant, or was made of
    counts."""
    batch_columns: Sequence[str] = ()
    """Metadata columns that can name batches for Harmony."""

    def with_counts_and_batches(self) -> ReadResult:
        """Return the result with ``is_counts`` and ``batch_columns`` set.

        There are batch columns only for counts, or components of a file. The kind of
        the expression is computed and cached, too. This inspects all values: call it in
        a background thread.
        """
        dataset, options = self.dataset, self.dataset.read_options
        is_prepared = options is not None and options.recipe is not None
        is_counts = is_prepared or looks_like_counts(dataset)
        _ = dataset.expression.kind  # computes and caches the kind
        is_mixable = is_counts or can_mix_batches(dataset)
        names = find_batch_columns(dataset) if is_mixable else ()
        return replace(self, is_counts=is_counts, batch_columns=names)


def can_mix_batches(dataset: Dataset) -> bool:
    """Return whether ``X`` are components that the file holds, to mix batches in."""
    is_dense = not dataset.is_distances and isinstance(dataset.X, np.ndarray)
    return dataset.space.startswith("obsm[") and is_dense and dataset.X.shape[1] > 1
