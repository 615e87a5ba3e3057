"""Write what was found between two groups of points, all columns of the data."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from napari_embedding_game.core.inspect.markers import MarkerTable
from napari_embedding_game.data.export.atomic import whole_or_nothing


def marker_frame(markers: MarkerTable) -> pd.DataFrame:
    """Return a table with the columns of ``scanpy.get.rank_genes_groups_df``.

    ``pct_nz_group`` and ``pct_nz_reference`` are shares of rows above 0, from 0 to 1.
    """
    return pd.DataFrame(
        {
            "names": markers.names,
            "scores": markers.scores,
            "logfoldchanges": markers.logfoldchanges,
            "pvals": markers.pvals,
            "pvals_adj": markers.pvals_adj,
            "pct_nz_group": markers.pts,
            "pct_nz_reference": markers.pts_rest,
        }
    )


def write_markers(markers: MarkerTable, path: Path) -> None:
    """Write :func:`marker_frame` as .csv.

    Raises DataError: ``path`` cannot be written.
    """
    with whole_or_nothing(path) as temporary:
        marker_frame(markers).to_csv(temporary, index=False)
