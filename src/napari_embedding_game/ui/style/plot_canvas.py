"""One plot on show, painted by matplotlib as in a file, to click and to drag on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPoint, QRect, QSize, Qt, QTimer, Signal
from qtpy.QtWidgets import QRubberBand, QScrollArea

from napari_embedding_game.data.export.plots import Plot
from napari_embedding_game.data.palette import category_colors, hexes
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.style.form_widgets import Text, is_adding_click
from napari_embedding_game.ui.style.layouts import (
    escape_tooltip,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.style.theme import ThemeColors

MIN_DRAG = 4
"""Pixels; what is shorter is a click."""
REST = 3.0
"""After painting it rests so many times as long: a running game changes all."""
FONT_SIZE, N_COLORS = 8, 8
DENSITY, MAX_GROWTH = 80, 1.5
"""Pixels of an inch of a plot that is larger than the room, and so is scrolled; and how
much larger it grows where there is room.

Its letters are 8 points at 100 dots per inch, and 10 points in a file.
"""
TooltipText = Callable[[float, float], str]


class PlotCanvas(QScrollArea):
    """Paints a plot in the colours of the theme; matplotlib comes with the first one.

    Parameters
    ----------
    tip : callable
        Returns the text for a position (x, y) of the axes under the mouse.
    is_dragged : bool
        Whether a rectangle can be dragged.
    """

    clicked = Signal(float, float, bool)
    """A position (x, y) of the axes, also outside; whether it adds to the selection."""
    dragged = Signal(float, float, float, float, bool)
    """Two corners (x, y) of a rectangle, and whether it adds to the selection."""

    def __init__(self, tip: TooltipText, *, is_dragged: bool = False) -> None:
        super().__init__()
        self._tip, self._is_dragged = tip, is_dragged
        self._colors: ThemeColors | None = None
        self._is_scrolled = False
        self.is_due = False
        """Whether it is to be painted anew, once it is seen."""
        self._begun: tuple[QPoint, tuple[float, float]] | None = None
        """Where the button went down, on the canvas and in the axes."""
        self._rests_until = 0.0
        self._band = QRubberBand(QRubberBand.Shape.Rectangle, self)
        self.plot: Plot | None = None
        self.canvas: Any = None
        """The figure as a widget, once there is one."""
        self.axes: Any = None
        self._soon = QTimer(self, singleShot=True)
        self._soon.timeout.connect(self._paint)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setMinimumSize(180, 120)
        self.setAccessibleName("Plot")
        self.setWidget(widget_with_layout(vertical_box()))

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors, self._rests_until = colors, 0.0
        self._repaint()

    def sizeHint(self) -> QSize:
        """Return a size in which names can be read."""
        return QSize(320, 320)

    def show_plot(self, plot: Plot | None, *, is_scrolled: bool = False) -> None:
        """Show a plot, or nothing, at once: no former data are seen meanwhile.

        ``is_scrolled``: where it has more parts than room, it is as large as in a file.
        """
        self.plot, self._is_scrolled = plot, is_scrolled
        if plot is None and self.axes is not None:
            self._clear()
            self.canvas.draw()
        self._repaint()

    def pixel(self, x: float, y: float) -> QPoint:
        """Return where on :attr:`canvas` a position of the axes is drawn."""
        across, up = self.axes.transData.transform((x, y)) / self._ratio
        return QPoint(round(across), round(self.canvas.height() - 1 - up))

    def nearest(
        self, positions: NDArray[np.floating], x: float, y: float, reach: float = 8.0
    ) -> int | None:
        """Return which position (n, 2) is at most so many pixels away, or None."""
        to_pixels = self.axes.transData.transform
        pixels = np.hypot(*(to_pixels(positions) - to_pixels((x, y))).T) / self._ratio
        if not np.isfinite(pixels).any() or np.nanmin(pixels) > reach:
            return None
        return int(np.nanargmin(pixels))

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        if self.is_due:
            self._repaint()

    # Inside

    @property
    def _ratio(self) -> float:
        return float(self.canvas.device_pixel_ratio)

    def _repaint(self) -> None:
        self.is_due = True
        if self.isVisible() and not self._soon.isActive():
            wait = self._rests_until - time.monotonic()
            self._soon.start(max(0, round(1000 * wait)))

    def _paint(self) -> None:
        """Paint anew what is to be seen."""
        if self._colors is None or (self.plot is None and self.canvas is None):
            return
        from matplotlib import rc_context

        if self.canvas is None:
            self._make()
        begun, self.is_due = time.monotonic(), False
        figure = self.canvas.figure
        self._clear()
        figure.set_facecolor(self._colors.background.name())
        size = self.plot.size() if self.plot and self._is_scrolled else (0, 0)
        self.canvas.setMinimumSize(*(round(DENSITY * side) for side in size))
        if any(size):
            most = (round(MAX_GROWTH * DENSITY * side) for side in size)
            self.widget().setMaximumSize(*most)
        if self.plot is not None:
            figure.set_layout_engine("constrained")
            with rc_context(_matplotlib_style(self._colors)):
                self.axes = figure.add_subplot()
                self.plot.paint(self.axes)
            figure.set_layout_engine("none")  # the room does not change until then
        self.canvas.draw()
        end = time.monotonic()
        self._rests_until = end + REST * (end - begun)

    def _clear(self) -> None:
        self.canvas.figure.clear()
        self.axes = None

    def _make(self) -> None:
        from matplotlib.backends.backend_qtagg import FigureCanvasQTAgg
        from matplotlib.figure import Figure

        self.canvas = FigureCanvasQTAgg(Figure())
        self.canvas.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.widget().layout().addWidget(self.canvas)
        self.widget().layout().activate()  # it has its size
        for event, slot in (
            ("button_press_event", self._on_press),
            ("motion_notify_event", self._on_move),
            ("button_release_event", self._on_release),
            ("resize_event", self._on_resize),
            ("scroll_event", lambda event: self.wheelEvent(event.guiEvent)),
        ):
            self.canvas.mpl_connect(event, slot)

    def _position_at(self, event: Any) -> tuple[float, float]:
        x, y = self.axes.transData.inverted().transform((event.x, event.y))
        return float(x), float(y)

    def _on_resize(self, event: object) -> None:
        self.is_due = True
        self._soon.start(0)

    def _on_press(self, event: Any) -> None:
        if event.button == 1 and self.axes is not None:
            self._begun = _event_pixel(event), self._position_at(event)

    def _on_move(self, event: Any) -> None:
        if self.axes is None:
            return
        if self._begun is None:
            self.canvas.setToolTip(escape_tooltip(self._tip(*self._position_at(event))))
        elif self._is_drag(event):
            ends = self._begun[0], _event_pixel(event)
            corners = (self.canvas.mapTo(self, pixel) for pixel in ends)
            self._band.setGeometry(QRect(*corners).normalized())
            self._band.show()

    def _on_release(self, event: Any) -> None:
        if self._begun is None or event.button != 1:
            return
        is_drag, begin = self._is_drag(event), self._begun[1]
        self._band.hide()
        self._begun = None
        if self.axes is None:  # the plot went meanwhile
            return
        position, is_added = self._position_at(event), is_adding_click(event.guiEvent)
        if is_drag:
            self.dragged.emit(*begin, *position, is_added)
        else:
            self.clicked.emit(*position, is_added)

    def _is_drag(self, event: Any) -> bool:
        moved = _event_pixel(event) - self._begun[0]
        return self._is_dragged and moved.manhattanLength() >= MIN_DRAG


class PlotPane(Listener):
    """Choices, a sentence below them, and a canvas with a plot of a session.

    ``tip`` and ``is_dragged`` are those of :class:`PlotCanvas`.
    """

    def __init__(
        self, session: Session, tip: TooltipText, *, is_dragged: bool = False
    ) -> None:
        super().__init__(session)
        self.state = Text()
        self.canvas = PlotCanvas(tip, is_dragged=is_dragged)
        self.head = vertical_box()
        parts = self.head, self.state, self.canvas
        self.setLayout(vertical_box(*parts, margins=(0, 4, 0, 0)))
        self.layout().setStretchFactor(self.canvas, 1)

    def clear_data(self) -> None:
        """Keep nothing of data that are gone."""
        self.canvas.show_plot(None)


def _event_pixel(event: Any) -> QPoint:
    return event.guiEvent.position().toPoint()


def _matplotlib_style(colors: ThemeColors) -> dict[str, Any]:
    """Return matplotlib's settings for a theme of napari, with the map's colours."""
    from matplotlib import cycler

    text, ground = colors.text.name(), colors.background.name()
    names = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color")
    style: dict[str, Any] = dict.fromkeys((*names, "ytick.color"), text)
    style |= {"axes.edgecolor": colors.dim.name(), "axes.facecolor": ground}
    style["axes.prop_cycle"] = cycler(color=hexes(category_colors(N_COLORS)))
    return style | {"font.size": FONT_SIZE, "axes.titlesize": FONT_SIZE + 1}
