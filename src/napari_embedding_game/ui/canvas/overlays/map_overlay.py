"""Paint over the map: an overlay that follows camera, grid and layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Points
from qtpy.QtCore import QEvent, QObject, QRectF
from qtpy.QtGui import QPainter, QPaintEvent
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.projection import (
    CanvasOverlay,
    Projection,
    view_changes,
)
from napari_embedding_game.ui.compat import canvas_widget
from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    import napari

Paint = Callable[[QPainter, Projection], None]


class MapOverlay(QObject):
    """What is painted over the map, for as long as there is something to paint.

    Parameters
    ----------
    viewer : napari.Viewer
    layers : MapLayers
    dock : QWidget
        Any widget in napari's window.
    paint : callable
        Receives a painter, and how the map is drawn.
    is_wanted : callable
        Return whether there is something to paint.
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        layers: MapLayers,
        dock: QWidget,
        paint: Paint,
        is_wanted: Callable[[], bool],
    ) -> None:
        super().__init__(dock)
        self._layers = layers
        self._dock = dock
        self._paint_map = paint
        self._is_wanted = is_wanted
        self._watched: Points | None = None
        self.widget: PaintedOverlay | None = None
        """Made when it is first wanted."""
        self._painted: Projection | None = None
        """How the map was drawn when it was painted over last."""
        self._connections = Connections()
        self._connections.connect_all(view_changes(viewer), self.repaint)
        self._of_points = Connections()

    def close(self) -> None:
        """Undo the connections to the viewer; what was painted goes too."""
        self._connections.close()
        self._of_points.close()
        self._watched = None
        if self.widget is not None:
            self.widget.close()
            self.widget = None

    def update(self) -> None:
        """Paint what has changed."""
        self._watch(self._layers.points)
        if self.widget is None and self._is_wanted():
            canvas = canvas_widget(self._dock)
            if canvas is not None:
                self.widget = PaintedOverlay(canvas, self._paint, self._is_outdated)
        self.repaint()

    def repaint(self, event: object = None) -> None:
        """Paint the same once more, as the map may be drawn in another place."""
        if self.widget is not None:
            is_seen = self._is_wanted() and self._layers.projection() is not None
            if is_seen or self.widget.isVisible():
                self.widget.setVisible(is_seen)
                self.widget.update()

    # Inside

    def _watch(self, points: Points | None) -> None:
        """Hide what is painted with the points that it belongs to."""
        if points is self._watched:
            return
        self._of_points.close()
        self._of_points.connect_all(_of_layer(points), self.repaint)
        self._watched = points

    def _is_outdated(self) -> bool:
        """Whether the map is drawn in another place than what is painted."""
        return not _same(self._layers.projection(), self._painted)

    def _paint(self, painter: QPainter) -> None:
        self._painted = drawn = self._layers.projection()
        if drawn is not None:
            painter.setClipRect(QRectF(*drawn.cell))
            self._paint_map(painter, drawn)


class PaintedOverlay(CanvasOverlay):
    """Overlay of the canvas with a painter of its own."""

    def __init__(
        self,
        canvas: QWidget,
        paint: Callable[[QPainter], None],
        is_outdated: Callable[[], bool],
    ) -> None:
        super().__init__(canvas)
        self._paint = paint
        self._is_outdated = is_outdated

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the canvas: its size, and where it draws the map."""
        if event.type() == QEvent.Type.Paint and self._is_outdated():
            self.update()
        return super().eventFilter(watched, event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint(painter)
        painter.end()


def _of_layer(points: Points | None) -> tuple[Any, ...]:
    """Return what tells that a layer is seen in another way."""
    if points is None:
        return ()
    events = points.events
    moved = (events.scale, events.translate, events.rotate, events.shear)
    return (events.visible, *moved, events.affine)


def _same(one: Projection | None, other: Projection | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.cell == other.cell and np.array_equal(one.matrix, other.matrix)
