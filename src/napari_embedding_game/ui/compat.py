"""Access to napari beyond its public API, each with a fallback.

:func:`find_layer_visual` returns the vispy node of a layer: the picture of the map is a
child of the node, so that the picture moves, hides and stands in napari's grid with the
layer.  Without the node napari paints the markers: 0.3 s for 70,000 points in software.
:data:`STROKE_LISTS` names lists of a Labels layer; without the lists an undone stroke
is not noticed as an edit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import napari
from napari.layers import Layer
from qtpy.QtCore import Qt
from qtpy.QtOpenGLWidgets import QOpenGLWidget
from qtpy.QtWidgets import QLabel, QMainWindow, QWidget

STROKE_LISTS = {"Ctrl+Z": "_undo_history", "Ctrl+Shift+Z": "_redo_history"}
"""By key, the attribute of a Labels layer that lists the strokes to undo or redo."""


def count_strokes(layer: Layer) -> tuple[int, ...]:
    """Return how many strokes of a Labels layer can be undone, and redone.

    A change of these two numbers shows an undone stroke, for which napari emits
    nothing.  Both are 0 where the layer has no such lists.
    """
    return tuple(len(getattr(layer, name, ())) for name in STROKE_LISTS.values())


def unwrap_viewer(viewer: Any) -> Any:
    """Return the viewer behind the proxy that napari hands to plugins."""
    return getattr(viewer, "__wrapped__", viewer)


def list_viewers() -> list[Any]:
    """Return all open viewers; [] where napari does not list its viewers any more."""
    return list(getattr(napari.Viewer, "_instances", ()))


def find_main_window(widget: QWidget) -> QWidget:
    """Return the outermost ancestor of a widget, also while its dock floats.

    A widget without a parent is returned itself.
    """
    while (parent := widget.parentWidget()) is not None:
        widget = parent
    return widget


def find_canvas_widget(widget: QWidget) -> QWidget | None:
    """Return the OpenGL canvas of the napari window that a docked widget is in.

    Returns None where the widget is in no main window, or the window has no canvas.
    """
    top = find_main_window(widget)
    center = top.centralWidget() if isinstance(top, QMainWindow) else None
    canvas: QWidget | None = center.findChild(QOpenGLWidget) if center else None
    return canvas


def show_status_as_plain_text(canvas: QWidget) -> None:
    """Set all labels of the status bar of a canvas's window to plain text.

    napari writes values of a layer there, which Qt would render as HTML where a value
    contains a tag.  Without a main window nothing is done.
    """
    window = find_main_window(canvas)
    if isinstance(window, QMainWindow):
        for label in window.statusBar().findChildren(QLabel):
            label.setTextFormat(Qt.TextFormat.PlainText)


class LayerVisual(NamedTuple):
    """The vispy objects by which napari draws a layer."""

    canvas: QWidget
    """The OpenGL widget."""
    node: Any
    """The vispy node of the layer; its children move with it."""
    markers: Any
    """Paints the markers of a Points layer (``visible`` can be set), or None."""
    update_markers: Any
    """Slot of ``layer.events.set_data`` that copies the layer's data to the node."""


def find_layer_visual(viewer: Any, layer: Layer) -> LayerVisual | None:
    """Return the vispy objects by which napari draws a layer.

    Returns None where the viewer has no window or does not draw the layer, or napari
    has renamed its private attributes.
    """
    try:
        canvas = unwrap_viewer(viewer).window._qt_viewer.canvas
        visual = canvas.layer_to_visual[layer]
        node, update = visual.node, visual._on_data_change
        markers = getattr(node, "points_markers", None)
        return LayerVisual(canvas.native, node, markers, update)
    except (AttributeError, KeyError):
        return None


def refresh_layer(viewer: Any, layer: Layer) -> None:
    """Redraw a layer whose arrays were changed in place, without thumbnail and extent.

    The highlight is redrawn only if points of the layer are selected.  Events are
    blocked: else napari would redraw its list of layers, and with the list the whole
    window.
    """
    with viewer.layers.events.blocker():
        is_marked = bool(getattr(layer, "selected_data", None))
        layer.refresh(thumbnail=False, highlight=is_marked, extent=False)
