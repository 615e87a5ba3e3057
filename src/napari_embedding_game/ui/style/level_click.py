"""Select the points of a level by a click in a legend or bar chart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtGui import QMouseEvent

from napari_embedding_game.session.selection import Selection

CLICK_TIP = "Click to select all its points; with Shift or Ctrl, to add them."
_ADDING = (
    Qt.KeyboardModifier.ShiftModifier
    | Qt.KeyboardModifier.ControlModifier
    | Qt.KeyboardModifier.MetaModifier
)


def adds(event: QMouseEvent) -> bool:
    """Return whether a click adds to what is selected."""
    return bool(event.modifiers() & _ADDING)


def select_rows(
    selection: Selection, rows: NDArray[np.bool_], *, is_added: bool
) -> None:
    """Select these (n,) points, or add them; those that all are selected go."""
    if not rows.any():
        return
    if not is_added:
        selection.select_points(rows)
    else:
        has_all = selection.points[rows].all()
        selection.select_points(rows, "remove" if has_all else "add")
