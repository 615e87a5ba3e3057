"""Select the points of a level by a click in a legend or bar chart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtGui import QMouseEvent

from napari_embedding_game.session.selection import Selection

CLICK_TIP = "Click to select all its points; with Shift or Ctrl, to add them."


def adds(event: QMouseEvent) -> bool:
    """Return whether a click adds to what is selected."""
    keys = Qt.KeyboardModifier
    adding = keys.ShiftModifier | keys.ControlModifier | keys.MetaModifier
    return bool(event.modifiers() & adding)


def select_rows(
    selection: Selection, rows: NDArray[np.bool_], *, is_added: bool
) -> None:
    """Select these (n,) points, or add them; those that all are selected go."""
    if not rows.any():
        return
    has_all = is_added and selection.points[rows].all()
    mode = "remove" if has_all else "add" if is_added else "replace"
    selection.select_points(rows, mode)
