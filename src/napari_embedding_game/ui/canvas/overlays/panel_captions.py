"""Write above each panel of the map what it shows."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QPointF
from qtpy.QtGui import QColor, QPainter

from napari_embedding_game.session.panels import GAP, Panel
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.overlays.map_overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import Projection
from napari_embedding_game.ui.style.halo_text import half_size, write

ON_DARK = QColor("white"), QColor(0, 0, 0, 160)
ON_LIGHT = QColor("black"), QColor(255, 255, 255, 190)


def caption(panel: Panel, width: float, below: float = 0.0) -> tuple[str, ...]:
    """Return the lines that stand above a panel.

    Its name, cut where it is too long, with what is told of it behind or below, where
    there is room: in several lines where that has several parts.

    Parameters
    ----------
    panel : Panel
    width : float
        Pixels of the panel.
    below : float
        Pixels from the middle of the name down to the panel.  One line comes below it
        in any case.
    """

    def fits(text: str, is_given: bool = True) -> bool:
        return 2 * half_size(text, is_given)[1] <= width

    name, told = panel.name, panel.told
    whole = f"{name} · {told}" if told else name
    if fits(whole):
        return (whole,)
    cut = (f"{name[:n]}…" for n in range(len(name) - 1, 0, -1))
    first = next((text for text in (name, *cut) if fits(text)), "")
    lines: list[str] = []
    for part in told.split(", "):
        longer = f"{lines[-1]}, {part}" if lines else part
        if lines and fits(longer, is_given=False):
            lines[-1] = longer
        elif part and fits(part, is_given=False):
            lines.append(part)
    line = 2 * half_size(name, is_given=True)[0]
    return (first, *lines[: max(1, int(below / line - 0.5))])


def room_at(x: float, width: float, left: float, wide: float) -> float:
    """Return the pixels that a caption has, which may be less than its panel.

    Parameters
    ----------
    x, width : float
        Middle and width of the panel, in pixels of the canvas.
    left, wide : float
        Edge and width of the part of the canvas that is seen.
    """
    seen = 2 * min(x - left, left + wide - x)
    # Less than half of a panel is of one that is moved out of the canvas.
    return seen if width / 2 <= seen < width else width


def add_captions(overlay: MapOverlay, session: Session, layers: MapLayers) -> None:
    """Say which group, or which map, each panel shows, and something of it."""

    def paint(painter: QPainter, drawn: Projection) -> None:
        found = session.panels
        if found is None:
            return
        panels = found.panels
        places = np.array([panel.caption for panel in panels])
        pixels = drawn.to_pixels(np.asarray(layers.to_world(places)))
        half = panels[0].width * (1 + GAP) / 2 * found.facing[0]
        sides = np.array([places[0] - half, places[0] + half])
        ends = drawn.to_pixels(np.asarray(layers.to_world(sides)))
        width = float(np.abs(ends[1] - ends[0]).max())
        colors = ON_LIGHT if overlay.is_on_light else ON_DARK
        for panel, (x, y) in zip(panels, pixels.tolist(), strict=True):
            if not np.isfinite(x + y):
                continue
            below = panel.below / (panel.width * (1 + GAP)) * width
            room = room_at(x, width, drawn.cell[0], drawn.cell[2])
            name, *told = caption(panel, room, below)
            write(painter, QPointF(x, y), name, True, colors)
            line = 2 * half_size(name, is_given=True)[0]
            for number, text in enumerate(told, 1):
                write(painter, QPointF(x, y + number * line), text, False, colors)

    overlay.add(paint, lambda: session.panels is not None)
