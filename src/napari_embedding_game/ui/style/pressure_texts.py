"""Texts of the window about pressure."""

from __future__ import annotations

PRESSURE_CHOICE = "Squeezed (pressure)"
PRESSURE_MEANS = (
    "pressure, how far the method would move a point out of the plane, were there a "
    "third dimension. It tells where the map is crowded, not which points are in a "
    "wrong place."
)
NO_PRESSURE = "This method does not define pressure."
