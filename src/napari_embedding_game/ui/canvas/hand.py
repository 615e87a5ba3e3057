"""What the mouse drags on the map: handles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.hand import Hand
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.canvas.layers import MapLayers
from napari_embedding_game.ui.canvas.pick import row_at

REACH = 8.0
"""Canvas pixels from the middle of a landmark that take hold of it."""
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
    hand: Hand, begin: Callable[[], None], follow: Callable[[Pixel], None]
) -> Handle:
    """Return a handle that a running game follows, from its first move on.

    ``begin`` takes hold, or raises why it cannot.
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
        hand.end_drag(is_pinned=is_pinned)

    return Handle(move, drop, hand.end_drag)


def landmark_at(session: Session, layers: MapLayers, pixel: Pixel) -> Handle | None:
    """Return the landmark at a pixel, while their layer is the selected one."""
    layer, snapshot, hand = layers.landmarks, session.snapshot, session.hand
    if layer is None or not layer.visible or snapshot is None:
        return None
    if not layers.is_active(layer):
        return None
    places = snapshot.landmarks
    number = row_at(layers, places, pixel, reach=REACH, is_sized=False)
    if number is None:
        return None
    through = places[number]  # in space: parallel to the canvas

    def follow(at: Pixel) -> None:
        place = layers.point_under(at, through)
        if place is not None:
            hand.drag_to(place)

    return held_by_hand(hand, lambda: hand.begin_landmark(number), follow)


def _done(job: Callable[[], None], hand: Hand) -> bool:
    """Do something; return whether it was done, or tell why it cannot be."""
    try:
        job()
    except (DataError, InputError) as error:
        hand.refuse(sentence(error))
        return False
    return True
