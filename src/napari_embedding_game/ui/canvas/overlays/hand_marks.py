"""Draw what a hand does to the map: pins and held points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QPainter, QPen

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.overlays.map_overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import Projection

ON_DARK, ON_LIGHT = QColor(94, 214, 240), QColor(0, 92, 122)
WIDTH = 1.6
"""Canvas pixels of a line."""
PIN, STEM = 5.0, 14.0
"""Radius of a pin's head, and how high it stands above its place, in pixels."""
HELD = 6.0
"""Side of the square around a held point, in pixels."""
MOST_HELD = 60
"""Points that are marked as held, about: more would hide their colours."""


def add_hand_marks(overlay: MapOverlay, session: Session, layers: MapLayers) -> None:
    """Show what is dragged, pinned and held, while it is."""

    def is_wanted() -> bool:
        is_whole = session.snapshot is not None and not session.splitting.is_shown
        return bool(session.hand.forces) and is_whole

    def pixels_of(
        drawn: Projection,
        places: NDArray[np.floating] | list[NDArray[np.floating]],
    ) -> list[QPointF]:
        # One by one: while the map gets more or fewer dimensions they differ in these.
        world = [layers.to_world(np.asarray(place)) for place in places]
        pixels = drawn.to_pixels(np.array(world))
        return [QPointF(x, y) for x, y in pixels.tolist() if np.isfinite(x + y)]

    def paint(painter: QPainter, drawn: Projection) -> None:
        snapshot, forces = session.drawn, session.hand.forces
        if snapshot is None:
            return
        color = ON_LIGHT if overlay.is_on_light else ON_DARK
        for hold in forces.holds:
            some = hold.rows[:: max(1, len(hold.rows) // MOST_HELD)]
            _paint_held(painter, pixels_of(drawn, snapshot.embedding[some]), color)
        pins = [np.array(h.place) for h in forces.landmarks if h.is_pinned]
        if pins:
            _paint_pins(painter, pixels_of(drawn, pins), color)
        for spring in forces.springs:
            middle = snapshot.embedding[spring.rows].mean(axis=0, dtype=float)
            pixels = pixels_of(drawn, [middle, np.array(spring.place)])
            _paint_spring(painter, pixels, color, spring.is_pinned)

    overlay.add(paint, is_wanted)


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
