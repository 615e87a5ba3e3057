"""Texts of the window about pressure."""

from __future__ import annotations

PRESSURE_CHOICE = "Crowded (pressure)"
PRESSURE_MEANS = (
    "pressure: how far the crowd around a point would push it out of the map, were "
    "there room. High pressure tells that the map is crowded there, not that a point "
    "is in a wrong place."
)
NO_PRESSURE = "No pressure is known for this method, or for so many points."
