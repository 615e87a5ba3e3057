"""Draw lines from selected points to their neighbours that lie far from them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QLineF, QObject
from qtpy.QtGui import QColor, QPainter, QPen
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.inspect.stretch import (
    far_neighbors,
    usual_squared_length,
)
from napari_embedding_game.ui.canvas.drawing import RESTING
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.overlays.map_overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import Projection
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.tasks.throttle import throttled
from napari_embedding_game.ui.tasks.worker import Latest

if TYPE_CHECKING:
    from napari_embedding_game.ui.workspace import Workspace

logger = logging.getLogger(__name__)

MOST_LINES = 120
"""Of more, the longest are drawn."""
ON_DARK, ON_LIGHT = QColor(255, 214, 102), QColor(150, 60, 0)
STRONG, FAINT, FEW = 0.5, 0.22, 40
"""Opacity of a few lines, and of more."""
WIDTH = 1.0
"""Canvas pixels."""
SOON_MS = 60
MOST_AT_ONCE = 5_000
"""Lines of more points are looked for in a thread of their own."""
NONE = np.empty((0, 2), np.intp)


class FarLines(QObject):
    """Shows where the map is torn: true neighbours of the selection that lie elsewhere.

    The lines are seen while the map rests.

    Parameters
    ----------
    workspace : Workspace
    layers : MapLayers
    overlay : MapOverlay
    dock : QWidget
    """

    def __init__(
        self,
        workspace: Workspace,
        layers: MapLayers,
        overlay: MapOverlay,
        dock: QWidget,
    ) -> None:
        super().__init__(dock)
        self._session = session = workspace.session
        self._layers = layers
        self._overlay = overlay
        self.pairs = NONE
        """(m, 2) the points between which lines are drawn."""
        self._finding = Latest(self, self._show, self._on_failed)
        self._soon = throttled(SOON_MS, self.update, self)
        Connections(self).connect_all(
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
            ),
            self._later,
        )
        overlay.add(self._paint, lambda: bool(len(self.pairs)))
        self._later()

    def update(self) -> None:
        """Find the lines that are to be seen; those of many points in a thread."""
        rows = self._rows()
        if len(rows) > MOST_AT_ONCE:
            self._show(NONE)
            self._finding.ask(self._finder(rows))
        else:
            self._finding.stop()
            self._show(self._finder(rows)() if len(rows) else NONE)

    def _show(self, pairs: NDArray[np.intp]) -> None:
        self.pairs = pairs
        self._overlay.update()

    def _on_failed(self, error: BaseException) -> None:
        logger.error("Far neighbours could not be found", exc_info=error)

    def _later(self, event: object = None) -> None:
        if len(self.pairs) and self._session.state not in RESTING:
            self._show(NONE)
        self._soon.throttle()

    def _rows(self) -> NDArray[np.intp]:
        """Return the points whose far neighbours are to be seen."""
        session, snapshot = self._session, self._session.drawn
        is_wanted = session.look.show_far and session.state in RESTING
        if not is_wanted or snapshot is None or snapshot.neighbors is None:
            return NONE[:, 0]
        if self._layers.points is None or session.selection.is_empty:
            return NONE[:, 0]
        return session.selection.rows

    def _finder(self, rows: NDArray[np.intp]) -> Callable[[], NDArray[np.intp]]:
        """Return what finds the lines of some points, in any thread."""
        snapshot, hidden = self._session.drawn, self._session.hiding.mask
        assert snapshot is not None
        assert snapshot.neighbors is not None
        neighbors, embedding = snapshot.neighbors, snapshot.embedding

        def find() -> NDArray[np.intp]:
            usual = usual_squared_length(neighbors, embedding)
            pairs = far_neighbors(neighbors, embedding, rows, usual)
            if hidden is not None:
                pairs = pairs[~hidden[pairs].any(axis=1)]
            return pairs[:MOST_LINES]

        return find

    def _paint(self, painter: QPainter, drawn: Projection) -> None:
        snapshot = self._session.drawn
        if snapshot is None or self.pairs.max() >= len(snapshot.embedding):
            return
        ends = np.asarray(self._layers.to_world(snapshot.embedding[self.pairs.ravel()]))
        pixels = drawn.to_pixels(ends).reshape(-1, 4)
        painter.setPen(QPen(ON_LIGHT if self._overlay.is_on_light else ON_DARK, WIDTH))
        painter.setOpacity(STRONG if len(self.pairs) <= FEW else FAINT)
        seen = pixels[np.isfinite(pixels).all(axis=1)]
        painter.drawLines([QLineF(*line) for line in seen.tolist()])
