"""Paint captions of panels, and marks of dragged, pinned and held points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QPainter, QPen

from napari_embedding_game.session.panels import GAP, Panels
from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.canvas.pick import AnyLayers
from napari_embedding_game.ui.canvas.projection import CanvasProjection
from napari_embedding_game.ui.style.halo_text import (
    ON_DARK,
    ON_LIGHT,
    elide_text,
    measure_half_size,
    paint_text_with_halo,
)

HAND_ON_DARK, HAND_ON_LIGHT = QColor(94, 214, 240), QColor(0, 92, 122)
LINE, PIN, STEM, HELD = 1.6, 5.0, 14.0, 6.0
"""Width of a line, radius of a pin's head, height of the head above its point, and side
of the square around a held point, in pixels."""
MAX_HELD = 60
"""About so many held points are marked: more marks would hide their colours."""


def add_caption_painters(overlay: MapOverlay) -> None:
    """Add painters to the overlay that caption each panel with its group or map.

    The panels are those of the map, and those of the tissue.
    """
    scene, view = overlay.scene, overlay.scene.session.view
    _add_caption_painter(overlay, scene.map_layers, lambda: view.panels)
    of_tissue = lambda: view.tissue and view.tissue.panels  # noqa: E731
    _add_caption_painter(overlay, scene.tissue_layers, of_tissue)


def _add_caption_painter(
    overlay: MapOverlay, layers: AnyLayers, find_panels: Callable[[], Panels | None]
) -> None:
    """Add a painter of the panels' captions over layers, active while there are any."""

    def paint_captions(painter: QPainter, projection: CanvasProjection) -> None:
        """Paint title and detail above each panel, on two lines where one is too wide.

        A line wider than its panel is elided.
        """
        if (panels := find_panels()) is None:  # a signal follows
            return
        colors = ON_LIGHT if overlay.is_on_light_canvas else ON_DARK
        half = panels.width * (1 + GAP) / 2 * panels.facing[0]
        ends = projection.to_pixels(panels.positions[0] + np.stack([-half, half]))
        width = float(np.abs(ends[1] - ends[0]).max())
        pixels = projection.to_pixels(panels.positions)
        pixels[1:] += overlay.grid_offset.x(), overlay.grid_offset.y()
        each = zip(panels.captions, pixels.tolist(), strict=True)
        for (title, detail), (x, y) in each:
            if np.isfinite(x + y):
                text = f"{title} · {detail}" if detail else title
                is_short = not detail or 2 * measure_half_size(text, True)[1] <= width
                lines = [(text, True)] if is_short else [(title, True), (detail, False)]
                height = 2 * measure_half_size(title, True)[0]
                room = height * len(lines)
                # The caption is above its panel, or on it where the canvas ends.
                top = max(y - room, min(projection.canvas_box[1], y + room))
                for number, (line, is_bold) in enumerate(lines):
                    at = QPointF(x, top + (number + 0.5) * height)
                    paint_text_with_halo(
                        painter, at, elide_text(line, is_bold, width), is_bold, colors
                    )

    def update_painter() -> None:
        overlay.set_painter(paint_captions, find_panels() is not None, layers)

    view = overlay.scene.session.view
    overlay.connections.connect(update_painter, view.panels_changed)
    update_painter()


def add_hand_mark_painter(overlay: MapOverlay) -> None:
    """Add a painter to the overlay that marks dragged, pinned and held points.

    A dotted line goes from dragged or pinned points to the mouse or pin.  Pinned
    landmarks have a pin, too, and held points a square.  Panels have no marks.
    """
    session = overlay.scene.session

    def paint_hand_marks(painter: QPainter, projection: CanvasProjection) -> None:
        """Paint squares of about ``MAX_HELD`` points a hold, then lines, then pins."""
        layout, forces = session.view.layout, session.hand.forces
        if layout is None or layout.panel_of_points is not None:
            return
        snapshot = layout.snapshot
        color = HAND_ON_LIGHT if overlay.is_on_light_canvas else HAND_ON_DARK
        painter.setPen(QPen(color, 1.0))
        for hold in forces.holds:
            marked = hold.rows[:: max(1, len(hold.rows) // MAX_HELD)]
            square = QRectF(-HELD / 2, -HELD / 2, HELD, HELD)
            pixels = _find_visible_pixels(projection, snapshot.embedding[marked])
            painter.drawRects([square.translated(pixel) for pixel in pixels])
        pins = [h.place for h in forces.landmarks if h.is_pinned]
        for spring in forces.springs:
            middle = snapshot.embedding[spring.rows].mean(axis=0, dtype=float)
            ends = _find_visible_pixels(projection, middle) + _find_visible_pixels(
                projection, spring.place
            )
            painter.setPen(QPen(color, LINE, Qt.PenStyle.DotLine))
            if len(ends) == 2:
                painter.drawLine(*ends)
                painter.setPen(QPen(color, LINE))
                if not spring.is_pinned:
                    painter.drawEllipse(ends[1], PIN, PIN)
            pins += [spring.place] if spring.is_pinned else []
        painter.setPen(QPen(color, LINE))
        painter.setBrush(color)
        for pin in pins:
            for pixel in _find_visible_pixels(projection, pin):
                head = pixel + QPointF(STEM / 3, -STEM)
                painter.drawLine(pixel, head)
                painter.drawEllipse(head, PIN, PIN)

    def update_painter() -> None:
        overlay.set_painter(paint_hand_marks, bool(session.hand.forces))

    overlay.connections.connect(update_painter, session.hand.changed)
    update_painter()


def _find_visible_pixels(
    projection: CanvasProjection, positions: object
) -> list[QPointF]:
    """Return the pixels of positions (n, d) or (d,) that are in front of the camera."""
    pixels = projection.to_pixels(np.atleast_2d(np.asarray(positions)))
    return [QPointF(x, y) for x, y in pixels.tolist() if np.isfinite(x + y)]
