"""Widgets below and next to each other, buttons and menus, in a line each."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtGui import QAction
from qtpy.QtWidgets import (
    QHBoxLayout,
    QLayout,
    QMenu,
    QProgressBar,
    QPushButton,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

LETTERS = 30
"""In a line of a button, at most."""
Entry = tuple[str, Callable[[], Any], str]
"""Text, what it does, and its tooltip."""


def column(
    *parts: Any, spacing: int = 4, margins: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> QVBoxLayout:
    """Return a layout of widgets, of Qt or magicgui, and layouts from top to bottom."""
    layout = QVBoxLayout()
    layout.setContentsMargins(*margins)
    layout.setSpacing(spacing)
    for part in parts:
        _add(layout, part, 0)
    return layout


def row(
    *parts: Any, spacing: int = 4, wide: Iterable[Any] | None = None
) -> QHBoxLayout:
    """Return a layout from left to right; the first, or what is ``wide``, has the room.

    None leaves the rest free.
    """
    layout = QHBoxLayout()
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing)
    wide = parts[:1] if wide is None else list(wide)
    for part in parts:
        _add(layout, part, int(any(part is one for one in wide)))
    return layout


def empty(layout: QLayout) -> None:
    """Take all widgets out of a layout, and delete them."""
    while (item := layout.takeAt(0)) is not None:
        item.widget().hide()
        item.widget().deleteLater()


def evenly(*parts: Any) -> QHBoxLayout:
    """Return a layout from left to right, each as wide as the others."""
    return row(*parts, wide=parts)


def panel(layout: QLayout) -> QWidget:
    """Return a widget with this layout."""
    widget = QWidget()
    widget.setLayout(layout)
    return widget


def push_button(
    text: str, tip: str, act: Callable[[], Any] | None = None, role: str = ""
) -> QPushButton:
    """Return a button that calls a function without arguments."""
    button = QPushButton(literal(text))
    button.setToolTip(as_tip(tip))
    button.setProperty("role", role)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click draws no frame around it
    if act is not None:
        button.clicked.connect(lambda _=False: act())
    return button


def literal(text: str) -> str:
    """Return what shows a text as it is: Qt takes "&" for a key to press."""
    return text.replace("&", "&&")


def as_tip(text: str) -> str:
    """Return what shows a text as it is in a tooltip or a message box.

    Qt takes one with a tag for HTML: a name might draw a picture, or hide a part.
    """
    if not Qt.mightBeRichText(text):
        return text
    return f"<span style='white-space:pre-wrap'>{escape(text)}</span>"


def in_lines(text: str, n_letters: int = LETTERS) -> str:
    """Return a text in lines of a button, which widen no dock."""
    return "\n".join(textwrap.wrap(text, n_letters))


def slim_bar() -> QProgressBar:
    """Return a thin bar of progress, from 0 to 100."""
    bar = QProgressBar()
    bar.setProperty("role", "slim")
    bar.setTextVisible(False)
    bar.setFixedHeight(6)
    bar.setRange(0, 100)
    return bar


def move_bar(bar: QProgressBar, value: int, top: int) -> None:
    """Set a bar and have it drawn with all else: alone it draws the whole window."""
    if (bar.value(), bar.maximum()) != (value, top):
        bar.setUpdatesEnabled(False)
        bar.setMaximum(top)
        bar.setValue(value)
        bar.setUpdatesEnabled(True)


def add_entries(menu: QMenu, entries: Iterable[Entry]) -> list[QAction]:
    """Add entries to a menu."""
    menu.setToolTipsVisible(True)
    actions = []
    for text, act, tip in entries:
        action = menu.addAction(literal(text))
        action.setToolTip(as_tip(tip))
        action.triggered.connect(lambda _=False, act=act: act())
        actions.append(action)
    return actions


def _add(layout: QVBoxLayout | QHBoxLayout, part: Any, stretch: int) -> None:
    if part is None:
        layout.addStretch(1)
    elif isinstance(part, QLayout):
        layout.addLayout(part, stretch)
    else:
        layout.addWidget(part if isinstance(part, QWidget) else part.native, stretch)


def plain_tabs(corner: QWidget) -> QTabWidget:
    """Return tabs without a frame, and something in their corner."""
    tabs = QTabWidget()
    tabs.setDocumentMode(True)
    tabs.tabBar().setDrawBase(False)
    tabs.setUsesScrollButtons(False)  # of large letters some go instead
    tabs.setElideMode(Qt.TextElideMode.ElideRight)
    tabs.setCornerWidget(corner)
    tabs.setFocusProxy(None)  # Tab goes to the bar: a hidden one let nobody past
    tabs.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return tabs
