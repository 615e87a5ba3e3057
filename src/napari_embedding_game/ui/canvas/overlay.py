"""A widget over the canvas, on which painters paint names, captions, marks and lines.

napari lays out a layer's text again, letter by letter in Python, with each step of the
wheel, and without an outline.  A layer for a line would take a box of napari's grid,
and would be saved.  A widget over the canvas costs nothing while it is hidden.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from napari.settings import get_settings
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

from napari_embedding_game.ui.canvas.pick import AnyLayers
from napari_embedding_game.ui.canvas.projection import (
    CanvasProjection,
    list_view_change_events,
)
from napari_embedding_game.ui.canvas.scene import MapScene
from napari_embedding_game.ui.compat import (
    find_canvas_widget,
    show_status_as_plain_text,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.theme import (
    is_canvas_light,
    list_canvas_color_events,
)

PaintFunction = Callable[[QPainter, CanvasProjection], None]
"""Paints over the map or the tissue, given its projection."""
COLOR, VEIL = QColor("#ffb000"), QColor(255, 176, 0, 60)
HALO, WIDTH = QColor(0, 0, 0, 90), 2.0
"""Colours of lasso and brush, and the width of their lines in pixels."""


def paint_line_or_polygon(
    painter: QPainter, line: NDArray[np.floating], radius: float | None, color: QColor
) -> None:
    """Fill a closed line of pixels (V, 2); with a radius, stroke the open line instead.

    An area that a closed line goes around twice is not filled.  An open line of one
    pixel is a disc.
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
    """Return the mask (height, width) of pixels inside a line of pixels (V, 2).

    With a radius it is True within that radius of the open line.
    """
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.black)
    painter = QPainter(image)
    paint_line_or_polygon(painter, line, radius, QColor(Qt.GlobalColor.white))
    painter.end()
    mask: NDArray[np.bool_] = qimage_to_array(image)[..., 0] > 0
    return mask


class MapOverlay(QWidget):
    """Lies over the canvas while there is something to paint; the mouse passes it."""

    def __init__(self, scene: MapScene, dock: QWidget) -> None:
        super().__init__(dock)
        self.hide()
        self.scene, self.dock, self._layers = scene, dock, scene.map_layers
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._canvas: QWidget | None = None
        self._painters: dict[PaintFunction, tuple[bool, AnyLayers]] = {}
        """Whether each painter has something to paint, and over which layers; the last
        paints on top."""
        self._painted: list[CanvasProjection | None] = []
        """The projections of map and tissue when the overlay was last painted."""
        self.grid_offset = QPointF()
        """Shift in pixels of the compared map in napari's grid."""
        self.line: list[NDArray[np.floating]] = []
        """Pixels (x, y) of the line that is traced; empty without a gesture."""
        self.ring: tuple[NDArray[np.floating], float] | None = None
        """Pixel (x, y) and radius of the brush, while it is over the canvas."""
        self.connections = Connections(dock)
        """Connections of the overlay and its painters."""
        viewer, hear = scene.viewer, self.connections.connect
        hear(self.refresh, scene.map_rendered, *list_view_change_events(viewer))
        hear(self.refresh, *list_canvas_color_events(viewer))
        hear(self.refresh, get_settings().appearance.events.font_size)
        self.connections.add_cleanup(self._remove_from_canvas)

    @property
    def canvas(self) -> QWidget | None:
        """The widget of the canvas; None where there is no window.

        The first access puts the overlay onto the canvas.
        """
        if self._canvas is None:
            self._canvas = find_canvas_widget(self.dock)
            if self._canvas is not None:
                self.setParent(self._canvas)
                self.setGeometry(self._canvas.rect())
                self._canvas.installEventFilter(self)
                show_status_as_plain_text(self._canvas)
        return self._canvas

    @property
    def projection(self) -> CanvasProjection | None:
        """The projection of the map, else of the tissue; None if neither is drawn."""
        return next(filter(None, self._find_projections()), None)

    @property
    def is_on_light_canvas(self) -> bool:
        """Whether the canvas is light."""
        return is_canvas_light(self.scene.viewer)

    def set_painter(
        self, painter: PaintFunction, is_active: bool, layers: AnyLayers | None = None
    ) -> None:
        """Add a painter above the former ones, or turn it on or off, and refresh.

        It paints over ``layers``, by default the map's, and receives their projection.
        """
        self._painters[painter] = is_active, layers or self._layers
        self.refresh()

    def _find_projections(self) -> list[CanvasProjection | None]:
        """Return the present projections of map and tissue, None where not visible."""
        scene = self.scene
        return [layers.projection() for layers in (self._layers, scene.tissue_layers)]

    def refresh(self, event: object = None) -> None:
        """Show and repaint the overlay, or hide it where there is nothing to paint.

        Painters need their layers to be visible; a line and a ring do not.  Without a
        window nothing is done.
        """
        is_free = bool(self.line) or self.ring is not None
        is_seen = is_free or any(
            is_active and layers.projection() is not None
            for is_active, layers in self._painters.values()
        )
        if self.canvas is not None and (is_seen or self.isVisible()):
            self.setVisible(is_seen)
            self.raise_()
            self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow resizing and repainting of the canvas, and drop the ring on leave.

        Return False, so that the canvas handles each event, too.
        """
        if event.type() == QEvent.Type.Resize and isinstance(watched, QWidget):
            self.setGeometry(watched.rect())
        elif event.type() == QEvent.Type.Leave and self.ring is not None:
            self.ring = None
            self.refresh()
        elif event.type() == QEvent.Type.Paint and self.isVisible():
            self._update_if_moved()
        return False

    def _update_if_moved(self) -> None:
        """Request a repaint if the projection of map or tissue has changed."""
        for new, old in zip(self._find_projections(), self._painted, strict=False):
            if new is not old and (new is None or not new.equals(old)):
                self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Run active painters, then paint the traced line and the ring of the brush.

        Painters are clipped to the boxes of their layers, in napari's grid also to that
        of the compared map; none runs while its layers are hidden.
        """
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._painted = self._find_projections()
        for paint, (is_active, layers) in self._painters.items():
            projection = layers.projection() if is_active else None
            if projection is not None:
                box = QRectF(*projection.canvas_box)
                self.grid_offset = QPointF(*layers.find_grid_offset())
                painter.save()
                painter.setClipRect(box.united(box.translated(self.grid_offset)))
                paint(painter, projection)
                painter.restore()
        pixel, radius = self.ring or (None, None)
        if self.line:
            paint_line_or_polygon(painter, np.array(self.line), radius, VEIL)
            if pixel is None:
                painter.setPen(QPen(COLOR, WIDTH))
                painter.drawPolygon([QPointF(*at) for at in self.line])
        if pixel is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            for color, width in ((HALO, 2 * WIDTH), (COLOR, WIDTH)):
                painter.setPen(QPen(color, width))
                painter.drawEllipse(QPointF(*map(float, pixel)), radius, radius)
        painter.end()

    def _remove_from_canvas(self) -> None:
        """Take the overlay off the canvas, and delete it."""
        if self._canvas is not None:
            self._canvas.removeEventFilter(self)
        self.hide()
        self.setParent(None)  # at once, as the canvas may be deleted before an event
        self.deleteLater()
