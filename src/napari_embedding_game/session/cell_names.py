"""Lists of cell names, such as barcodes, of selected points, and points by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import count_text, list_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.session import Session

_ENDS = "\t,;"
"""Characters that end the first column of a copied table."""


def list_selected_names(session: Session) -> str:
    """Return the names of the selected points as text, one name per line.

    Raises DataError: there are no data, or no point is selected.
    """
    names, rows = session.require_data().obs.index, session.selection.rows
    if not len(rows):
        raise DataError("No point is selected: click a cluster, or draw around points.")
    return "".join(f"{name}\n" for name in names[rows])


def find_named_points(dataset: Dataset, text: str) -> tuple[NDArray[np.bool_], str]:
    """Return a mask (n,) of the points that a list names, and a sentence on the result.

    The sentence counts the points, and says which names were not found.

    ``text``: one name per line, or rows of a table whose first column holds the names.
    A whole line is tried as a name before its first column is; quotes, empty lines and
    repeated names are ignored.

    Raises DataError: no point has any of the names.
    """
    lines = (line.strip() for line in text.splitlines())
    wanted = list(dict.fromkeys(line.strip("\"'") for line in lines if line))
    index = pd.Index(wanted, dtype=object)
    are_whole = index.isin(dataset.obs.index)
    firsts = [_cut_first_column(line) for line in wanted]
    names = index.where(are_whole, pd.Index(firsts, dtype=object)).unique()
    are_there = names.isin(dataset.obs.index)
    if not are_there.any():
        raise DataError(
            f"No {dataset.row_noun} on the map is called {list_text(list(names), 3)}: "
            f"give a name such as {dataset.obs.index[0]} in each line."
        )
    points = np.asarray(dataset.obs.index.isin(names))
    found = f"{count_text(int(points.sum()), dataset.row_noun)} added by name."
    missing = list(map(str, names[~are_there]))
    if missing:
        are = "is" if len(missing) == 1 else "are"
        found += (
            f" {len(missing):,} of {len(names):,} names {are} not on the map: "
            f"{list_text(missing, 3)}."
        )
    return points, found


def _cut_first_column(line: str) -> str:
    """Return a line up to its first tab, comma or semicolon, stripped of quotes."""
    for end in _ENDS:
        line = line.partition(end)[0]
    return line.strip().strip("\"'")
