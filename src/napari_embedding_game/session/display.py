"""Display settings of the map: colours, sizes, names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from psygnal import SignalGroupDescriptor

SizeBy: TypeAlias = Literal["Same", "Stretch", "Isolation", "Pressure"]


@dataclass
class DisplaySettings:
    """How the map is drawn; ``events`` emits which field changed."""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    color_by: str = "Cluster"
    """"Cluster", "Stretch", "Isolation", "Pressure", "Similarity" (to the selection),
    "Pointed" (similarity to the point under the mouse), "Movement", the name of a
    metadata column, or of a gene."""
    limits: tuple[float, float] | None = None
    """Values that get the first and the last colour; None: those that suit them."""
    size_by: SizeBy = "Same"
    """Which points are drawn larger: stretched, isolated ones, those under pressure."""
    split_by: str = ""
    """Column whose groups are shown side by side; "" for one map."""
    show_landmarks: bool = True
    show_names: bool = True
    """Whether the names of the clusters are written on the map."""
    show_far: bool = True
    """Whether lines go from selected points to neighbours in the data that lie far."""
