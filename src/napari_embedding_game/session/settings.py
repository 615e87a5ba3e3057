"""The settings of game and map that a person edits, with signals."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, TypeAlias

from psygnal import Signal, SignalGroupDescriptor

from napari_embedding_game.core.energy.methods import get_method, inverse_point_count
from napari_embedding_game.core.settings import Settings, list_affinities

WEAKEST, STRONGEST = 1 / 30, 100 / 3
"""Range of the repulsion slider, relative to the method's default: 10 to 10,000 for the
game."""
Shown: TypeAlias = Literal["map", "map and tissue", "tissue"]
_NAMES = {each.name for each in fields(Settings)}


class ChosenSettings:
    """Editable :class:`Settings`, whose fields can be read and set as attributes."""

    changed = Signal(str)
    """Emits the name of a field whose value has changed."""

    value: Settings

    def __init__(self) -> None:
        object.__setattr__(self, "value", Settings())

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "value"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _NAMES:
            self.update(**{name: value})
        else:  # psygnal keeps its signals here
            object.__setattr__(self, name, value)

    def update(self, **values: Any) -> None:
        """Set several fields, then emit ``changed`` for each field that changed."""
        new = {name: v for name, v in values.items() if v != getattr(self, name)}
        object.__setattr__(self, "value", replace(self.value, **new))
        for name in new:
            self.changed.emit(name)

    def choose_method(self, method: str) -> None:
        """Set the method, with its default repulsion.

        An approximation or affinity that the method supports is kept; any other becomes
        automatic.
        """
        offered = get_method(method).approximations
        is_possible = self.value.affinity in ("auto", *list_affinities(method))
        affinity = self.value.affinity if is_possible else "auto"
        old = self.value.approximation
        new = {"approximation": old if old in offered else None, "repulsion": None}
        self.update(**new, affinity=affinity, method=method)


@dataclass
class DisplaySettings:
    """How the map is painted; ``events`` has a signal for each field."""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    color_by: str = "Cluster"
    """"Cluster", "Stretch", "Isolation", "Pressure", "Movement", the name of a
    metadata column, or of a gene."""
    limits: tuple[float, float] | None = None
    """Values that get the first and the last colour; None for automatic limits."""
    size_by_pressure: bool = False
    """Whether points under pressure are drawn larger."""
    show: Shown = "map"
    """What the canvas shows; without positions in tissue it is the map alone."""
    split_by: str = ""
    """Column whose groups are shown side by side; "" for one map."""
    show_landmarks: bool = False
    """Whether landmarks are shown while the game rests, too."""
    show_names: bool = True
    """Whether the names of the clusters are written on the map."""
    color_objects: bool = False
    """Whether objects in the image have the colours of their points on the map."""
    point_opacity: float = 0.9
    """Opacity of the points, from 0 to 1, as set in napari's controls."""
    point_blending: str = "translucent"
    """Blending of the points, in napari's words."""
    point_symbol: str = "disc"
    """Symbol of all points, in napari's words."""


def find_repulsion_range(method: str) -> tuple[float, float]:
    """Return the lowest and the highest repulsion that the slider offers."""
    default = get_method(method).repulsion
    return default * WEAKEST, default * STRONGEST


def has_lambda(method: str) -> bool:
    """Return whether the method's repulsion is a lambda rather than a factor."""
    return get_method(method).lambda_scale is inverse_point_count
