"""Landmarks as handles, while their layer is the selected one in napari's list.

They are dragged with the mouse; keys add one under the mouse, or take it away.  The
tools that napari offers for the layer do the same: with the one that selects points a
landmark is dragged or chosen and deleted, with the one that adds them a click adds one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QTimer

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.nearest import row_near, row_under
from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    import napari
    from napari.layers import Points

ADD, REMOVE = "A", ("Delete", "Backspace")
"""Keys that add a landmark under the mouse, and that take one away."""
REACH = 8.0
"""Canvas pixels from the middle of a landmark that take hold of it."""
SELECT = "select"
"""Name of napari's tool that chooses points."""
ADDED, REMOVED, CHANGED = "added", "removed", "changed"
"""What a layer of napari tells that was done to its points."""
POINT_AT_ONE = "Point at a landmark with the mouse, then press Delete."


class LandmarkHandle:
    """A landmark under the mouse."""

    def __init__(
        self,
        session: Session,
        layers: MapLayers,
        number: int,
        place: NDArray[np.floating],
    ) -> None:
        self._session = session
        self._layers = layers
        self._number = number
        self._through = place
        """(d,) where it was: in space it is dragged parallel to the canvas."""
        self._is_begun = self._is_refused = False

    def move(self, pixel: NDArray[np.floating]) -> None:
        """Draw the landmark to the hand."""
        if self._is_refused or not (self._is_begun or self._begin()):
            return
        place = self._layers.point_under(np.asarray(pixel), self._through)
        if place is not None:
            self._session.hand.drag_to(place)

    def drop(self, pixel: NDArray[np.floating], *, is_pinned: bool) -> None:
        """Let go of the landmark, or pin it at the hand."""
        self.move(pixel)
        self._session.hand.end_drag(is_pinned=is_pinned)

    def put_back(self) -> None:
        """Let go of the landmark where it has come to."""
        self._session.hand.end_drag()

    def _begin(self) -> bool:
        """Take hold of the landmark, or tell why it cannot be."""
        try:
            self._session.hand.begin_landmark(self._number)
        except (DataError, InputError) as error:
            self._is_refused = True
            self._session.hand.refuse(sentence(error))
            return False
        self._is_begun = True
        return True


class LandmarkHandles:
    """Finds the landmark that can be dragged at a pixel.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    layers : MapLayers
    """

    def __init__(
        self, viewer: napari.Viewer, session: Session, layers: MapLayers
    ) -> None:
        self._viewer = viewer
        self._session = session
        self._layers = layers
        self._pixel: NDArray[np.floating] | None = None
        """Where the mouse was seen last."""
        self._bound: Points | None = None
        """The layer that has got the keys, and whose tools are followed."""
        self._connections = Connections()
        self._connections.connect(
            viewer.layers.selection.events.active, self._on_active
        )

    def close(self) -> None:
        """Let go of the viewer, and of the layer, which stays."""
        self._connections.close()
        self._let_go()

    def handle_at(self, pixel: NDArray[np.floating]) -> LandmarkHandle | None:
        """Return the landmark at a pixel (x, y); None where there is none to be had."""
        self._pixel = pixel
        number, snapshot = self._number_at(pixel), self._session.snapshot
        if number is None or snapshot is None:
            return None
        place = snapshot.landmarks[number]
        return LandmarkHandle(self._session, self._layers, number, place)

    def handle_of_tool(self, pixel: NDArray[np.floating]) -> LandmarkHandle | None:
        """Return the landmark at a pixel (x, y) that napari's select tool drags."""
        self._pixel = pixel
        layer = self._layers.landmarks
        if layer is None or str(layer.mode) != SELECT:
            return None
        return self.handle_at(pixel)

    # Inside

    def _number_at(self, pixel: NDArray[np.floating]) -> int | None:
        layer, snapshot = self._layers.landmarks, self._session.snapshot
        is_chosen = layer is not None and self._viewer.layers.selection.active is layer
        if layer is None or not (is_chosen and layer.visible) or snapshot is None:
            return None
        self._bind(layer)
        return row_under(self._layers, snapshot.landmarks, pixel, REACH)

    def _bind(self, layer: Points) -> None:
        """Give the keys to the layer, in place of napari's own."""
        if layer is self._bound:
            return
        self._let_go()
        self._bound = layer
        layer.events.data.connect(self._on_edited)
        layer.bind_key(ADD, self._add, overwrite=True)
        for key in REMOVE:
            layer.bind_key(key, self._remove, overwrite=True)

    def _let_go(self) -> None:
        """Have nobody follow the tools of the layer any more."""
        if self._bound is not None:
            self._bound.events.data.disconnect(self._on_edited)
            for key in (ADD, *REMOVE):  # else the layer would hold all of the dock
                self._bound.bind_key(key, None, overwrite=True)
        self._bound = None

    def _on_active(self, event: object = None) -> None:
        """Follow the tools of the layer as soon as it is chosen."""
        layer = self._layers.landmarks
        if layer is not None and self._viewer.layers.selection.active is layer:
            self._bind(layer)

    def _on_edited(self, event: Any) -> None:
        """Do to the game what napari's tools, or a program, did to the layer."""
        layer, action = event.source, str(event.action)
        hand = self._session.hand
        if action == CHANGED:  # a drag: the handle moves the landmark
            self._layers.show_landmarks_of(self._session.snapshot)
            return
        if action == ADDED:
            edit = partial(hand.add_landmark, self._layers.to_position(layer.data[-1]))
        elif action == REMOVED:
            edit = partial(hand.remove_landmarks, *sorted(map(int, event.data_indices)))
        else:
            return
        QTimer.singleShot(0, lambda: self._do(edit))  # napari is not done yet

    def _add(self, layer: object = None) -> None:
        place = None if self._pixel is None else self._place_under(self._pixel)
        if place is not None:
            self._do(lambda: self._session.hand.add_landmark(place))

    def _place_under(self, pixel: NDArray[np.floating]) -> NDArray[np.floating] | None:
        """Return the place (d,) under the mouse; in space as deep as the point there.

        Where there is no point, as the middle of the map.
        """
        snapshot = self._session.snapshot
        if snapshot is None:
            return None
        row = row_near(self._layers, snapshot.embedding, pixel)
        middle = snapshot.embedding.mean(axis=0, dtype=float)
        through = middle if row is None else snapshot.embedding[row]
        return self._layers.point_under(pixel, through)

    def _remove(self, layer: object = None) -> None:
        """Take away what napari's tool has chosen, or what is under the mouse."""
        bound = self._bound
        if bound is not None and str(bound.mode) == SELECT and bound.selected_data:
            bound.remove_selected()
            return
        number = None if self._pixel is None else self._number_at(self._pixel)
        if number is None:
            self._session.hand.refuse(POINT_AT_ONE)
        else:
            self._remove_numbers([number])

    def _remove_numbers(self, numbers: list[int]) -> None:
        self._do(lambda: self._session.hand.remove_landmarks(*numbers))

    def _do(self, edit: Callable[[], None]) -> None:
        try:
            edit()
        except (DataError, InputError) as error:
            self._session.hand.refuse(sentence(error))
        self._layers.show_landmarks_of(self._session.snapshot)
