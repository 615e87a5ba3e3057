"""Widgets and helpers for forms: sections, labels, rows, folds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from qtpy.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal
from qtpy.QtGui import QIcon, QMouseEvent, QPixmap, QResizeEvent
from qtpy.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QLabel,
    QScrollArea,
    QScrollBar,
    QSizePolicy,
    QWidget,
)

from napari_embedding_game.ui.style.layouts import (
    escape_ampersands,
    push_button,
    vertical_box,
    widget_with_layout,
    wrap_button_text,
)

LABEL_WIDTH, INDENT = 76, 4
"""Pixels of a label, at least, and left of its text, whatever the size of the type."""
CTRL = "Cmd" if sys.platform == "darwin" else "Ctrl"
"""What Qt's Ctrl is called: on a Mac a click with that key is one of the right button.
"""
CLICK_TIP = f"Click selects its points; Shift or {CTRL} adds them."


def is_adding_click(event: QMouseEvent) -> bool:
    """Return whether a click adds to what is selected."""
    keys = Qt.KeyboardModifier
    adding = keys.ShiftModifier | keys.ControlModifier | keys.MetaModifier
    return bool(event.modifiers() & adding)


class Text(QLabel):
    """A text of one of the roles that the theme's sheet knows, hidden while empty."""

    def __init__(self, text: str = "", role: str = "note") -> None:
        super().__init__(text)
        self._role = role
        self.setTextFormat(Qt.TextFormat.PlainText)  # names of people may have a "<b>"
        self.setProperty("role", role)
        self.setWordWrap(True)
        self.setIndent(INDENT)
        self.setMinimumWidth(1)  # a long word must not widen the dock
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        if not text:
            self.hide()

    def say(self, text: str = "", role: str = "") -> None:
        """Show another text, in its usual role or for once in another one."""
        set_role(self, role or self._role)
        if self.text() != text:
            self.setText(text)
        self.setVisible(bool(text))


