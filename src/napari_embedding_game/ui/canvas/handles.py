"""Handles: what the mouse can drag on the map.

:mod:`names` and the landmarks make them, and ``MapMouse._drag_handle`` drags them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.hand import Hand
from napari_embedding_game.session.session import error_text

Pixel = NDArray[np.floating]
"""(x, y) on the canvas, in pixels as Qt counts them."""


@dataclass(frozen=True)
class Handle:
    """Functions that the mouse calls while it drags a landmark or a cluster."""

    move: Callable[[Pixel], None]
    """Called with each pixel of the drag."""
    drop: Callable[[Pixel, bool], None]
    """Called with the last pixel, and whether the dragged object is pinned there."""
    cancel: Callable[[], None]
    """Called after a cancelled drag or a mere click: restores the former place."""
    cluster: int | None = None
    """The cluster that a click selects; None: the cluster of the point there."""


def make_game_handle(
    hand: Hand,
    begin_drag: Callable[[], None],
    drag_to_pixel: Callable[[Pixel], None],
    cluster: int | None = None,
) -> Handle:
    """Return a handle that drags a landmark or cluster in a running game.

    The first move calls ``begin_drag``; where that raises a DataError or an InputError
    its text is shown and nothing is dragged.  Each move then calls ``drag_to_pixel``.
    A drop is a last move that ends the drag, and pins the object if that is asked for;
    a cancel ends the drag without a pin.
    """
    is_held: bool | None = None

    def move(pixel: Pixel) -> None:
        """Begin the drag at the first call, and drag if it could begin."""
        nonlocal is_held
        if is_held is None:
            try:
                begin_drag()
                is_held = True
            except (DataError, InputError) as error:
                hand.show_refusal(error_text(error))
                is_held = False
        if is_held:
            drag_to_pixel(pixel)

    def drop(pixel: Pixel, is_pinned: bool) -> None:
        """Move a last time, and end the drag."""
        move(pixel)
        hand.end_drag(is_pinned=is_pinned)

    return Handle(move, drop, hand.end_drag, cluster)
