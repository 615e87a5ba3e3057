"""A widget that shows a matplotlib plot, and reports clicks and drags on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPoint, QRect, QSize, Qt, QTimer, Signal
from qtpy.QtWidgets import QRubberBand, QScrollArea

from napari_embedding_game.data.export.plots import Plot
from napari_embedding_game.data.palette import make_palette_colors, to_hex_colors
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.style.form_widgets import TextLabel, is_adding_click
from napari_embedding_game.ui.style.layouts import (
    escape_tooltip,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.style.theme import ThemeColors

MIN_DRAG = 4
"""Pixels from which on a movement is a drag, and no click."""
PAUSE_RATIO = 3.0
"""The pause after painting, in durations of painting: a running game asks often."""
FONT_SIZE, N_COLORS = 8, 8
DENSITY, MAX_GROWTH, MAX_GROWTH_IN_WINDOW = 80, 1.5, 4.0
"""Pixels per inch of a scrolled plot, and the factor by which it may grow in the dock
and in a window of its own.

Its letters are 8 points at 100 dots per inch, and 10 points in a file.
"""
TooltipText = Callable[[float, float], str]


class PlotCanvas(QScrollArea):
    """Paints a plot in the colours of the theme; the first plot imports matplotlib.

    Parameters
    ----------
    tooltip_text : callable
        Returns the tooltip for a position (x, y) of the axes under the mouse.
    can_drag : bool
        Whether a rectangle can be dragged.
    """

    clicked = Signal(float, float, bool)
    """Position (x, y) in the axes or beyond, and whether it adds to the selection."""
    dragged = Signal(float, float, float, float, bool)
    """Two corners (x, y) of a rectangle, and whether it adds to the selection."""

    def __init__(self, tooltip_text: TooltipText, *, can_drag: bool = False) -> None:
        super().__init__()
        self._tooltip_text, self._can_drag = tooltip_text, can_drag
        self._colors: ThemeColors | None = None
        self._is_scrolled, self._max_growth = False, MAX_GROWTH
        self.needs_paint = False
        """Whether the plot must be painted again once it is visible."""
        self._press_place: tuple[QPoint, tuple[float, float]] | None = None
        """Where the mouse button was pressed, in pixels of the canvas and in the axes.
        """
        self._pause_end = 0.0
        self._band = QRubberBand(QRubberBand.Shape.Rectangle, self)
        self.plot: Plot | None = None
        self.canvas: Any = None
        """The figure's widget; None before the first plot."""
        self.axes: Any = None
        self._paint_timer = QTimer(self, singleShot=True)
        self._paint_timer.timeout.connect(self._paint_plot)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setMinimumSize(180, 120)
        self.setAccessibleName("Plot")
        self.setWidget(widget_with_layout(vertical_box()))

    def set_theme(self, colors: ThemeColors) -> None:
        """Paint the plot again in the colours of napari's theme, without a pause.

        Before the first theme no plot is painted.
        """
        self._colors, self._pause_end = colors, 0.0
        self._request_paint()

    def sizeHint(self) -> QSize:
        """Return a size at which labels can be read."""
        return QSize(320, 320)

    def show_plot(self, plot: Plot | None, *, is_scrolled: bool = False) -> None:
        """Request that a plot is painted; None clears the canvas at once.

        With ``is_scrolled`` the plot has at least its size in a file at ``DENSITY``
        pixels per inch, grows up to a limit, and is scrolled.
        """
        self.plot, self._is_scrolled = plot, is_scrolled
        if plot is None and self.axes is not None:
            self._clear_figure()
            self.canvas.draw()
        self._request_paint()

    def limit_growth(self, is_in_window: bool) -> None:
        """Let a scrolled plot grow as far as in a window of its own, or in the dock."""
        self._max_growth = MAX_GROWTH_IN_WINDOW if is_in_window else MAX_GROWTH
        self._request_paint()

    def position_to_pixel(self, x: float, y: float) -> QPoint:
        """Return the pixel of :attr:`canvas` at which a position of the axes lies.

        A plot must have been painted.
        """
        across, up = self.axes.transData.transform((x, y)) / self._device_pixel_ratio
        return QPoint(round(across), round(self.canvas.height() - 1 - up))

    def find_nearest_position(
        self,
        positions: NDArray[np.floating],
        x: float,
        y: float,
        max_pixels: float = 8.0,
    ) -> int | None:
        """Return the index of the position (n, 2) nearest to (x, y).

        Positions are those of the axes, distances are in pixels.  None where no
        position is within ``max_pixels``; positions that are not finite are ignored.
        """
        to_pixels = self.axes.transData.transform
        pixels = (
            np.hypot(*(to_pixels(positions) - to_pixels((x, y))).T)
            / self._device_pixel_ratio
        )
        if not np.isfinite(pixels).any() or np.nanmin(pixels) > max_pixels:
            return None
        return int(np.nanargmin(pixels))

    def showEvent(self, event: object) -> None:
        """Paint a plot that was requested while the canvas was hidden."""
        super().showEvent(event)
        if self.needs_paint:
            self._request_paint()

    @property
    def _device_pixel_ratio(self) -> float:
        return float(self.canvas.device_pixel_ratio)

    def _request_paint(self) -> None:
        """Paint after the pause if the canvas is visible, else once it is shown."""
        self.needs_paint = True
        if self.isVisible() and not self._paint_timer.isActive():
            wait = self._pause_end - time.monotonic()
            self._paint_timer.start(max(0, round(1000 * wait)))

    def _paint_plot(self) -> None:
        """Paint the plot in the theme's colours, and note when the next may be painted.

        Without a plot the figure is cleared.  The figure's widget is made if needed;
        nothing is done before :meth:`set_theme`.
        """
        if self._colors is None or (self.plot is None and self.canvas is None):
            return
        from matplotlib import rc_context

        if self.canvas is None:
            self._make_figure_canvas()
        start, self.needs_paint = time.monotonic(), False
        figure = self.canvas.figure
        self._clear_figure()
        figure.set_facecolor(self._colors.background.name())
        size = self.plot.size() if self.plot and self._is_scrolled else (0, 0)
        self.canvas.setMinimumSize(*(round(DENSITY * side) for side in size))
        if any(size):
            most = (round(self._max_growth * DENSITY * side) for side in size)
            self.widget().setMaximumSize(*most)
        if self.plot is not None:
            figure.set_layout_engine("constrained")
            with rc_context(_make_matplotlib_style(self._colors)):
                self.axes = figure.add_subplot()
                self.plot.paint(self.axes)
            figure.set_layout_engine("none")  # paint() has laid the axes out
        self.canvas.draw()
        end = time.monotonic()
        self._pause_end = end + PAUSE_RATIO * (end - start)

    def _clear_figure(self) -> None:
        """Remove all axes from the figure; the canvas is not drawn."""
        self.canvas.figure.clear()
        self.axes = None

    def _make_figure_canvas(self) -> None:
        """Make the widget of matplotlib's figure, and subscribe to its events."""
        from matplotlib.backends.backend_qtagg import FigureCanvasQTAgg
        from matplotlib.figure import Figure

        self.canvas = FigureCanvasQTAgg(Figure())
        self.canvas.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.widget().layout().addWidget(self.canvas)
        self.widget().layout().activate()  # the canvas gets its size before painting
        for event, slot in (
            ("button_press_event", self._on_button_pressed),
            ("motion_notify_event", self._on_mouse_moved),
            ("button_release_event", self._on_button_released),
            ("resize_event", self._on_canvas_resized),
            ("scroll_event", lambda event: self.wheelEvent(event.guiEvent)),
        ):
            self.canvas.mpl_connect(event, slot)

    def _find_event_position(self, event: Any) -> tuple[float, float]:
        """Return the position (x, y) of an event in the axes, or beyond them."""
        x, y = self.axes.transData.inverted().transform((event.x, event.y))
        return float(x), float(y)

    def _on_canvas_resized(self, event: object) -> None:
        """Paint the plot again in the next turn of the event loop, without a pause."""
        self.needs_paint = True
        self._paint_timer.start(0)

    def _on_button_pressed(self, event: Any) -> None:
        """Note the place of a press of the left button, if there is a plot."""
        if event.button == 1 and self.axes is not None:
            self._press_place = _event_pixel(event), self._find_event_position(event)

    def _on_mouse_moved(self, event: Any) -> None:
        """Show the tooltip at the mouse, or in a drag the rectangle.

        Nothing is shown without a plot.
        """
        if self.axes is None:
            return
        if self._press_place is None:
            self.canvas.setToolTip(
                escape_tooltip(self._tooltip_text(*self._find_event_position(event)))
            )
        elif self._is_drag_event(event):
            ends = self._press_place[0], _event_pixel(event)
            corners = (self.canvas.mapTo(self, pixel) for pixel in ends)
            self._band.setGeometry(QRect(*corners).normalized())
            self._band.show()

    def _on_button_released(self, event: Any) -> None:
        """Emit a click or a drag, and hide the rectangle.

        Nothing is emitted where the plot was cleared meanwhile.
        """
        if self._press_place is None or event.button != 1:
            return
        is_drag, begin = self._is_drag_event(event), self._press_place[1]
        self._band.hide()
        self._press_place = None
        if self.axes is None:  # the plot was cleared during the drag
            return
        position, is_added = (
            self._find_event_position(event),
            is_adding_click(event.guiEvent),
        )
        if is_drag:
            self.dragged.emit(*begin, *position, is_added)
        else:
            self.clicked.emit(*position, is_added)

    def _is_drag_event(self, event: Any) -> bool:
        """Return whether the mouse is ``MIN_DRAG`` pixels from its press or farther.

        Never without ``can_drag``.
        """
        moved = _event_pixel(event) - self._press_place[0]
        return self._can_drag and moved.manhattanLength() >= MIN_DRAG


