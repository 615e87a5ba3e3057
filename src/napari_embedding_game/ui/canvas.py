"""Napari's canvas as Qt sees it: to lay something over it, in pixels.

Text on napari's own layers is laid out anew, letter by letter in Python, with each
step of the wheel, and knows no outline.  A widget over the canvas costs nothing
while it is not painted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtOpenGLWidgets import QOpenGLWidget
from qtpy.QtWidgets import QMainWindow, QWidget


def canvas_of(widget: QWidget) -> QWidget | None:
    """Return the canvas of the napari window that a docked widget is in.

    None while it is in no window, or where napari draws without one.
    """
    top = widget
    while (parent := top.parentWidget()) is not None:
        top = parent
    center = top.centralWidget() if isinstance(top, QMainWindow) else None
    canvas: QWidget | None = center.findChild(QOpenGLWidget) if center else None
    return canvas


def camera_of(viewer: Any) -> Any:
    """Return the camera of a viewer; napari 0.9 has moved it."""
    return getattr(viewer, "scene", viewer).camera


def to_pixels(
    world: NDArray[np.floating], camera: Any, width: float, height: float
) -> NDArray[np.float64]:
    """Return where world positions (n, 2) are drawn: (n, 2) of x and y.

    Parameters
    ----------
    world : array
        Row and column.
    camera : napari.components.Camera
    width, height : float
        Of the canvas, in the pixels that Qt counts.
    """
    ways = getattr(camera, "orientation2d", ("down", "right"))
    turn = np.array([1 if way in ("down", "right") else -1 for way in map(str, ways)])
    offset = (np.asarray(world) - camera.center[-2:]) * camera.zoom * turn
    return offset[:, ::-1] + np.array([width, height]) / 2


class Sheet(QWidget):
    """A widget as large as the canvas it lies on; mouse and keys pass through."""

    def __init__(self, canvas: QWidget) -> None:
        super().__init__(canvas)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setGeometry(canvas.rect())
        canvas.installEventFilter(self)

    def take_off(self) -> None:
        """Leave the canvas for good."""
        canvas = self.parentWidget()
        if canvas is not None:
            canvas.removeEventFilter(self)
        self.hide()
        self.setParent(None)  # at once: the canvas may go before the next event
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the size of the canvas, and let every event through."""
        if event.type() == QEvent.Type.Resize and isinstance(watched, QWidget):
            self.setGeometry(watched.rect())
        return False
