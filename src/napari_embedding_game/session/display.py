"""Display settings of the map: colours, names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from psygnal import SignalGroupDescriptor


@dataclass
class DisplaySettings:
    """How the map is drawn; ``events`` emits which field changed."""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    color_by: str = "Cluster"
    """"Cluster", "Stretch", "Isolation", "Pressure", "Movement", the name of a
    metadata column, or of a gene."""
    limits: tuple[float, float] | None = None
    """Values that get the first and the last colour; None: those that suit them."""
    size_by_pressure: bool = False
    """Whether points under pressure are drawn larger."""
    split_by: str = ""
    """Column whose groups are shown side by side; "" for one map."""
    show_landmarks: bool = False
    """Whether they are shown at rest, too."""
    show_names: bool = True
    """Whether the names of the clusters are written on the map."""
    color_objects: bool = False
    """Whether objects in the image have the colours of their points on the map."""
