"""Legend of the map's colours: levels or a colour scale."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QRectF, QSignalBlocker, Qt, Signal
from qtpy.QtGui import QColor, QImage, QMouseEvent, QPainter, QPen, QPixmap
from qtpy.QtWidgets import QGridLayout, QLabel, QMenu, QWidget
from superqt import QRangeSlider

from napari_embedding_game.ui.style.coloring import Legend
from napari_embedding_game.ui.style.colors import value_colors
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.layouts import column, panel, push_button
from napari_embedding_game.ui.style.level_click import CLICK_TIP, adds

TWO_COLUMNS_FROM = 9
"""Levels from which the legend takes two columns."""
SWATCH = 11
RING = 1.5
"""Line of the swatch of a level that is hidden."""
HIDE, ISOLATE, SHOW, SHOW_ALL = "hide", "isolate", "show", "show all"
HIDE_TIP = "Right-click to hide it, or to show it alone."
HIDDEN_TIP = "Hidden: click to show its points again."
HIDDEN_MEANS = (
    "Hidden points are not drawn and cannot be pointed at, and figures leave them out. "
    "Clusters, tables, comparisons and data files have all points. Landmarks are of "
    "the whole map, and not shown meanwhile."
)
LIMITS_TIP = "Values that get the first and the last colour: drag the handles."
STEPS = 500
"""Places that a handle of the limits can stand at."""


class LegendView(QWidget):
    """Shows one legend: levels, a scale, or the sentence that is its title."""

    limits_changed = Signal(tuple)
    """The (low, high) that a person chose for a scale."""
    picked = Signal(int, bool)
    """Place of the level that was clicked, and whether it is to be added."""
    hiding_requested = Signal(str, int)
    """What is to be done to the level of a place: ``HIDE``, ``ISOLATE``, ``SHOW``, or
    ``SHOW_ALL`` to all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.caption, self.note = text_label(), text_label(), text_label()
        self.note.setToolTip(HIDDEN_MEANS)
        self.levels, self.scale = _Levels(self), _Scale(self)
        self.show_all = push_button(
            "Show all",
            "Draw the points of all levels again.",
            lambda: self.hiding_requested.emit(SHOW_ALL, -1),
        )
        self._body = panel(column(self.text, self.levels, self.scale))
        parts = self._body, self.note, self.show_all, self.caption
        self.setLayout(column(*parts, margins=(0, 2, 0, 0)))
        self.set_legend(Legend(""))

    def set_legend(self, legend: Legend) -> None:
        """Show how to read these colours, and what is hidden."""
        is_scale = legend.limits is not None
        has_levels = legend.colors is not None and bool(legend.levels)
        show_text(self.text, "" if is_scale or has_levels else legend.title)
        show_text(self.note, legend.note)
        show_text(self.caption, legend.caption)
        self.show_all.setVisible(bool(legend.note))
        self.scale.setVisible(is_scale)
        self.levels.setVisible(has_levels)
        if is_scale:
            self.scale.show_limits(legend)
        elif has_levels:
            self.levels.show_levels(legend)

    def show_body(self, shown: bool) -> None:
        """Show what the colours mean, or leave that to another list."""
        self._body.setVisible(shown)


class _Scale(QWidget):
    """A bar from low to high, whose limits can be moved."""

    def __init__(self, view: LegendView) -> None:
        super().__init__()
        self._view = view
        self._extent = (0.0, 1.0)
        self.low, self.high = QLabel(), QLabel()
        self.slider = QRangeSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, STEPS)
        self.slider.setToolTip(LIMITS_TIP)
        self.slider.valueChanged.connect(self._on_slider)
        bar = QLabel()
        bar.setScaledContents(True)
        bar.setFixedHeight(SWATCH)
        bar.setMinimumWidth(1)
        shades = (value_colors(np.linspace(0, 1, 256), (0, 1)) * 255).astype(np.uint8)
        data = shades.tobytes()  # which the image does not copy
        picture = QImage(data, 256, 1, QImage.Format.Format_RGBA8888)
        bar.setPixmap(QPixmap.fromImage(picture))
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(0)
        grid.addWidget(self.low, 0, 0, 2, 1)
        grid.addWidget(bar, 0, 1)
        grid.addWidget(self.slider, 1, 1)
        grid.addWidget(self.high, 0, 2, 2, 1)
        grid.setColumnStretch(1, 1)

    def show_limits(self, legend: Legend) -> None:
        """Show the limits of a legend within its extent."""
        assert legend.limits is not None
        self.low.setText(f"{legend.limits[0]:.3g}")
        self.high.setText(f"{legend.limits[1]:.3g}")
        self._extent = low, high = legend.extent or legend.limits
        places = (np.array(legend.limits) - low) * STEPS / (high - low)
        if not self.slider.isSliderDown():
            with QSignalBlocker(self.slider):
                self.slider.setValue([round(p) for p in np.clip(places, 0, STEPS)])

    def _on_slider(self, ends: tuple[int, int]) -> None:
        low, high = self._extent
        step = (high - low) / STEPS
        first, last = ends[0], max(ends[1], ends[0] + 1)
        self._view.limits_changed.emit((low + first * step, low + last * step))


