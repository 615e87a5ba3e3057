"""Mix batches by Harmony, and find the columns that can name the batches.

Korsunsky et al., Nature Methods 16, 1289 (2019), as the package harmonypy computes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.column_names import is_cell_type_name
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError, check_installed
from napari_embedding_game.data.roles import MAX_GROUPS
from napari_embedding_game.data.stages import Stage, Stages

SEED = 0
_MIN_CELLS = 30
"""Of all levels together: harmonypy makes a cluster of 30 cells on average."""
_CELLS_A_LEVEL = 5


def find_batch_columns(dataset: Dataset) -> list[str]:
    """Return the metadata columns that can name batches.

    Columns named as samples are first, columns named as cell types last.
    """
    usable = (x for x in dataset.level_columns if _can_be_batches(dataset.obs[x]))
    return dataset.sort_samples_first(usable)


def describe_mixing(key: str) -> str:
    """Return sentences that say what mixing the batches of column `key` did.

    They warn if the name of the column is one of cell types.
    """
    warning = (
        f' "{key}" seems to tell kinds of cells: these were laid onto each other, and '
        "the map cannot show them apart. Choose the column of the samples, or none."
    )
    return (
        f'Harmony mixed the levels of "{key}" in the components: what they differ in '
        "throughout is gone from the map, while the genes are as they were."
        f"{warning if is_cell_type_name(key) else ''}"
    )


def check_batches(
    dataset: Dataset, key: str, kept: NDArray[np.bool_] | None = None
) -> None:
    """Raise DataError unless column `key` of the metadata can name batches.

    It is raised, too, if harmonypy is not installed. ``kept``: (n,) mask of the cells
    to check; None for all cells.
    """
    check_installed("harmonypy", "Harmony", ", or prepare the counts without it")
    obs = dataset.obs if kept is None else dataset.obs[kept]
    if key not in obs or not _can_be_batches(obs[key]):
        others = ", ".join(find_batch_columns(dataset)) or "no column"
        raise DataError(
            f'"{key}" of {dataset.name} cannot name batches: Harmony needs '
            f"{_MIN_CELLS} cells or more, each with one of 2 to {MAX_GROUPS} levels, "
            f"of {_CELLS_A_LEVEL} cells on average. Choose {others}."
        )


def _can_be_batches(column: pd.Series) -> bool:
    """Return whether each cell has a level, and the levels are few and large enough.

    That is at least 30 cells, and 2 to 500 levels of at least 5 cells on average.
    """
    n_most = min(MAX_GROUPS, len(column) / _CELLS_A_LEVEL)
    has_cells = len(column) >= _MIN_CELLS and column.notna().all()
    return bool(has_cells and 2 <= column.nunique() <= n_most)


def mix_batches(
    components: NDArray[Any], obs: pd.DataFrame, key: str
) -> Stages[NDArray[np.float32]]:
    """Return components (n, D), float32, with batches of column `key` mixed, in stages.

    Harmony moves the cells of each batch, in soft clusters, until each cluster has
    cells of all batches. The result is that of harmonypy's defaults and seed 0, for any
    number of threads.

    ``obs`` (n rows) must have passed :func:`check_batches`. Raises DataError if
    harmonypy fails.
    """
    yield Stage("Mixing batches by Harmony")
    from harmonypy import run_harmony

    X = np.asarray(components, dtype=np.float64)
    try:
        mixed = run_harmony(X, obs[[key]], [key], random_state=SEED, verbose=False)
    except Exception as error:  # its libraries raise any type
        raise DataError(
            f'Harmony could not mix by "{key}" ({error}): choose another column, or '
            "none."
        ) from error
    return np.ascontiguousarray(mixed.Z_corr, dtype=np.float32)
