"""Build layouts, buttons, progress bars, menus and tabs in one call each."""

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

MAX_BUTTON_LETTERS = 30
"""The longest line of a button has so many letters."""
MenuEntry = tuple[str, Callable[[], Any], str]
"""The text of an entry, the function that it calls, and its tooltip."""


def vertical_box(
    *items: Any, spacing: int = 4, margins: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> QVBoxLayout:
    """Return a layout that holds widgets and layouts from top to bottom.

    A widget is of Qt or magicgui; None adds a stretch of free space.
    """
    layout = QVBoxLayout()
    layout.setContentsMargins(*margins)
    layout.setSpacing(spacing)
    for item in items:
        _add_to_box(layout, item, 0)
    return layout


def horizontal_box(
    *items: Any, spacing: int = 4, stretched: Iterable[Any] | None = None
) -> QHBoxLayout:
    """Return a layout that holds widgets and layouts from left to right.

    The items in ``stretched`` share the spare width; by default the first item has it.
    An item that is None adds a stretch of free space, which also takes spare width.
    """
    layout = QHBoxLayout()
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing)
    stretched = items[:1] if stretched is None else list(stretched)
    for item in items:
        _add_to_box(layout, item, int(any(item is other for other in stretched)))
    return layout


def clear_layout(layout: QLayout) -> None:
    """Remove and delete all widgets of a layout; it must hold widgets only."""
    while (item := layout.takeAt(0)) is not None:
        item.widget().hide()
        item.widget().deleteLater()


def equal_width_box(*items: Any) -> QHBoxLayout:
    """Return a layout from left to right whose items share the width equally."""
    return horizontal_box(*items, stretched=items)


def widget_with_layout(layout: QLayout) -> QWidget:
    """Return a new widget that has this layout."""
    widget = QWidget()
    widget.setLayout(layout)
    return widget


def push_button(
    text: str, tip: str, on_click: Callable[[], Any] | None = None, role: str = ""
) -> QPushButton:
    """Return a button with a tooltip that calls ``on_click`` without arguments.

    ``role`` is what the style sheet selects by, for instance "main" or "link".  Text
    and tooltip are shown as they are: "&" is no shortcut, and a tag is no HTML.
    """
    button = QPushButton(escape_ampersands(text))
    button.setToolTip(escape_tooltip(tip))
    button.setProperty("role", role)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves no focus frame
    if on_click is not None:
        button.clicked.connect(lambda _=False: on_click())
    return button


def escape_ampersands(text: str) -> str:
    """Return a text with each "&" doubled, since Qt reads "&" as a shortcut mark."""
    return text.replace("&", "&&")


def escape_tooltip(text: str) -> str:
    """Return a text, escaped where needed, that a tooltip or a message box shows as is.

    Qt renders a text with a tag as HTML: a name could show an image or hide letters.
    """
    if not Qt.mightBeRichText(text):
        return text
    return f"<span style='white-space:pre-wrap'>{escape(text)}</span>"


def wrap_button_text(text: str, n_letters: int = MAX_BUTTON_LETTERS) -> str:
    """Return a text wrapped into short lines, so that its button widens no dock."""
    return "\n".join(textwrap.wrap(text, n_letters))


def slim_progress_bar() -> QProgressBar:
    """Return a thin progress bar without text, from 0 to 100."""
    bar = QProgressBar()
    bar.setProperty("role", "slim")
    bar.setTextVisible(False)
    bar.setFixedHeight(6)
    bar.setRange(0, 100)
    return bar


def update_progress_bar(bar: QProgressBar, value: int, maximum: int) -> None:
    """Set value and maximum of a progress bar if they differ from the present ones.

    It is repainted later, as an immediate repaint would repaint the whole window.
    """
    if (bar.value(), bar.maximum()) != (value, maximum):
        bar.setUpdatesEnabled(False)
        bar.setMaximum(maximum)
        bar.setValue(value)
        bar.setUpdatesEnabled(True)


def add_menu_entries(menu: QMenu, entries: Iterable[MenuEntry]) -> list[QAction]:
    """Add entries to a menu, and return their actions in the same order.

    Texts and tooltips are shown as they are, and tooltips of the menu are turned on.
    """
    menu.setToolTipsVisible(True)
    actions = []
    for text, on_trigger, tip in entries:
        action = menu.addAction(escape_ampersands(text))
        action.setToolTip(escape_tooltip(tip))
        action.triggered.connect(lambda _=False, call=on_trigger: call())
        actions.append(action)
    return actions


def _add_to_box(layout: QVBoxLayout | QHBoxLayout, item: Any, stretch: int) -> None:
    """Add a layout or a widget of Qt or magicgui with a stretch; None adds a space."""
    if item is None:
        layout.addStretch(1)
    elif isinstance(item, QLayout):
        layout.addLayout(item, stretch)
    else:
        layout.addWidget(item if isinstance(item, QWidget) else item.native, stretch)


def frameless_tabs(corner_widget: QWidget | None = None) -> QTabWidget:
    """Return an empty tab widget without a frame, with a widget in its corner or none.

    The corner is right of the titles, which get less room.
    """
    tabs = QTabWidget()
    tabs.setDocumentMode(True)
    tabs.tabBar().setDrawBase(False)
    tabs.setUsesScrollButtons(False)  # large fonts elide the titles instead
    tabs.setElideMode(Qt.TextElideMode.ElideRight)
    tabs.setCornerWidget(corner_widget)
    tabs.setFocusProxy(
        None
    )  # Tab goes to the tab bar: while it was hidden the focus got stuck
    tabs.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return tabs
