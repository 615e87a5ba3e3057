"""Watch the mouse: which point of the map it rests on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.nearest import row_under
from napari_embedding_game.ui.tasks.throttle import debounced

if TYPE_CHECKING:
    import napari

REST_MS = 180
"""The mouse has rested so long before anything is told."""
REACH = 7.0
"""Canvas pixels around the middle of a small point that still count as on it."""


class HoverWatch(QObject):
    """``changed`` brings the row of the point under the mouse, None where is none.

    Nothing is kept ready for it: the nearest of a million points is found in a few
    milliseconds when the mouse has come to rest.  Once a point has been told the next
    one is told without delay.

    Parameters
    ----------
    viewer : napari.Viewer
    find : callable
        Returns the row at a pixel (x, y) of the canvas, or None.
    """

    changed = Signal(object)

    def __init__(
        self,
        viewer: napari.Viewer,
        find: Callable[[NDArray[np.floating]], int | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self._find = find
        self.row: int | None = None
        self.pixel = (0.0, 0.0)
        """Where the mouse is on the canvas: x and y."""
        self._rest = debounced(REST_MS, self._look, self)
        self._callback = self._on_move  # one object, so that it can be taken out again
        viewer.mouse_move_callbacks.append(self._callback)

    def close(self) -> None:
        """Give the mouse back."""
        self.leave()
        if self._callback in self._viewer.mouse_move_callbacks:
            self._viewer.mouse_move_callbacks.remove(self._callback)

    def leave(self, event: object = None) -> None:
        """The mouse is on nothing any more."""
        self._rest.cancel()
        self._tell(None)

    def _on_move(self, viewer: Any, event: Any) -> None:
        if event.buttons:  # the map is being moved, or drawn on
            self.leave()
            return
        self.pixel = tuple(map(float, event.pos[:2]))
        if self.row is None:
            self._rest.throttle()
        else:
            self._look()

    def _look(self) -> None:
        self._tell(self._find(np.array(self.pixel)))

    def _tell(self, row: int | None) -> None:
        if row != self.row:
            self.row = row
            self.changed.emit(row)


def point_at(
    session: Session, layers: MapLayers, pixel: NDArray[np.floating]
) -> int | None:
    """Return the row of the point that is drawn at a pixel of the canvas, or None."""
    snapshot, seen = session.drawn, session.seen
    if snapshot is None or seen is None or layers.points is None:
        return None
    n_points = len(snapshot.embedding)
    sizes = layers.points.size
    if len(seen) != len(sizes):
        sizes = np.resize(sizes, len(seen))  # maps side by side: the same points
    hidden = session.hiding.of_places(len(seen) // n_points)
    row = row_under(layers, seen, pixel, REACH, sizes, hidden)
    return None if row is None else row % n_points
