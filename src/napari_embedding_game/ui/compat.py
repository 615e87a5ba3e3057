"""What goes beyond napari's public API; without it the plugin works on.

:func:`scene_of` takes the vispy node of a layer: the picture of the map is its child,
so that it moves, hides and stands in napari's grid with the layer (without: napari
draws the markers, 0.3 s for 70,000 points in software).  :data:`STROKES` names lists of
a Labels layer (without: an undone stroke is no edit).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import napari
from napari.layers import Layer
from qtpy.QtCore import Qt
from qtpy.QtOpenGLWidgets import QOpenGLWidget
from qtpy.QtWidgets import QLabel, QMainWindow, QWidget

STROKES = {"Ctrl+Z": "_undo_history", "Ctrl+Shift+Z": "_redo_history"}
"""What was painted in a Labels layer that a key takes back, or does again."""


def strokes(layer: Layer) -> tuple[int, ...]:
    """Return the number of each: napari emits nothing when one is taken back."""
    return tuple(len(getattr(layer, name, ())) for name in STROKES.values())


def unwrap(viewer: Any) -> Any:
    """Return the viewer itself: napari hands plugins a proxy of it."""
    return getattr(viewer, "__wrapped__", viewer)


def viewers() -> list[Any]:
    """Return all viewers that are open (without: a file comes into the present one)."""
    return list(getattr(napari.Viewer, "_instances", ()))


def main_window_of(widget: QWidget) -> QWidget:
    """Return the window that a widget belongs to, also while its dock floats."""
    while (parent := widget.parentWidget()) is not None:
        widget = parent
    return widget


def canvas_widget(widget: QWidget) -> QWidget | None:
    """Return the canvas of the napari window that a docked widget is in, or None."""
    top = main_window_of(widget)
    center = top.centralWidget() if isinstance(top, QMainWindow) else None
    canvas: QWidget | None = center.findChild(QOpenGLWidget) if center else None
    return canvas


def show_status_as_text(canvas: QWidget) -> None:
    """Have the status bar around a canvas show names and values as they are.

    napari writes values of a layer there, and Qt takes one with a tag for HTML.
    """
    window = main_window_of(canvas)
    if isinstance(window, QMainWindow):
        for label in window.statusBar().findChildren(QLabel):
            label.setTextFormat(Qt.TextFormat.PlainText)


class Scene(NamedTuple):
    """Where napari draws a layer."""

    canvas: QWidget
    """The OpenGL widget."""
    node: Any
    """The vispy node of the layer; its children move with it."""
    points: Any
    """The part of a Points layer that draws the markers; ``visible`` can be set."""
    fill: Any
    """What fills this from the layer, with each ``layer.events.set_data``."""


def scene_of(viewer: Any, layer: Layer) -> Scene | None:
    """Return where a layer is drawn; None where there is no window."""
    try:
        canvas = unwrap(viewer).window._qt_viewer.canvas
        visual = canvas.layer_to_visual[layer]
        node, fill = visual.node, visual._on_data_change
        return Scene(canvas.native, node, getattr(node, "points_markers", None), fill)
    except (AttributeError, KeyError):
        return None


def draw(viewer: Any, layer: Layer) -> None:
    """Draw a layer after its arrays were written in place, and nothing else.

    napari's list of layers would be drawn anew too, and with it all of the window.
    """
    with viewer.layers.events.blocker():
        is_marked = bool(getattr(layer, "selected_data", None))
        layer.refresh(thumbnail=False, highlight=is_marked, extent=False)
