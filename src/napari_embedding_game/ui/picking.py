"""Clicking on the map selects clusters, whatever layer is active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import napari

CLICK_REACH = 4.0
"""Canvas pixels that the mouse may move during a click; more is a drag."""


class Picker:
    """Tells where the canvas was clicked, and when Escape was pressed.

    Parameters
    ----------
    viewer : napari.Viewer
    on_click : callable
        Receives the world position and whether Ctrl or Cmd was held.
    on_escape : callable
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        on_click: Callable[[np.ndarray, bool], None],
        on_escape: Callable[[], None],
    ) -> None:
        self._viewer = viewer
        self._on_click = on_click
        self._on_escape = on_escape
        self._callback = self._drag  # one object, so that it can be taken out again
        viewer.mouse_drag_callbacks.append(self._callback)
        self._former = viewer.bind_key("Escape", self._escape, overwrite=True)

    def close(self) -> None:
        """Give mouse and key back."""
        if self._callback in self._viewer.mouse_drag_callbacks:
            self._viewer.mouse_drag_callbacks.remove(self._callback)
        self._viewer.bind_key("Escape", self._former, overwrite=True)

    def _drag(self, viewer: Any, event: Any) -> Iterator[None]:
        if event.button != 1 or self._is_editing():
            return
        begun = np.array(event.pos, dtype=float)
        yield
        while event.type == "mouse_move":
            yield
        if np.hypot(*(np.array(event.pos, dtype=float) - begun)) > CLICK_REACH:
            return
        adds = any(key in event.modifiers for key in ("Control", "Meta"))
        self._on_click(np.array(event.position, dtype=float), adds)

    def _is_editing(self) -> bool:
        """Whether a click means something else to the active layer."""
        active = self._viewer.layers.selection.active
        return str(getattr(active, "mode", "pan_zoom")) != "pan_zoom"

    def _escape(self, viewer: Any) -> None:
        self._on_escape()
