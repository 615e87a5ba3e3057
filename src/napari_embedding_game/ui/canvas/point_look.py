"""Opacity, blending and symbol of the map's layer stand in the session."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from napari.layers import Points

from napari_embedding_game.session.settings import DisplaySettings
from napari_embedding_game.ui.connections import Connections

FIELDS = {
    "opacity": "point_opacity",
    "blending": "point_blending",
    "symbol": "point_symbol",
}
"""Field of the look, by the property of the layer."""


class PointLook:
    """Keeps properties of a layer of points and fields of a look equal.

    What a person, a script or a restored session sets on one side, the other side gets;
    so it also comes back in the layer of the next map.
    """

    def __init__(self, look: DisplaySettings) -> None:
        self._look = look
        self._layer: Points | None = None
        self._of_layer, self._of_look = Connections(), Connections()
        signals = (getattr(look.events, field) for field in FIELDS.values())
        self._of_look.connect(self._write_look_to_layer, *signals)

    def follow_layer(self, layer: Points) -> None:
        """Give a layer the look of the session, and follow this layer from now on."""
        self._of_layer.close()
        self._layer = layer
        self._write_look_to_layer()
        signals = (getattr(layer.events, name) for name in FIELDS)
        self._of_layer.connect(self._read_look_from_layer, *signals)

    def close(self) -> None:
        """Follow neither the layer nor the look any more."""
        self._of_layer.close()
        self._of_look.close()

    def _write_look_to_layer(self, *event: object) -> None:
        """Set the properties of the layer that differ from the look.

        A value of a session file that napari does not know is left out.
        """
        layer = self._layer
        if layer is None:
            return
        for name, field in FIELDS.items():
            value = getattr(self._look, field)
            if _read_property(layer, name) != value:
                with suppress(ValueError):
                    setattr(layer, name, value)

    def _read_look_from_layer(self, event: object = None) -> None:
        """Set the fields of the look that differ from the layer.

        Points of several symbols have no common symbol: the field stays.
        """
        assert self._layer is not None
        for name, field in FIELDS.items():
            value = _read_property(self._layer, name)
            if value is not None and value != getattr(self._look, field):
                setattr(self._look, field, value)


def _read_property(layer: Points, name: str) -> Any:
    """Return a property of a layer as a text or number; None for several symbols."""
    if name != "symbol":
        return getattr(layer, name)
    symbols = layer.symbol
    is_common = len(symbols) > 0 and bool((symbols == symbols[0]).all())
    return symbols[0].value if is_common else None
