"""What is painted over the map: one widget, and a painter for each kind of thing."""

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

    from napari_embedding_game.ui.workspace import Workspace

Paint = Callable[[QPainter, Projection], None]
"""Paints over a map that is drawn so; nothing where there is nothing to be told."""


class MapOverlay(QObject):
    """Paints over the map, for as long as there is something to paint.

    Parameters
    ----------
    viewer : napari.Viewer
    workspace : Workspace
    layers : MapLayers
    dock : QWidget
        Any widget in napari's window.
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        workspace: Workspace,
        layers: MapLayers,
        dock: QWidget,
    ) -> None:
        super().__init__(dock)
        self._viewer = viewer
        self._layers = layers
        self._dock = dock
        self._painters: list[tuple[Paint, Callable[[], bool]]] = []
        self._watched: Points | None = None
        self.widget: PaintedOverlay | None = None
        """Made when it is first wanted."""
        self._painted: Projection | None = None
        """How the map was drawn when it was painted over last."""
        session, dims = workspace.session, viewer.dims.events
        self._connections = Connections(self)
        self._connections.call(self._drop)
        self._connections.connect_all(view_changes(viewer), self.repaint)
        self._connections.connect_all(
            (
                session.selection.changed,
                session.hand.changed,
                session.progressed,
                session.state_changed,
                session.dataset_changed,
                session.restored,
                session.looked_back,
                session.comparing.changed,
                session.comparing.moved,
                session.comparing.laid_out,
                session.splitting.moved,
                session.hiding.changed,
                workspace.linked.changed,  # the map may make room
                dims.order,  # also then
                dims.ndim,
            ),
            self.update,
        )
        self._of_points = Connections(self)

    @property
    def is_on_light(self) -> bool:
        """Whether the canvas is light."""
        return bool(self._viewer.theme == "light")

    def add(self, paint: Paint, is_wanted: Callable[[], bool]) -> None:
        """Have this painted above all others while it is wanted."""
        self._painters.append((paint, is_wanted))
        self.update()

    def update(self, event: object = None) -> None:
        """Paint what has changed."""
        points = self._layers.points
        if points is not self._watched:
            self._of_points.close()
            self._of_points.connect_all(_of_layer(points), self.repaint)
            self._watched = points
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

    def _is_wanted(self) -> bool:
        return any(is_wanted() for _, is_wanted in self._painters)

    def _is_outdated(self) -> bool:
        """Whether the map is drawn in another place than what is painted."""
        return not _same(self._layers.projection(), self._painted)

    def _paint(self, painter: QPainter) -> None:
        self._painted = drawn = self._layers.projection()
        if drawn is not None:
            painter.setClipRect(QRectF(*drawn.cell))
            for paint, is_wanted in self._painters:
                if is_wanted():
                    painter.save()
                    paint(painter, drawn)
                    painter.restore()

    def _drop(self) -> None:
        if self.widget is not None:
            self.widget.close()
            self.widget = None


class PaintedOverlay(CanvasOverlay):
    """The widget: it is painted with the canvas whenever that has moved."""

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
