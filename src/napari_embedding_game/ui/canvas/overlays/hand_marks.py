"""Draw what a hand does to the map: pins and held points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QPainter, QPen
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.overlays.map_overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import Projection
from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

ON_DARK, ON_LIGHT = QColor(94, 214, 240), QColor(0, 92, 122)
WIDTH = 1.6
"""Canvas pixels of a line."""
PIN, STEM = 5.0, 14.0
"""Radius of a pin's head, and how high it stands above its place, in pixels."""
HELD = 6.0
"""Side of the square around a held point, in pixels."""
MOST_HELD = 60
"""Points that are marked as held, about: more would hide their colours."""


class HandMarks(QObject):
    """Shows what is dragged, pinned and held, while it is.

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
        self._session = session = workspace.session
        self._layers = layers
        self._overlay = MapOverlay(viewer, layers, dock, self._paint, self._is_wanted)
        self._connections = Connections()
        self._connections.connect_all(
            (
                session.hand.changed,
                session.progressed,
                session.state_changed,
                session.looked_back,
                session.restored,
                session.comparing.moved,
                session.comparing.laid_out,
                session.splitting.moved,
                workspace.linked.changed,  # the map may make room
                viewer.dims.events.order,  # also then
                viewer.dims.events.ndim,
            ),
            self._update,
        )
        self._update()

    def close(self) -> None:
        """Undo the connections to viewer and session; the marks go too."""
        self._connections.close()
        self._overlay.close()

    @property
    def overlay(self) -> QWidget | None:
        """What the marks are drawn on, once there are some."""
        return self._overlay.widget

    # Inside

    def _is_wanted(self) -> bool:
        session = self._session
        is_whole = session.snapshot is not None and not session.splitting.is_shown
        return bool(session.hand.forces) and is_whole

    def _update(self, event: object = None) -> None:
        if self._is_wanted() or self._overlay.widget is not None:
            self._overlay.update()

    def _paint(self, painter: QPainter, drawn: Projection) -> None:
        snapshot = self._session.drawn
        if snapshot is None or not self._is_wanted():
            return
        forces = self._session.hand.forces
        color = ON_LIGHT if self._viewer.theme == "light" else ON_DARK
        for hold in forces.holds:
            some = hold.rows[:: max(1, len(hold.rows) // MOST_HELD)]
            _paint_held(painter, self._pixels(drawn, snapshot.embedding[some]), color)
        pins = [np.array(h.place) for h in forces.landmarks if h.is_pinned]
        if pins:
            _paint_pins(painter, self._pixels(drawn, pins), color)
        for spring in forces.springs:
            ends = [_middle(snapshot, spring.rows), np.array(spring.place)]
            pixels = self._pixels(drawn, ends)
            _paint_spring(painter, pixels, color, spring.is_pinned)

    def _pixels(
        self,
        drawn: Projection,
        places: NDArray[np.floating] | list[NDArray[np.floating]],
    ) -> list[QPointF]:
        """Return where places (m, d) of the map are drawn, without unseen ones."""
        # One by one: while the map gets more or fewer dimensions they differ in these.
        world = [self._layers.to_world(np.asarray(place)) for place in places]
        pixels = drawn.to_pixels(np.array(world))
        return [QPointF(x, y) for x, y in pixels.tolist() if np.isfinite(x + y)]


def _middle(snapshot: Snapshot, rows: NDArray[np.integer]) -> NDArray[np.floating]:
    middle: NDArray[np.floating] = snapshot.embedding[rows].mean(axis=0, dtype=float)
    return middle


def _paint_held(painter: QPainter, pixels: list[QPointF], color: QColor) -> None:
    """Draw a square around each held point."""
    painter.setPen(QPen(color, 1.0))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    half = HELD / 2
    painter.drawRects([QRectF(p.x() - half, p.y() - half, HELD, HELD) for p in pixels])


def _paint_spring(
    painter: QPainter, pixels: list[QPointF], color: QColor, is_pinned: bool
) -> None:
    """Draw a dotted line to where points are drawn, and there a ring or a pin."""
    if len(pixels) < 2:
        return
    place = pixels[1]
    painter.setPen(QPen(color, WIDTH, Qt.PenStyle.DotLine))
    painter.drawLine(*pixels)
    if is_pinned:
        _paint_pins(painter, [place], color)
        return
    painter.setPen(QPen(color, WIDTH))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(place, PIN, PIN)


def _paint_pins(painter: QPainter, pixels: list[QPointF], color: QColor) -> None:
    """Draw pins that stick in these places."""
    painter.setPen(QPen(color, WIDTH))
    painter.setBrush(color)
    for place in pixels:
        head = QPointF(place.x() + STEM / 3, place.y() - STEM)
        painter.drawLine(place, head)
        painter.drawEllipse(head, PIN, PIN)
