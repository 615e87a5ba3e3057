"""Rows of the dataset that are dragged with the mouse from one view to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QMimeData, Qt
from qtpy.QtGui import QDrag, QDropEvent, QImage, QPixmap
from qtpy.QtWidgets import QWidget

MIME = "application/x-napari-embedding-game-rows"
SIDE = 48
"""Pixels of the picture beside the mouse."""


def drag_rows(
    source: QWidget, rows: NDArray[np.integer], picture: QImage | None = None
) -> None:
    """Let a person drag rows until the mouse lets go.

    Parameters
    ----------
    source : QWidget
        Where they are dragged from.
    rows : (m,) int
        Rows of the dataset.
    picture : QImage, optional
        Is seen beside the mouse.
    """
    if not len(rows):
        return
    drag = QDrag(source)
    drag.setMimeData(as_mime(rows))
    if picture is not None:
        keep = Qt.AspectRatioMode.KeepAspectRatio
        drag.setPixmap(QPixmap.fromImage(picture).scaled(SIDE, SIDE, keep))
    drag.exec(Qt.DropAction.CopyAction)


def as_mime(rows: NDArray[np.integer]) -> QMimeData:
    """Return rows as what Qt drags."""
    data = QMimeData()
    data.setData(MIME, np.asarray(rows, "<i8").tobytes())
    return data


def dragged_rows(event: QDropEvent) -> NDArray[np.intp] | None:
    """Return the rows that are dragged; None for anything else, or from elsewhere."""
    data = event.mimeData()
    if event.source() is None or data is None or not data.hasFormat(MIME):
        return None
    return np.frombuffer(bytes(data.data(MIME)), "<i8").astype(np.intp)
