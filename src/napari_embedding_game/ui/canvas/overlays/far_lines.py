"""Draw lines from selected points to their neighbours that lie far from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QLineF, QObject
from qtpy.QtGui import QColor, QPainter, QPen
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.inspect.stretch import far_neighbors
from napari_embedding_game.ui.canvas.drawing import RESTING
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.overlays.map_overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import Projection
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.tasks.throttle import throttled

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

MOST_LINES = 120
"""Of more, the longest are drawn."""
ON_DARK, ON_LIGHT = QColor(255, 214, 102), QColor(150, 60, 0)
STRONG, FAINT, FEW = 0.5, 0.22, 40
"""Opacity of a few lines, and of more."""
WIDTH = 1.0
"""Canvas pixels."""
SOON_MS = 60


class FarLines(QObject):
    """Shows where the map is torn: true neighbours of the selection that lie elsewhere.

    The lines are seen while the map rests.

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
        self.pairs: NDArray[np.intp] = np.empty((0, 2), np.intp)
        """(m, 2) the points between which lines are drawn."""
        self._overlay = MapOverlay(
            viewer, layers, dock, self._paint, lambda: bool(len(self.pairs))
        )
        self._soon = throttled(SOON_MS, self.update, self)
        self._connections = Connections()
        self._connections.connect_all(
            (
                session.selection.changed,
                session.state_changed,
                session.dataset_changed,
                session.restored,
                session.looked_back,
                session.comparing.moved,
                session.comparing.laid_out,
                session.splitting.moved,
                session.hiding.changed,
                session.look.events.show_far,
                workspace.linked.changed,  # the map may make room
                viewer.dims.events.order,  # also then
                viewer.dims.events.ndim,
            ),
            self._later,
        )
        self._connections.connect(session.facing_changed, self._overlay.repaint)
        self._later()

    def close(self) -> None:
        """Undo the connections to viewer and session; the lines go too."""
        self._soon.cancel()
        self._connections.close()
        self._overlay.close()

    @property
    def overlay(self) -> QWidget | None:
        """What the lines are drawn on, once there are lines."""
        return self._overlay.widget

    def update(self) -> None:
        """Find the lines that are to be seen."""
        self.pairs = self._find()
        self._overlay.update()

    # Inside

    def _later(self, event: object = None) -> None:
        if len(self.pairs) and self._session.state not in RESTING:
            self.pairs = self.pairs[:0]
            self._overlay.repaint()
        self._soon.throttle()

    def _find(self) -> NDArray[np.intp]:
        session, snapshot = self._session, self._session.drawn
        none = np.empty((0, 2), np.intp)
        if not session.look.show_far or session.state not in RESTING:
            return none
        if snapshot is None or snapshot.neighbors is None or session.selection.is_empty:
            return none
        if self._layers.points is None:
            return none
        rows = session.selection.rows
        pairs = far_neighbors(snapshot.neighbors, snapshot.embedding, rows)
        hidden = session.hiding.mask
        if hidden is not None:
            pairs = pairs[~hidden[pairs].any(axis=1)]
        return pairs[:MOST_LINES]

    def _paint(self, painter: QPainter, drawn: Projection) -> None:
        snapshot = self._session.drawn
        if snapshot is None or not len(self.pairs):
            return
        ends = np.asarray(self._layers.to_world(snapshot.embedding[self.pairs.ravel()]))
        pixels = drawn.to_pixels(ends).reshape(-1, 4)
        color = ON_LIGHT if self._viewer.theme == "light" else ON_DARK
        painter.setPen(QPen(color, WIDTH))
        painter.setOpacity(STRONG if len(self.pairs) <= FEW else FAINT)
        seen = pixels[np.isfinite(pixels).all(axis=1)]
        painter.drawLines([QLineF(*line) for line in seen.tolist()])
