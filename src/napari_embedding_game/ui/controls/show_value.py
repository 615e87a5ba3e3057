"""Set the value of a widget without signals, widening its range if needed."""

from __future__ import annotations

import math
from typing import Any

from magicgui.widgets import ComboBox, FloatSpinBox
from magicgui.widgets.bases import RangedWidget, ValueWidget

SIGNIFICANT, MOST_DECIMALS = 3, 10
"""Digits of a number that was not typed here."""


def show_value(widget: ValueWidget, value: Any) -> None:
    """Show a value and tell nobody; a control that is too narrow for it is widened.

    Settings come from session files and programs, too, which may hold what no person
    could choose here.  Among choices that depend on other settings, which a program
    alone can contradict, the first is shown: a run tells what is wrong.
    """
    with widget.changed.blocked():
        if isinstance(widget, ComboBox):
            _show_choice(widget, value)
            return
        if isinstance(widget, RangedWidget):
            _widen(widget, value)
            # A bound has as few decimals as the widget shows.
            value = min(max(value, widget.min), widget.max)
        widget.value = value


def _show_choice(widget: ComboBox, value: Any) -> None:
    if value not in widget.choices:
        known = widget.options["choices"]
        if callable(known):
            value = widget.choices[0]
        else:
            titles = [one if isinstance(one, tuple) else (one, one) for one in known]
            widget.choices = [*titles, (str(value), value)]
    widget.value = value


def _widen(widget: RangedWidget, value: float) -> None:
    """Let a number have the range and the digits for a value."""
    if isinstance(widget, FloatSpinBox) and value:
        digits = SIGNIFICANT - 1 - math.floor(math.log10(abs(value)))
        if round(value, widget.native.decimals()) != value:
            decimals = max(widget.native.decimals(), digits)
            widget.native.setDecimals(
                min(decimals, MOST_DECIMALS)
            )  # a bound has them too
    if value < widget.min:
        widget.min = value
    if value > widget.max:
        widget.max = value
