"""What the mouse drags on the map: names and landmarks as handles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.hand import Hand
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.canvas.pick import row_at
from napari_embedding_game.ui.canvas.scene import Scene
from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    import napari
    from napari.layers import Points

ADD, REMOVE = "A", ("Delete", "Backspace")
"""Keys that add a landmark under the mouse, and that take one away."""
REACH = 8.0
"""Canvas pixels from the middle of a landmark that take hold of it."""
POINT_AT_ONE = "Point at a landmark with the mouse, then press Delete."
Pixel = NDArray[np.floating]
"""(x, y) of the canvas."""


@dataclass(frozen=True)
class Handle:
    """What is held by the mouse while its button is down."""

    move: Callable[[Pixel], None]
    """Follows the mouse."""
    drop: Callable[[Pixel, bool], None]
    """Stays where the mouse let go, pinned there or not."""
    put_back: Callable[[], None]
    """Is where it was before: it was given up, or only clicked."""


def held_by_hand(
    hand: Hand,
    begin: Callable[[], None],
    follow: Callable[[Pixel], None],
    end: Callable[..., None],
) -> Handle:
    """Return a handle that a running game follows, from its first move on.

    ``begin`` takes hold, or raises why it cannot; ``end`` is told ``is_pinned``.
    """
    is_held: bool | None = None

    def move(pixel: Pixel) -> None:
        nonlocal is_held
        if is_held is None:
            is_held = _done(begin, hand)
        if is_held:
            follow(pixel)

    def drop(pixel: Pixel, is_pinned: bool) -> None:
        move(pixel)
        end(is_pinned=is_pinned)

    return Handle(move, drop, end)


class LandmarkHandles(QObject):
    """Landmarks as handles, while their layer is the selected one in napari's list.

    They are dragged with the mouse; keys add one under the mouse, or take it away.
    """

    def __init__(
        self, viewer: napari.Viewer, session: Session, scene: Scene, dock: QObject
    ) -> None:
        super().__init__(dock)
        self._viewer, self._session, self._layers = viewer, session, scene.layers
        self._pixel: Pixel | None = None
        """Where the mouse was seen last."""
        self._bound: Points | None = None
        """The layer that has got the keys."""
        connections = Connections(self)
        connections.connect(viewer.layers.selection.events.active, self._on_active)
        connections.call(lambda: self._bind(None))

    def handle_at(self, pixel: Pixel) -> Handle | None:
        """Return the landmark at a pixel (x, y); None where there is none to be had."""
        self._pixel, hand, layers = pixel, self._session.hand, self._layers
        number, snapshot = self._number_at(pixel), self._session.snapshot
        if number is None or snapshot is None:
            return None
        through = snapshot.landmarks[number]  # in space: parallel to the canvas

        def follow(at: Pixel) -> None:
            place = layers.point_under(at, through)
            if place is not None:
                hand.drag_to(place)

        return held_by_hand(
            hand, lambda: hand.begin_landmark(number), follow, hand.end_drag
        )

    # Inside

    def _number_at(self, pixel: Pixel) -> int | None:
        layer, snapshot = self._layers.landmarks, self._session.snapshot
        is_chosen = layer is not None and self._viewer.layers.selection.active is layer
        if layer is None or not (is_chosen and layer.visible) or snapshot is None:
            return None
        self._bind(layer)
        places = snapshot.landmarks
        return row_at(self._layers, places, pixel, reach=REACH, is_sized=False)

    def _on_active(self, event: object = None) -> None:
        layer = self._layers.landmarks
        if layer is not None and self._viewer.layers.selection.active is layer:
            self._bind(layer)

    def _bind(self, layer: Points | None) -> None:
        """Give the keys to a layer, in place of napari's own."""
        if layer is self._bound:
            return
        keys = {ADD: self._add, **dict.fromkeys(REMOVE, self._remove)}
        for key, job in keys.items():
            if self._bound is not None:  # else it would hold all of the dock
                self._bound.bind_key(key, None, overwrite=True)
            if layer is not None:
                layer.bind_key(key, job, overwrite=True)
        self._bound = layer

    def _add(self, layer: object = None) -> None:
        """Add a landmark under the mouse; in space as deep as the point there."""
        pixel, snapshot, hand = self._pixel, self._session.snapshot, self._session.hand
        if pixel is None or snapshot is None:
            return
        row = row_at(self._layers, snapshot.embedding, pixel)
        middle = snapshot.embedding.mean(axis=0, dtype=float)
        through = middle if row is None else snapshot.embedding[row]
        place = self._layers.point_under(pixel, through)
        if place is not None:
            _done(lambda: hand.add_landmark(place), hand)

    def _remove(self, layer: object = None) -> None:
        """Take away the landmark under the mouse."""
        hand = self._session.hand
        number = None if self._pixel is None else self._number_at(self._pixel)
        if number is None:
            hand.refuse(POINT_AT_ONE)
        else:
            _done(lambda: hand.remove_landmarks(number), hand)


def _done(job: Callable[[], None], hand: Hand) -> bool:
    """Do something; return whether it was done, or tell why it cannot be."""
    try:
        job()
    except (DataError, InputError) as error:
        hand.refuse(sentence(error))
        return False
    return True
