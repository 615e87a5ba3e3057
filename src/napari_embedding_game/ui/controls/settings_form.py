"""Controls for the engine's settings, made from the metadata of their fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from magicgui.widgets import ComboBox, Container, FloatSpinBox, create_widget
from magicgui.widgets.bases import RangedWidget, ValueWidget

from napari_embedding_game.core import settings as engine
from napari_embedding_game.core.energy.methods import METHODS, get_method
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.session.settings import ChosenSettings

AUTOMATIC = "Automatic"
FIELDS = {each.name: each for each in fields(Settings)}
NOT_IN_FORM = "repulsion", "n_jobs", "second_space"
NAMES = [name for name in FIELDS if name not in NOT_IN_FORM]
"""Settings that have a control in this form, from top to bottom."""
METRICS = "euclidean", "cosine", "correlation", "manhattan"
DEVICES = {
    "auto": "Automatic",
    "cpu": "Processor",
    "cuda": "NVIDIA card",
    "mps": "Apple graphics",
}
CHOICES: Mapping[str, Callable[[], Mapping[Any, str]]] = {
    "n_components": lambda: {2: "2", 3: "3"},
    "metric": lambda: {metric: metric.capitalize() for metric in METRICS},
    "device": lambda: DEVICES,
} | {n: f.metadata["choices"] for n, f in FIELDS.items() if "choices" in f.metadata}
"""For settings that are chosen from a list: returns the titles by value."""
KINDS = get_type_hints(Settings)
AUTOMATICALLY = [
    name
    for name in NAMES
    if name not in CHOICES and type(None) in get_args(KINDS[name])
]
"""Numbers whose lowest value leaves the choice to the engine."""
INTEGERS = ("perplexity", "max_iter")
"""Settings whose number is shown without decimals."""
SIGNIFICANT, MAX_DECIMALS = 3, 10
"""Significant digits of a number of a file or program, and its decimals at most."""


def describe_settings(settings: Mapping[str, Any]) -> str:
    """Return settings as the form names them, such as "Repulsion 100, Seed 3".

    ``settings``: value of each setting by its name; "" is returned for no settings.
    """
    texts = [
        f"{FIELDS[n].metadata['title']} {_format_value(n, v)}"
        for n, v in settings.items()
    ]
    return ", ".join(texts)


def make_setting_controls(settings: ChosenSettings) -> Container[ValueWidget]:
    """Return a container with a control for each setting, in the order of ``NAMES``.

    The controls show defaults and change no setting.  ``settings`` only say which
    choices a control offers.
    """
    controls = Container[ValueWidget](labels=False)
    for name in NAMES:
        metadata = FIELDS[name].metadata
        options: dict[str, Any] = {"tooltip": metadata["words"]}
        if name in CHOICES:
            options["choices"] = lambda _, setting=name: _list_choices(
                settings, setting
            )
        if "shown" in metadata:
            options["min"], options["max"], options["step"] = metadata["shown"]
        if name == "max_iter":  # magicgui's box for integers has no "Automatic"
            options["widget_type"] = "FloatSpinBox"
        if metadata.get("slides"):
            options["widget_type"] = "FloatSlider"
        kind = KINDS[name]
        if type(None) in get_args(kind):
            kind = get_args(kind)[0]
        widget = create_widget(
            name=name, label=metadata["title"], annotation=kind, options=options
        )
        if name in INTEGERS:
            widget.native.setDecimals(0)
        if name in AUTOMATICALLY:
            widget.native.setSpecialValueText(AUTOMATIC)
            widget.value = widget.min
        controls.append(widget)
    return controls


def _list_choices(settings: ChosenSettings, name: str) -> list[tuple[str, Any]]:
    """Return (title, value) of each choice of a setting with the present method.

    The present value is included, which a session file or a program may have set.  An
    approximation or affinity of another method is left out: then a run reports the
    error.
    """
    titles, present = dict(CHOICES[name]()), getattr(settings, name)
    if name == "approximation":
        offered = get_method(settings.method).approximations
    elif name == "affinity":
        offered = ("auto", *engine.list_affinities(settings.method))
    else:
        titles.setdefault(present, str(present))
        offered = tuple(titles)
    return [(words, value) for value, words in titles.items() if value in offered]


def show_value(widget: ValueWidget, value: Any) -> None:
    """Show a value in a control without a signal; widen the range of a number for it.

    Session files and programs may set values that cannot be chosen here.  Where a list
    of choices has no such value, its first choice is shown.
    """
    with widget.changed.blocked():
        if isinstance(widget, ComboBox):
            widget.reset_choices()
            value = value if value in widget.choices else widget.choices[0]
        if isinstance(widget, RangedWidget):
            _widen_range(widget, value)
            # The widget rounds its bounds to the decimals that it shows.
            value = min(max(value, widget.min), widget.max)
        widget.value = value


def _widen_range(widget: RangedWidget, value: float) -> None:
    """Give a number box the decimals, and a widget the range, that a value needs.

    Decimals grow to show ``SIGNIFICANT`` digits, at most to ``MAX_DECIMALS``.
    """
    if isinstance(widget, FloatSpinBox) and value:
        decimals = widget.native.decimals()
        if round(value, decimals) != value:
            digits = SIGNIFICANT - 1 - math.floor(math.log10(abs(value)))
            widget.native.setDecimals(min(max(decimals, digits), MAX_DECIMALS))
    if value < widget.min:
        widget.min = value
    if value > widget.max:
        widget.max = value


def _format_value(name: str, value: Any) -> str:
    """Return the value of the setting ``name`` as the form shows it."""
    if value is None:
        return AUTOMATIC.lower()
    if name == "method":
        return METHODS[value].title
    if name in CHOICES:
        return CHOICES[name]().get(value, str(value))
    return f"{value:,g}" if isinstance(value, int | float) else str(value)
