"""Legend of the map's colours: levels or a colour scale."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QRectF, QSignalBlocker, Qt, Signal
from qtpy.QtGui import (
    QColor,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
)
from qtpy.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from superqt import QRangeSlider

from napari_embedding_game.ui.style.coloring import Legend
from napari_embedding_game.ui.style.colors import value_colors
from napari_embedding_game.ui.style.form_widgets import ignore_idle_wheel, text_label
from napari_embedding_game.ui.style.level_click import CLICK_TIP, adds

TWO_COLUMNS_FROM = 9
"""Levels from which the legend takes two columns."""
SWATCH = 11
RING = 1.5
"""Line of the swatch of a level that is hidden."""
HIDE, ISOLATE, SHOW, SHOW_ALL = "hide", "isolate", "show", "show all"
HIDE_TIP = "Right-click to hide it, or to show it alone (Alt+click)."
HIDDEN_TIP = "Hidden: click to show its points again."
HIDDEN_MEANS = (
    "Hidden points are not drawn and cannot be pointed at, and figures leave them out. "
    "Clusters, tables, comparisons and data files have all points. Landmarks are of "
    "the whole map, and not shown meanwhile."
)
STEPS = 500
"""Places that a handle of the limits can stand at."""


class LegendView(QWidget):
    """Shows one legend; ``set_legend`` replaces it.

    ``limits_changed`` brings the (low, high) that a person chose for a scale,
    ``picked`` the place of the level that was clicked, and whether it is to be added,
    ``hiding_requested`` what is to be done to the level of a place: ``HIDE``,
    ``ISOLATE``, ``SHOW``, or ``SHOW_ALL`` to all of them.
    """

    limits_changed = Signal(tuple)
    picked = Signal(int, bool)
    hiding_requested = Signal(str, int)

    def __init__(self) -> None:
        super().__init__()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 2, 0, 0)
        self._shown: Legend | None = None
        self._body: QWidget | None = None
        self._has_body = True
        self.note = text_label()
        self.note.setToolTip(HIDDEN_MEANS)
        self.show_all = QPushButton("Show all")
        self.show_all.setToolTip("Draw the points of all levels again.")
        self.show_all.clicked.connect(lambda: self.hiding_requested.emit(SHOW_ALL, -1))
        self._hidden = QWidget()
        row = QHBoxLayout(self._hidden)
        row.setContentsMargins(0, 4, 0, 0)
        row.addWidget(self.note, 1)
        row.addWidget(self.show_all)
        self._hidden.hide()
        self._layout.addWidget(self._hidden)
        self.caption = text_label()
        self.caption.hide()
        self._layout.addWidget(self.caption)

    def set_legend(self, legend: Legend) -> None:
        """Show how to read these colours, and what is hidden."""
        self._tell_hidden(legend.note)
        self.caption.setText(legend.caption)
        self.caption.setVisible(bool(legend.caption))
        kind = _kind(legend)
        if kind is None:
            self._replace(text_label(legend.title))
        elif isinstance(self._body, kind):
            self._body.set_legend(legend)
        else:
            body = kind(legend)
            if isinstance(body, _Scale):
                body.limits_changed.connect(self.limits_changed)
                ignore_idle_wheel(body)  # made after the dock, which does it for all
            else:
                body.picked.connect(self.picked)
                body.hiding_requested.connect(self.hiding_requested)
            self._replace(body)

    def show_body(self, shown: bool) -> None:
        """Show what the colours mean, or leave that to another list."""
        self._has_body = shown
        if self._body is not None:
            self._body.setVisible(shown)

    def _replace(self, body: QWidget) -> None:
        if self._body is not None:
            self._layout.removeWidget(self._body)
            self._body.hide()
            self._body.deleteLater()
        self._body = body
        self._layout.insertWidget(0, body)
        body.setVisible(self._has_body)

    def _tell_hidden(self, note: str) -> None:
        self.note.setText(note)
        self._hidden.setVisible(bool(note))


class _Scale(QWidget):
    """A bar from low to high; the limits can be moved where that means something."""

    limits_changed = Signal(tuple)

    def __init__(self, legend: Legend) -> None:
        super().__init__()
        self._low, self._high = QLabel(), QLabel()
        self._extent = (0.0, 1.0)
        self._slider = QRangeSlider(Qt.Orientation.Horizontal)
        self._slider.setRange(0, STEPS)
        self._slider.setToolTip(
            "Values that get the first and the last colour: drag the handles."
        )
        bar = QVBoxLayout()
        bar.setSpacing(0)
        bar.addWidget(_Bar())
        bar.addWidget(self._slider)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._low)
        layout.addLayout(bar, 1)
        layout.addWidget(self._high)
        self._slider.valueChanged.connect(self._on_slider)
        self.set_legend(legend)

    def set_legend(self, legend: Legend) -> None:
        """Show other limits."""
        assert legend.limits is not None
        for label, value in zip((self._low, self._high), legend.limits, strict=True):
            label.setText(f"{value:.3g}")
        self._extent = legend.extent or legend.limits
        low, high = self._extent
        places = [STEPS * (value - low) / (high - low) for value in legend.limits]
        if not self._slider.isSliderDown():
            with QSignalBlocker(self._slider):
                self._slider.setValue([round(p) for p in np.clip(places, 0, STEPS)])

    def _on_slider(self, ends: tuple[int, int]) -> None:
        low, high = self._extent
        first, last = ends[0], max(ends[1], ends[0] + 1)
        step = (high - low) / STEPS
        self.limits_changed.emit((low + first * step, low + last * step))


class _Bar(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(SWATCH)

    def paintEvent(self, event: QPaintEvent) -> None:
        gradient = QLinearGradient(0, 0, self.width(), 0)
        places = np.linspace(0, 1, 9)
        for place, rgba in zip(places, value_colors(places, (0.0, 1.0)), strict=True):
            gradient.setColorAt(place, qcolor(rgba))
        painter = QPainter(self)
        painter.fillRect(self.rect(), gradient)


class _Levels(QWidget):
    """A disc and a name for each level; further legends are written into the rows."""

    picked = Signal(int, bool)
    hiding_requested = Signal(str, int)

    def __init__(self, legend: Legend) -> None:
        super().__init__()
        self._hidden: frozenset[int] = frozenset()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(6)
        self._grid.setVerticalSpacing(1)
        self._rows: list[tuple[QLabel, QLabel]] = []
        self._n_shown = 0
        self.set_legend(legend)

    def set_legend(self, legend: Legend) -> None:
        """Show other levels."""
        assert legend.colors is not None
        while len(self._rows) < len(legend.levels):
            name = text_label("", "plain")
            name.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
            self._rows.append((QLabel(), name))
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

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick the level under the mouse, or offer to hide it."""
        under = self.childAt(event.pos())
        places = [n for n, labels in enumerate(self._rows) if under in labels]
        if not places or not self._take(places[0], event):
            super().mousePressEvent(event)

    def _take(self, place: int, event: QMouseEvent) -> bool:
        """Do what a click on a level asks for; return whether it asks for anything."""
        if event.button() == Qt.MouseButton.RightButton:
            self.menu_of(place).popup(event.globalPosition().toPoint())
        elif event.button() != Qt.MouseButton.LeftButton:
            return False
        elif event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self._ask(SHOW_ALL if self._is_alone(place) else ISOLATE, place)
        elif place in self._hidden:
            self._ask(SHOW, place)
        else:
            self.picked.emit(place, adds(event))
        return True

    def menu_of(self, place: int) -> QMenu:
        """Return what can be done to a level, as a menu that is gone once closed."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        is_hidden = place in self._hidden
        n_shown = self._n_shown - len(self._hidden)
        for text, action, can in (
            ("Show" if is_hidden else "Hide", SHOW if is_hidden else HIDE, True),
            ("Show only this", ISOLATE, not self._is_alone(place)),
            ("Show all", SHOW_ALL, bool(self._hidden)),
        ):
            entry = menu.addAction(text)
            entry.setEnabled(can and (action != HIDE or n_shown > 1))
            entry.triggered.connect(
                lambda _=False, action=action: self._ask(action, place)
            )
        return menu

    def _ask(self, action: str, place: int) -> None:
        self.hiding_requested.emit(action, place)

    def _is_alone(self, place: int) -> bool:
        return place not in self._hidden and len(self._hidden) == self._n_shown - 1

    def _place(self, n_levels: int) -> None:
        self._n_shown = n_levels
        is_long = n_levels >= TWO_COLUMNS_FROM
        n_rows = -(-n_levels // 2) if is_long else n_levels
        for number, (disc, name) in enumerate(self._rows):
            block, row = divmod(number, n_rows)
            if number < n_levels:
                self._grid.addWidget(disc, row, 2 * block)
                self._grid.addWidget(name, row, 2 * block + 1)
            for label in (disc, name):
                label.setVisible(number < n_levels)
        self._grid.setColumnStretch(1, 1)
        self._grid.setColumnStretch(3, int(is_long))


def _kind(legend: Legend) -> type[_Scale | _Levels] | None:
    """Return the view that shows such a legend, None where a sentence does."""
    if legend.limits is not None:
        return _Scale
    return _Levels if legend.levels and legend.colors is not None else None


def swatch(rgba: np.ndarray, *, is_hollow: bool = False) -> QPixmap:
    """Return a disc of one colour, or a ring of it."""
    pixmap = QPixmap(SWATCH, SWATCH)
    pixmap.fill(QColor(0, 0, 0, 0))
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if is_hollow:
        painter.setPen(QPen(qcolor(rgba), RING))
        edge = RING / 2
        painter.drawEllipse(QRectF(edge, edge, SWATCH - RING, SWATCH - RING))
    else:
        painter.setPen(QColor(0, 0, 0, 0))
        painter.setBrush(qcolor(rgba))
        painter.drawEllipse(QRectF(0, 0, SWATCH, SWATCH))
    painter.end()
    return pixmap


def qcolor(rgba: np.ndarray) -> QColor:
    """Return red, green, blue and opacity, 0 to 1, as Qt has a colour."""
    return QColor.fromRgbF(*(float(part) for part in rgba))