def set_role(widget: QWidget, role: str) -> None:
    """Give a label or button another role, and the looks that go with it."""
    if (widget.property("role") or "") != role:
        widget.setProperty("role", role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def activate_parent_layouts(widget: QWidget) -> None:
    """Give a widget its new size at once: a running game holds Qt's own way up."""
    around = widget.parentWidget()
    while around is not None and not around.isWindow():
        if around.layout() is not None:
            around.layout().activate()
        around = around.parentWidget()


def icon_with_fixed_colors(picture: QPixmap) -> QIcon:
    """Return a picture that keeps its colours when it is selected."""
    icon = QIcon(picture)
    icon.addPixmap(picture, QIcon.Mode.Selected)
    return icon


def wrap_in_scroll_area(widget: QWidget) -> QScrollArea:
    """Return a new area in which a widget, that is in none yet, is scrolled."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Tab leads to what is in it
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    # Beside the bar, and never below it.
    widget.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    area.setWidget(widget)
    return area


def form_layout(*rows: tuple[Any, ...]) -> QFormLayout:
    """Return a form that stays readable when the dock is narrow.

    Each row has a label, "" for none, a widget, and a tooltip, by default the widget's.
    """
    layout = QFormLayout()
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setHorizontalSpacing(8)
    layout.setVerticalSpacing(5)
    layout.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    layout.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    for label, widget, *tip in rows:
        native = widget if isinstance(widget, QWidget) else widget.native
        if not label:
            layout.addRow(native)
            continue
        caption = QLabel(label)
        caption.setToolTip(*tip or [native.toolTip()])
        caption.setMinimumWidth(LABEL_WIDTH)
        for part in (native, *native.findChildren(QWidget)):
            if not isinstance(part, QCheckBox):  # which has a text of its own
                part.setAccessibleName(label)
        native.setMinimumWidth(60)
        layout.addRow(caption, native)
    return layout


class ChoiceBox(QComboBox):
    """A list of texts with values, as narrow as some letters.

    ``act`` receives the value that was chosen.
    """

    changed = Signal(object)
    """The value that was chosen."""

    def __init__(
        self, tip: str = "", act: Callable[[Any], Any] | None = None, n_letters: int = 8
    ) -> None:
        super().__init__()
        self._listed: list[tuple[str, Any]] = []
        self.setToolTip(tip)
        self.setAccessibleName(tip.partition(".")[0])
        narrow = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.setSizeAdjustPolicy(narrow)
        self.setMinimumContentsLength(n_letters)
        self.currentIndexChanged.connect(lambda _: self.changed.emit(self.value))
        if act is not None:
            self.changed.connect(act)

    @property
    def choices(self) -> list[Any]:
        """The values, from top to bottom."""
        return [value for _, value in self._listed]

    @property
    def value(self) -> Any:
        """What is chosen; None where there is nothing to choose."""
        return self._listed[self.currentIndex()][1] if self._listed else None

    @value.setter
    def value(self, value: Any) -> None:
        self.setCurrentIndex(self.choices.index(value))

    def offer(self, choices: Iterable[tuple[str, Any]], *chosen: Any) -> None:
        """List texts and their values, without a signal.

        What is ``chosen`` is on show; where it is not there what was, or the first.
        """
        listed, preferred = [*choices], (*chosen, self.value)
        with QSignalBlocker(self):
            if listed != self._listed:  # else it may be open
                self._listed = listed
                self.clear()
                self.addItems([text for text, _ in listed])
            values = self.choices
            indices = [values.index(one) for one in preferred if one in values]
            self.setCurrentIndex(next(iter(indices), 0))


def check_box(
    text: str, tip: str, act: Callable[[bool], Any] | None = None, is_on: bool = False
) -> QCheckBox:
    """Return a box with a tick, which calls a function, if any, with what it is."""
    box = QCheckBox(text)
    box.setToolTip(tip)
    box.setChecked(is_on)
    if act is not None:
        box.toggled.connect(act)
    return box


class FoldingSection(QWidget):
    """Parts that are used now and then, folded away under a line of text."""

    indent, below = 12, 6
    """Pixels left of what is inside and below it."""

    def __init__(self, title: str, *inside: Any) -> None:
        super().__init__()
        self._title = title
        self.button = push_button("", "", self._flip, "fold")
        """The line of text, which opens and shuts it."""
        self.button.setMinimumWidth(1)
        self.inside = widget_with_layout(
            vertical_box(*inside, margins=(self.indent, 0, 0, self.below))
        )
        self.setLayout(vertical_box(self.button, self.inside, spacing=2))
        self.expand(False)

    @property
    def is_expanded(self) -> bool:
        """Whether it is open."""
        return not self.inside.isHidden()

    def expand(self, is_open: bool = True) -> None:
        """Show what is inside, or hide it."""
        self.inside.setVisible(is_open)
        self.set_title(self._title)

    def set_bare(self, is_bare: bool) -> None:
        """Show what is inside without a line of text, or fold it away under one."""
        if is_bare != self.button.isHidden():
            self.button.setVisible(not is_bare)
            left, below = (0, 0) if is_bare else (self.indent, self.below)
            self.inside.layout().setContentsMargins(left, 0, 0, below)
            self.expand(is_bare)

    def set_title(self, title: str) -> None:
        """Show another line of text."""
        self._title = title
        self._write_title()
        activate_parent_layouts(self.button)

    def _write_title(self) -> None:
        """Write the title in as many lines as it takes."""
        title = self._title
        sign = "▾" if self.is_expanded else "▸"
        text = f"{sign}  {title}"
        wide = self.button.fontMetrics().horizontalAdvance
        # What is beside its name goes below it.
        if wide(text) > self.width() - self.indent:
            n_letters = max(self.width() // wide("n"), 1)
            parts = (
                wrap_button_text(part, n_letters) for part in text.split("  ·  ", 1)
            )
            text = "\n    ".join(parts)
        self.button.setText(escape_ampersands(text))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Write the title for another width.

        Layouts around are under way here: one that is activated now would place this
        where it was to be before, and parts inside would be cut.
        """
        self._write_title()

    def _flip(self) -> None:
        self.expand(not self.is_expanded)


def prevent_accidental_changes(root: QWidget) -> None:
    """Have keys and wheel change no setting by the way.

    The wheel scrolls the dock and changes no field that it passes over; numbers count
    when Enter is pressed or the field is left: until then "3" on the way to "300" would
    be set.  A point is one of decimals also where the system has commas: Qt would take
    0.5 for 5 there.
    """
    for field in root.findChildren(QAbstractSpinBox):
        field.setKeyboardTracking(False)
    guard = _WheelAndPointFilter(root)
    for kind in (QComboBox, QAbstractSlider, QAbstractSpinBox):
        for widget in root.findChildren(kind):
            if not isinstance(widget, QScrollBar):  # which the wheel is for
                widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
                widget.installEventFilter(guard)


def commit_typed_number() -> None:
    """Take the number that is being typed: a button need not take the cursor."""
    field = QApplication.focusWidget()
    if isinstance(field, QAbstractSpinBox):
        field.clearFocus()


class _WheelAndPointFilter(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and not watched.hasFocus():
            event.ignore()
            return True
        is_key = event.type() == QEvent.Type.KeyPress
        if is_key and isinstance(watched, QDoubleSpinBox) and event.text() == ".":
            watched.lineEdit().insert(watched.locale().decimalPoint())
            return True
        return False