class _Levels(QWidget):
    """A disc and a name for each level."""

    def __init__(self, view: LegendView) -> None:
        super().__init__()
        self._view = view
        self._hidden: frozenset[int] = frozenset()
        self._rows: list[tuple[QLabel, QLabel]] = []
        self._n_shown = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(6)
        self._grid.setVerticalSpacing(1)
        self._grid.setColumnStretch(1, 1)

    def show_levels(self, legend: Legend) -> None:
        """Show the levels of a legend."""
        assert legend.colors is not None
        if len(legend.levels) != self._n_shown:
            self._place(len(legend.levels))
        self._hidden = legend.hidden
        levels = zip(legend.levels, legend.colors, self._rows, strict=False)
        for place, ((level, remark), rgba, (disc, name)) in enumerate(levels):
            is_hidden = place in self._hidden
            disc.setPixmap(swatch(rgba, is_hollow=is_hidden))
            name.setText(level)
            font = name.font()
            font.setStrikeOut(is_hidden)
            name.setFont(font)
            told = f"{level}: {remark}" if remark else level
            tip = HIDDEN_TIP if is_hidden else f"{CLICK_TIP}\n{HIDE_TIP}"
            for label in (disc, name):
                label.setToolTip(f"{told}\n{tip}")

    def _place(self, n_levels: int) -> None:
        while len(self._rows) < n_levels:
            name = text_label("", "plain")
            name.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
            self._rows.append((QLabel(), name))
        self._n_shown = n_levels
        is_long = n_levels >= TWO_COLUMNS_FROM
        n_rows = -(-n_levels // 2) if is_long else n_levels
        for number, labels in enumerate(self._rows):
            block, row = divmod(number, n_rows)
            for side, label in enumerate(labels):
                if number < n_levels:
                    self._grid.addWidget(label, row, 2 * block + side)
                label.setVisible(number < n_levels)
        self._grid.setColumnStretch(3, int(is_long))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick the level under the mouse, or offer to hide it."""
        under = self.childAt(event.pos())
        place = next((n for n, row in enumerate(self._rows) if under in row), None)
        if place is None:
            super().mousePressEvent(event)
        elif event.button() == Qt.MouseButton.RightButton:
            self.menu_of(place).popup(event.globalPosition().toPoint())
        elif place in self._hidden:
            self._view.hiding_requested.emit(SHOW, place)
        else:
            self._view.picked.emit(place, adds(event))

    def menu_of(self, place: int) -> QMenu:
        """Return what can be done to a level, as a menu that is gone once closed."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        is_hidden, n_seen = place in self._hidden, self._n_shown - len(self._hidden)
        is_alone = n_seen == 1 and not is_hidden
        for text, action, is_off in (
            ("Show" if is_hidden else "Hide", SHOW if is_hidden else HIDE, is_alone),
            ("Show only this", ISOLATE, is_alone),
            ("Show all", SHOW_ALL, not self._hidden),
        ):
            entry = menu.addAction(text)
            entry.setDisabled(is_off)
            entry.triggered.connect(
                lambda _=False, action=action: self._view.hiding_requested.emit(
                    action, place
                )
            )
        return menu


def swatch(rgba: np.ndarray, *, is_hollow: bool = False) -> QPixmap:
    """Return a disc of one colour, or a ring of it."""
    pixmap, color = QPixmap(SWATCH, SWATCH), qcolor(rgba)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    edge = RING / 2 if is_hollow else 0.0
    painter.setPen(QPen(color, RING) if is_hollow else Qt.PenStyle.NoPen)
    painter.setBrush(Qt.BrushStyle.NoBrush if is_hollow else color)
    painter.drawEllipse(QRectF(edge, edge, SWATCH - 2 * edge, SWATCH - 2 * edge))
    painter.end()
    return pixmap


def qcolor(rgba: np.ndarray) -> QColor:
    """Return red, green, blue and opacity, 0 to 1, as Qt has a colour."""
    return QColor.fromRgbF(*(float(part) for part in rgba))
