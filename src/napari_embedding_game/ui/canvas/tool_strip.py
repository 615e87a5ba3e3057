"""Tools in the lower left corner of the map, over the canvas."""

from __future__ import annotations

from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import (
    CanvasBox,
    list_view_change_events,
)
from napari_embedding_game.ui.style.layouts import vertical_box

EDGE = 6
"""Pixels between the strip and the edges of the map's box."""
MAX_HEIGHT = 0.8
"""Part of the height of the map's box that the strip takes at most."""


class ToolStrip(QWidget):
    """Stands over the canvas in a corner of the map, where a map is drawn.

    Parameters
    ----------
    overlay : MapOverlay
        Whose canvas and map the strip belongs to.
    tools : QWidget
        What the strip holds. The strip is shown only while this is.
    """

    def __init__(self, overlay: MapOverlay, tools: QWidget) -> None:
        super().__init__(overlay.dock)
        self.hide()
        self._overlay, self._tools = overlay, tools
        self._box: CanvasBox | None = None
        """The box of the map where the strip was placed; None without a map."""
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setLayout(vertical_box(tools, margins=(4, 4, 4, 4)))
        tools.installEventFilter(self)
        scene = overlay.scene
        hear = overlay.connections.connect
        hear(
            self.update_place,
            scene.map_rendered,
            *list_view_change_events(scene.viewer),
        )
        overlay.connections.add_cleanup(self._remove_from_canvas)

    def update_place(self, event: object = None) -> None:
        """Move into the corner of the map's box; hide without a map or without room."""
        canvas, projection = self._overlay.canvas, self._overlay.projection
        if canvas is None:
            return
        if self.parent() is not canvas:
            self.setParent(canvas)
            canvas.installEventFilter(self)
        self._box = None if projection is None else projection.canvas_box
        is_shown = projection is not None and not self._tools.isHidden()
        if projection is not None and is_shown:
            x, y, width, height = projection.canvas_box
            self.adjustSize()
            is_shown = self.width() <= width - 2 * EDGE
            is_shown &= self.height() < MAX_HEIGHT * height
            self.move(round(x) + EDGE, round(y + height) - self.height() - EDGE)
        self.setVisible(is_shown)
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the tools when they are shown, hidden, or get other texts.

        With a canvas that is painted, follow the map's box, of whose changes napari
        does not always tell.  Return False, so that the watched handles each event.
        """
        kinds = QEvent.Type
        if watched is not self._tools:
            if event.type() == kinds.Paint:
                projection = self._overlay.projection
                box = None if projection is None else projection.canvas_box
                if box != self._box:
                    self.update_place()
            return False
        moved = [kinds.ShowToParent, kinds.HideToParent]
        moved += [kinds.LayoutRequest] * self.isVisible()
        if event.type() in moved:
            self.update_place()
        return False

    def _remove_from_canvas(self) -> None:
        """Take the strip off the canvas, and delete it."""
        if (canvas := self.parentWidget()) is not None:
            canvas.removeEventFilter(self)
        self.hide()
        self.setParent(None)  # at once, as the canvas may be deleted before an event
        self.deleteLater()
