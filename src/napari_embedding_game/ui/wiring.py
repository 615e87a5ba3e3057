"""Connect the views of the main dock with its controller.

Views know no controller: what they ask for goes up as a signal, and what they are
told comes by a setter.  Here is the one place that knows both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    from napari_embedding_game.ui.canvas.hover import Hover
    from napari_embedding_game.ui.controller import Controller

Pairs = Iterator[tuple[Any, Callable[..., Any]]]
"""Signals, each with its slot."""


def connect_views(controller: Controller, hover: Hover) -> Connections:
    """Connect the views with the controller, and tell them what there is already.

    Returns
    -------
    Connections
        To be closed before the controller is.
    """
    connections = Connections()
    for pairs in (_of_hover(controller, hover),):
        for signal, slot in pairs:
            connections.connect(signal, slot)
    return connections


def _of_hover(controller: Controller, hover: Hover) -> Pairs:
    yield hover.trouble, controller.trouble
