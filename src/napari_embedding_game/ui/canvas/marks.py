"""What is painted over the map besides names: captions, lines to far points, pins."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QLineF, QObject, QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QPainter, QPen
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.inspect.stretch import (
    far_neighbors,
    usual_squared_length,
)
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.session.panels import GAP
from napari_embedding_game.ui.canvas.overlay import MapOverlay, is_same
from napari_embedding_game.ui.canvas.projection import Projection
from napari_embedding_game.ui.canvas.scene import RESTING, Scene
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.halo_text import (
    ON_DARK,
    ON_LIGHT,
    fitted,
    half_size,
    write,
)
from napari_embedding_game.ui.tasks.throttle import throttled
from napari_embedding_game.ui.tasks.worker import Latest

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session

logger = logging.getLogger(__name__)

HAND_ON_DARK, HAND_ON_LIGHT = QColor(94, 214, 240), QColor(0, 92, 122)
FAR_ON_DARK, FAR_ON_LIGHT = QColor(255, 214, 102), QColor(150, 60, 0)
LINE, PIN, STEM, HELD = 1.6, 5.0, 14.0, 6.0
"""Width of a line, radius of a pin's head and how high it stands above its place, side
of the square around a held point: in pixels."""
MOST_HELD = 60
"""Points that are marked as held, about: more would hide their colours."""
MOST_LINES = 120
"""Of more, the longest are drawn."""
STRONG, FAINT, FEW = 0.5, 0.22, 40
"""Opacity of a few lines, and of more."""
SOON_MS = 60


def add_captions(overlay: MapOverlay, session: Session) -> None:
    """Say which group, or which map, each panel shows, and something of it."""

    def paint(painter: QPainter, drawn: Projection) -> None:
        found = session.view.panels
        if found is None:
            return
        colors = ON_LIGHT if overlay.is_on_light else ON_DARK
        half, places = found.width * (1 + GAP) / 2 * found.facing[0], found.places
        ends = drawn.to_pixels(np.array([places[0] - half, places[0] + half]))
        width = float(np.abs(ends[1] - ends[0]).max())
        pixels = drawn.to_pixels(places).tolist()
        for (title, told), (x, y) in zip(found.captions, pixels, strict=True):
            if np.isfinite(x + y):
                whole = f"{title} · {told}" if told else title
                is_short = 2 * half_size(whole, True)[1] <= width
                name = whole if is_short else fitted(title, True, width)
                write(painter, QPointF(x, y), name, True, colors)
                if told and not is_short:
                    below = QPointF(x, y + 2 * half_size(name, True)[0])
                    write(painter, below, fitted(told, False, width), False, colors)

    overlay.add(paint, lambda: session.view.panels is not None)


def add_hand_marks(overlay: MapOverlay, session: Session) -> None:
    """Show what is dragged, pinned and held, while it is."""

    def is_wanted() -> bool:
        is_whole = session.snapshot is not None and not session.view.is_split
        return bool(session.hand.forces) and is_whole

    def paint(painter: QPainter, drawn: Projection) -> None:
        snapshot, forces = session.view.drawn, session.hand.forces
        if snapshot is None:
            return
        color = HAND_ON_LIGHT if overlay.is_on_light else HAND_ON_DARK
        painter.setPen(QPen(color, 1.0))
        for hold in forces.holds:
            some = hold.rows[:: max(1, len(hold.rows) // MOST_HELD)]
            square = QRectF(-HELD / 2, -HELD / 2, HELD, HELD)
            at = _pixels(drawn, snapshot.embedding[some])
            painter.drawRects([square.translated(pixel) for pixel in at])
        pins = [h.place for h in forces.landmarks if h.is_pinned]
        for spring in forces.springs:
            middle = snapshot.embedding[spring.rows].mean(axis=0, dtype=float)
            ends = _pixels(drawn, middle) + _pixels(drawn, spring.place)
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
            for pixel in _pixels(drawn, pin):
                head = pixel + QPointF(STEM / 3, -STEM)
                painter.drawLine(pixel, head)
                painter.drawEllipse(head, PIN, PIN)

    overlay.add(paint, is_wanted)


def _pixels(drawn: Projection, places: object) -> list[QPointF]:
    """Return where places (n, d) or (d,) are drawn in front of the camera."""
    pixels = drawn.to_pixels(np.atleast_2d(np.asarray(places)))
    return [QPointF(x, y) for x, y in pixels.tolist() if np.isfinite(x + y)]


class FarLines(QObject):
    """Shows where the map is torn: true neighbours of the selection that lie elsewhere.

    The lines are seen while the map rests; they are found beside the window.
    """

    def __init__(
        self, session: Session, scene: Scene, overlay: MapOverlay, dock: QWidget
    ) -> None:
        super().__init__(dock)
        self._session, self._overlay = session, overlay
        self.pairs = np.empty((0, 2), np.intp)
        """(m, 2) the points between which lines are drawn."""
        self._of: tuple[object, ...] = ()
        """What they were asked for."""
        self._finding = Latest(self, self._take, self._on_failed)
        self._soon = throttled(SOON_MS, self.update, self)
        Connections(self).connect(scene.drawn, self._soon.throttle)
        overlay.add(self._paint, lambda: bool(len(self.pairs)))
        self._soon.throttle()

    def update(self) -> None:
        """Find the lines that are to be seen, where others are than before."""
        session, shot = self._session, self._session.view.drawn
        selection, hidden = session.selection, session.view.hidden
        is_wanted = session.look.show_far and session.state in RESTING
        if not is_wanted or shot is None or shot.neighbors is None:
            shot = None
        is_none = shot is None or selection.is_empty
        of = () if is_none else (shot, selection.points, hidden)
        if not is_same(of, self._of):
            self._of = of
            self._take(self.pairs[:0])
            self._finding.stop()
            if of and shot is not None:
                self._finding.ask(partial(far_pairs, shot, selection.rows, hidden))

    def _take(self, pairs: NDArray[np.intp]) -> None:
        self.pairs = pairs
        self._overlay.refresh()

    def _on_failed(self, error: BaseException) -> None:
        logger.error("Far neighbours could not be found", exc_info=error)

    def _paint(self, painter: QPainter, drawn: Projection) -> None:
        snapshot = self._session.view.drawn
        if snapshot is None or self.pairs.max() >= len(snapshot.embedding):
            return
        color = FAR_ON_LIGHT if self._overlay.is_on_light else FAR_ON_DARK
        ends = snapshot.embedding[self.pairs.ravel()]
        pixels = drawn.to_pixels(ends).reshape(-1, 4)
        painter.setPen(QPen(color, 1.0))
        painter.setOpacity(STRONG if len(self.pairs) <= FEW else FAINT)
        seen = pixels[np.isfinite(pixels).all(axis=1)]
        painter.drawLines([QLineF(*line) for line in seen.tolist()])


def far_pairs(
    snapshot: Snapshot, rows: NDArray[np.intp], hidden: NDArray[np.bool_] | None
) -> NDArray[np.intp]:
    """Return the longest lines from some points to true neighbours far off: (m, 2)."""
    neighbors, embedding = snapshot.neighbors, snapshot.embedding
    assert neighbors is not None
    usual = usual_squared_length(neighbors, embedding)
    pairs = far_neighbors(neighbors, embedding, rows, usual)
    if hidden is not None:
        pairs = pairs[~hidden[pairs].any(axis=1)]
    return pairs[:MOST_LINES]
