"""The main window that a widget is in."""

from __future__ import annotations

from qtpy.QtWidgets import QWidget


def main_window_of(widget: QWidget) -> QWidget:
    """Return the window that a widget belongs to, also while its dock floats."""
    while (parent := widget.parentWidget()) is not None:
        widget = parent
    return widget
