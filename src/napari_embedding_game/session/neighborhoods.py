"""Jobs that compare which groups lie beside each other in tissue with chance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.neighborhoods import (
    Neighborhoods,
    compare_neighborhoods,
)
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.second_space import find_sections


def make_neighborhood_job(
    dataset: Dataset,
    groups: pd.Categorical,
    k: int,
    rows: NDArray[np.integer] | None = None,
) -> Callable[[], Neighborhoods]:
    """Return a job, for any thread, that counts the groups around each group in tissue.

    The dataset has positions in tissue.

    ``groups`` (n,): group of each cell. ``k``: number of nearest cells that are around
    a cell. ``rows``: count only around these cells; None counts around all cells of
    each group.
    """
    assert dataset.tissue is not None
    positions, sections = dataset.tissue.positions, find_sections(dataset)
    around = None if rows is None else np.isin(np.arange(len(groups)), rows)

    def compare_groups() -> Neighborhoods:
        """Count the neighbours, holding the lock of all computing."""
        from napari_embedding_game.core.graph.tissue import find_tissue_neighbors

        with COMPUTING:
            neighbors = find_tissue_neighbors(positions, sections, k)
            codes = np.asarray(groups.codes, np.int64)
            return compare_neighborhoods(neighbors, codes, sections, around=around)

    return compare_groups
