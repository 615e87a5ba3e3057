"""What can be chosen for a game, in plain words, and a control for each setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from magicgui.widgets import Container, create_widget
from magicgui.widgets.bases import ValueWidget

from napari_embedding_game.core import settings as engine
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.settings import Settings, affinities, approximations
from napari_embedding_game.session.settings import ChosenSettings

METRICS = ["euclidean", "cosine", "correlation", "manhattan"]
DEVICES = [
    ("Automatic", "auto"),
    ("Processor", "cpu"),
    ("NVIDIA graphics card", "cuda"),
    ("Apple graphics", "mps"),
]
AUTOMATIC = "automatic"
_FIELDS = {each.name: each for each in fields(Settings)}
LABELS = {
    name: each.metadata["title"]
    for name, each in _FIELDS.items()
    if name not in ("repulsion", "n_jobs")
}
"""Settings that have a control of their own, from top to bottom: as the dock calls
them."""
REPELLED_BY: str = _FIELDS["approximation"].metadata["words"]


def choices_of(name: str) -> list[tuple[str, str]]:
    """Return what can be chosen, in words, and its names."""
    found = _FIELDS[name].metadata["choices"]()
    return [(words, value) for value, words in found.items()]


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings in the words of the dock, such as "Repulsion 100"."""
    parts = []
    for name, value in settings.items():
        label = _FIELDS[name].metadata["title"]
        parts.append(f"{label} {_value_text(name, value)}")
    return ", ".join(parts)


def _value_text(name: str, value: Any) -> str:
    if value is None:
        return (
            "the method's own" if name in ("repulsion", "approximation") else AUTOMATIC
        )
    if name == "method":
        return METHODS[value].title
    if "choices" in _FIELDS[name].metadata:
        return str(_FIELDS[name].metadata["choices"]().get(value, value))
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


def approximations_of(method: str, optimizer: str = "game") -> list[tuple[str, str]]:
    """Return what can push the points of a method apart under an optimiser."""
    offered = approximations(method, optimizer)
    return [choice for choice in choices_of("approximation") if choice[1] in offered]


def affinities_of(method: str) -> list[tuple[str, str]]:
    """Return the edges that a method can be played on."""
    offered = ("auto", *affinities(method))
    return [choice for choice in choices_of("affinity") if choice[1] in offered]


def optimizers_of(method: str, affinity: str) -> list[tuple[str, str]]:
    """Return what can move the points of a method that is played on such edges."""
    offered = engine.optimizers(method, affinity)
    return [choice for choice in choices_of("optimizer") if choice[1] in offered]


def make_controls(settings: ChosenSettings) -> Container[ValueWidget]:
    """Return a control for each of ``LABELS``, by the type of its field.

    A number that may be None is chosen automatically at its lowest value.
    """
    kinds, options = get_type_hints(Settings), _options(settings)
    controls = Container[ValueWidget](labels=False)
    for name in (field.name for field in fields(Settings) if field.name in LABELS):
        kind, is_automatic = _without_none(kinds[name])
        chosen = dict(options[name])
        decimals = chosen.pop("decimals", None)
        widget = create_widget(
            name=name, label=LABELS[name], annotation=kind, options=chosen
        )
        if is_automatic and "choices" not in chosen:
            widget.native.setSpecialValueText(AUTOMATIC)
            widget.value = widget.min
        if decimals is not None:
            widget.native.setDecimals(decimals)
        controls.append(widget)
    return controls


def _without_none(kind: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether None was among its values."""
    if get_origin(kind) not in (Union, UnionType):
        return kind, False
    others = [one for one in get_args(kind) if one is not type(None)]
    return others[0], len(others) < len(get_args(kind))


def _options(settings: ChosenSettings) -> dict[str, dict[str, Any]]:
    """Return what magicgui is told of each control."""
    chosen: dict[str, dict[str, Any]] = {
        "method": {"choices": choices_of("method")},
        "approximation": {
            "choices": lambda _: approximations_of(settings.method, settings.optimizer)
        },
        "n_components": {
            "widget_type": "RadioButtons",
            "orientation": "horizontal",
            # A file may have a map on a line.
            "choices": lambda _: sorted({2, 3, settings.n_components}),
        },
        "n_landmarks": {"widget_type": "Slider"},
        "perplexity": {"decimals": 0},
        "affinity": {"choices": lambda _: affinities_of(settings.method)},
        "metric": {"choices": METRICS},
        "init": {"choices": choices_of("init")},
        "schedule": {"choices": choices_of("schedule")},
        "optimizer": {
            "choices": lambda _: optimizers_of(settings.method, settings.affinity)
        },
        # magicgui's other box has no "automatic"
        "max_iter": {"widget_type": "FloatSpinBox", "decimals": 0},
        "device": {"choices": DEVICES},
    }
    for name in LABELS:
        told = _FIELDS[name].metadata
        options = chosen.setdefault(name, {})
        options["tooltip"] = told["words"]
        if "shown" in told:
            options["min"], options["max"], options["step"] = told["shown"]
    return chosen
