"""Keep maps in space side by side on the canvas, however the camera turns.

napari has one camera, which turns all that there is about one place: maps that stand in
fixed places would pass in front of each other, and be seen from the edge of the row.
Here their places follow the camera.  They stand along what goes right and down on the
canvas, and the camera keeps what is in the middle of the canvas there, so that each map
is turned about its own middle, all by the same angles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject

from napari_embedding_game.session.panels import Panels
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.map_layers import FILLED, MapLayers
from napari_embedding_game.ui.canvas.projection import facing_of, sight_of
from napari_embedding_game.ui.compat import camera_of
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.tasks.throttle import throttled

if TYPE_CHECKING:
    import napari

FOLLOW_MS = 10
"""After a turn of the camera; until then panels stand where they were."""


class PanelCamera(QObject):
    """Tells the session where the camera looks, and fits the camera to the map.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    layers : MapLayers
    """

    def __init__(
        self, viewer: napari.Viewer, session: Session, layers: MapLayers
    ) -> None:
        super().__init__()
        self._viewer = viewer
        self._session = session
        self._layers = layers
        self._sight = sight_of(viewer)
        """(3, 3) what goes right, down and into the picture, as it was last."""
        self._soon = throttled(FOLLOW_MS, self.follow, self)
        self._connections = Connections()
        self._connections.call(self._soon.cancel)
        camera = camera_of(viewer).events
        turns = (camera.angles, camera.orientation, viewer.dims.events.ndisplay)
        self._connections.connect_all(turns, self._on_turn)
        self.follow()

    def close(self) -> None:
        """Undo the connections to the viewer."""
        self._connections.close()

    def follow(self) -> None:
        """Have panels in space stand as the camera sees them now."""
        before, self._sight = self._sight, sight_of(self._viewer)
        panels = self._panels()
        is_turned = not np.array_equal(before, self._sight)
        if panels is not None and is_turned and before[2].any():
            self._keep_in_place(panels, before)
        self._session.face(facing_of(self._viewer))
        if panels is not None and is_turned and self._is_reset():
            self.fit()

    def fit(self) -> None:
        """Show the whole map, or all panels, as large as they fit on the canvas."""
        panels, drawn = self._panels(), self._layers.projection()
        if panels is None or drawn is None:
            self._layers.fit_camera()
            return
        corners = self._layers.to_scene(panels.corners)
        others = self._layers.extents_in_space()
        seen = np.concatenate([corners, *others]) @ self._sight.T
        low, high = seen.min(axis=0), seen.max(axis=0)
        middle = (low + high) / 2
        middle[2] = (corners @ self._sight[2]).mean()
        camera, room = camera_of(self._viewer), np.array(drawn.cell[2:]) * FILLED
        camera.center = tuple((middle @ self._sight).tolist())
        camera.zoom = float((room / np.maximum(high - low, 1.0)[:2]).min())

    # Inside

    def _on_turn(self, event: object = None) -> None:
        self._soon.throttle()

    def _panels(self) -> Panels | None:
        """Return the panels, if they are in space now."""
        panels = self._session.panels
        is_deep = panels is not None and len(panels.middle) > 2
        return panels if is_deep and self._layers.is_deep else None

    def _keep_in_place(self, panels: Panels, before: NDArray[np.floating]) -> None:
        """Turn the map about its middle, wherever on the canvas that is."""
        camera = camera_of(self._viewer)
        pivot = self._layers.to_scene(panels.middle[None])[0]
        away = before @ (np.asarray(camera.center, dtype=float) - pivot)
        camera.center = tuple((pivot + away @ self._sight).tolist())

    def _is_reset(self) -> bool:
        """Whether napari's Home was pressed: it has fitted the panels' former places.

        A hand turns the camera to no such round angles.
        """
        return not any(camera_of(self._viewer).angles)
