"""What the mouse drags on the map: handles."""

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
"""(x, y) of the canvas."""


@dataclass(frozen=True)
class Handle:
    """What is held by the mouse while its button is down."""

    move: Callable[[Pixel], None]
    """Follows the mouse."""
    drop: Callable[[Pixel, bool], None]
    """Stays where the mouse let go, pinned there or not."""
    cancel: Callable[[], None]
    """Is where it was before: it was given up, or only clicked."""
    cluster: int | None = None
    """The one that a click on it means; None: whatever lies there."""


def live_handle(
    hand: Hand,
    begin: Callable[[], None],
    follow: Callable[[Pixel], None],
    cluster: int | None = None,
) -> Handle:
    """Return a handle that a running game follows, from its first move on.

    ``begin`` takes hold, or raises why it cannot.
    """
    is_held: bool | None = None

    def move(pixel: Pixel) -> None:
        nonlocal is_held
        if is_held is None:
            try:
                begin()
                is_held = True
            except (DataError, InputError) as error:
                hand.show_refusal(error_text(error))
                is_held = False
        if is_held:
            follow(pixel)

    def drop(pixel: Pixel, is_pinned: bool) -> None:
        move(pixel)
        hand.end_drag(is_pinned=is_pinned)

    return Handle(move, drop, hand.end_drag, cluster)
