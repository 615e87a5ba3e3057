"""What is painted over the map: one widget, and a painter for each kind of thing.

Text on napari's own layers is laid out anew, letter by letter in Python, with each
step of the wheel, and knows no outline.  A layer for a line would take a part of
napari's grid, and be stored.  A widget over the canvas costs nothing while it is not
painted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QEvent, QObject, QPointF, QRectF, Qt
from qtpy.QtGui import (
    QColor,
    QImage,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from qtpy.QtWidgets import QWidget
from superqt.utils import qimage_to_array

from napari_embedding_game.ui.canvas.projection import Projection, view_changes
from napari_embedding_game.ui.canvas.scene import Scene
from napari_embedding_game.ui.compat import canvas_widget, show_status_as_text
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.theme import canvas_color_events, is_canvas_light

Paint = Callable[[QPainter, Projection], None]
"""A painter over a map, given its projection."""
COLOR, VEIL = QColor("#ffb000"), QColor(255, 176, 0, 60)
HALO, WIDTH = QColor(0, 0, 0, 90), 2.0
"""Of lasso and brush, in pixels of the canvas."""


def draw_line(
    painter: QPainter, line: NDArray[np.floating], radius: float | None, color: QColor
) -> None:
    """Fill a closed line of pixels (V, 2), or, with a radius, draw one so wide.

    Where a closed line crosses itself, a part that it goes around twice is outside.
    """
    painter.setPen(Qt.PenStyle.NoPen)
    if radius is None:
        painter.setBrush(color)
        painter.drawPolygon([QPointF(*at) for at in line])
        return
    path = QPainterPath(QPointF(*line[0]))
    for at in line[1:] if len(line) > 1 else line + 0.01:
        path.lineTo(QPointF(*at))
    styles, caps = Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap
    pen = QPen(color, 2 * radius, styles, caps, Qt.PenJoinStyle.RoundJoin)
    painter.strokePath(path, pen)


def line_mask(
    line: NDArray[np.floating], width: int, height: int, radius: float | None = None
) -> NDArray[np.bool_]:
    """Return the pixels of a canvas that :func:`draw_line` covers: (h, w)."""
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.black)
    painter = QPainter(image)
    draw_line(painter, line, radius, QColor(Qt.GlobalColor.white))
    painter.end()
    mask: NDArray[np.bool_] = qimage_to_array(image)[..., 0] > 0
    return mask


class MapOverlay(QWidget):
    """Lies over the canvas while there is something to paint; no mouse meets it."""

    def __init__(self, scene: Scene, dock: QWidget) -> None:
        super().__init__(dock)
        self.hide()
        self.scene, self.dock, self._layers = scene, dock, scene.layers
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._canvas: QWidget | None = None
        self._painters: dict[Paint, bool] = {}
        """Whether each has something to paint, the last above all others."""
        self._painted: Projection | None = None
        """How the map was drawn when it was painted over last."""
        self.grid_offset = QPointF()
        """How far from the map another one is drawn than without napari's grid."""
        self.line: list[NDArray[np.floating]] = []
        """Pixels (x, y) of the line that follows the mouse, while there is one."""
        self.ring: tuple[NDArray[np.floating], float] | None = None
        """Pixel (x, y) and radius of the brush, while it is over the canvas."""
        self.connections = Connections(dock)
        """Of this and its painters."""
        viewer, hear = scene.viewer, self.connections.connect
        hear(self.refresh, scene.drawn, *view_changes(viewer))
        hear(self.refresh, *canvas_color_events(viewer))
        self.connections.call(self._detach)

    @property
    def canvas(self) -> QWidget | None:
        """What this lies on, once it is needed; None where there is no window."""
        if self._canvas is None:
            self._canvas = canvas_widget(self.dock)
            if self._canvas is not None:
                self.setParent(self._canvas)
                self.setGeometry(self._canvas.rect())
                self._canvas.installEventFilter(self)
                show_status_as_text(self._canvas)
        return self._canvas

    @property
    def is_on_light(self) -> bool:
        """Whether the canvas is light."""
        return is_canvas_light(self.scene.viewer)

    def want(self, paint: Paint, is_painted: bool) -> None:
        """Paint this from now on, above what came before it, or no longer."""
        self._painters[paint] = is_painted
        self.refresh()

    def refresh(self, event: object = None) -> None:
        """Paint what is on now, where the map is drawn now."""
        is_free = bool(self.line) or self.ring is not None
        is_seen = is_free or (
            any(self._painters.values()) and self._layers.projection() is not None
        )
        if self.canvas is not None and (is_seen or self.isVisible()):
            self.setVisible(is_seen)
            self.raise_()
            self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the canvas: its size, and where it draws the map."""
        if event.type() == QEvent.Type.Resize and isinstance(watched, QWidget):
            self.setGeometry(watched.rect())
        elif event.type() == QEvent.Type.Leave and self.ring is not None:
            self.ring = None
            self.refresh()
        elif event.type() == QEvent.Type.Paint and self.isVisible():
            self._update_if_moved()
        return False

    def _update_if_moved(self) -> None:
        """Paint again if the map has moved on the canvas."""
        new, old = self._layers.projection(), self._painted
        if new is not old and (new is None or not new.are_same_objects(old)):
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._painted = projection = self._layers.projection()
        if projection is not None:
            cell = QRectF(*projection.cell)
            self.grid_offset = QPointF(*self._layers.grid_offset())
            painter.setClipRect(cell.united(cell.translated(self.grid_offset)))
            for paint, is_painted in self._painters.items():
                if is_painted:
                    painter.save()
                    paint(painter, projection)
                    painter.restore()
            painter.setClipping(False)
        pixel, radius = self.ring or (None, None)
        if self.line:
            draw_line(painter, np.array(self.line), radius, VEIL)
            if pixel is None:
                painter.setPen(QPen(COLOR, WIDTH))
                painter.drawPolygon([QPointF(*at) for at in self.line])
        if pixel is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            for color, width in ((HALO, 2 * WIDTH), (COLOR, WIDTH)):
                painter.setPen(QPen(color, width))
                painter.drawEllipse(QPointF(*map(float, pixel)), radius, radius)
        painter.end()

    def _detach(self) -> None:
        """Leave the canvas for good."""
        if self._canvas is not None:
            self._canvas.removeEventFilter(self)
        self.hide()
        self.setParent(None)  # at once: the canvas may go before the next event
        self.deleteLater()