class PlotPane(Listener):
    """A pane with a head for choices, a state text, and a canvas with a plot.

    ``tooltip_text`` and ``can_drag`` are those of :class:`PlotCanvas`.
    """

    def __init__(
        self, session: Session, tooltip_text: TooltipText, *, can_drag: bool = False
    ) -> None:
        super().__init__(session)
        self.state = TextLabel()
        self.canvas = PlotCanvas(tooltip_text, can_drag=can_drag)
        self.head = vertical_box()
        parts = self.head, self.state, self.canvas
        self.setLayout(vertical_box(*parts, margins=(0, 4, 0, 0)))
        self.layout().setStretchFactor(self.canvas, 1)

    def clear_data(self) -> None:
        """Remove the plot of the former data."""
        self.canvas.show_plot(None)


def _event_pixel(event: Any) -> QPoint:
    return event.guiEvent.position().toPoint()


def _make_matplotlib_style(colors: ThemeColors) -> dict[str, Any]:
    """Return matplotlib's rc settings for a theme of napari.

    Lines of a plot have the first ``N_COLORS`` colours of the map's palette.
    """
    from matplotlib import cycler

    text, ground = colors.text.name(), colors.background.name()
    names = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color")
    style: dict[str, Any] = dict.fromkeys((*names, "ytick.color"), text)
    style |= {"axes.edgecolor": colors.dim.name(), "axes.facecolor": ground}
    style["axes.prop_cycle"] = cycler(
        color=to_hex_colors(make_palette_colors(N_COLORS))
    )
    return style | {"font.size": FONT_SIZE, "axes.titlesize": FONT_SIZE + 1}
