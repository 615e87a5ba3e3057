"""Widgets for forms: texts, choice boxes, check boxes, folding sections."""

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
"""Least width of a label and indent of its text, in pixels at any font size."""
CTRL = "Cmd" if sys.platform == "darwin" else "Ctrl"
"""The name of Qt's Ctrl key: on a Mac the key Ctrl makes a click a right click."""
CLICK_TIP = f"Click selects its points; Shift or {CTRL} adds them."


def is_adding_click(event: QMouseEvent) -> bool:
    """Return whether a click adds to a selection: Shift, Ctrl or Meta is held."""
    keys = Qt.KeyboardModifier
    adding = keys.ShiftModifier | keys.ControlModifier | keys.MetaModifier
    return bool(event.modifiers() & adding)


class TextLabel(QLabel):
    """A wrapped label with a role of the theme's style sheet, hidden while empty."""

    def __init__(self, text: str = "", role: str = "note") -> None:
        super().__init__(text)
        self._role = role
        self.setTextFormat(Qt.TextFormat.PlainText)  # a person may name a map "<b>"
        self.setProperty("role", role)
        self.setWordWrap(True)
        self.setIndent(INDENT)
        self.setMinimumWidth(1)  # a long word must not widen the dock
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        if not text:
            self.hide()

    def show_text(self, text: str = "", role: str = "") -> None:
        """Show a text in ``role``, by default the label's own; hide an empty text."""
        set_role(self, role or self._role)
        if self.text() != text:
            self.setText(text)
        self.setVisible(bool(text))


def set_role(widget: QWidget, role: str) -> None:
    """Set the role of a widget, and apply the style sheet's rules for a new role."""
    if (widget.property("role") or "") != role:
        widget.setProperty("role", role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def activate_parent_layouts(widget: QWidget) -> None:
    """Activate the layouts of a widget's parents, so that the widget gets its size now.

    The window's own layout is left out.  While a game runs Qt would activate them much
    later.
    """
    parent = widget.parentWidget()
    while parent is not None and not parent.isWindow():
        if parent.layout() is not None:
            parent.layout().activate()
        parent = parent.parentWidget()


def make_icon_with_fixed_colors(picture: QPixmap) -> QIcon:
    """Return an icon that keeps its colours in a selected row."""
    icon = QIcon(picture)
    icon.addPixmap(picture, QIcon.Mode.Selected)
    return icon


def wrap_in_scroll_area(widget: QWidget) -> QScrollArea:
    """Put a widget into a new scroll area without a frame, and return the area.

    It scrolls vertically only: the widget gets the width of the area.
    """
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # Tab leads to what is in it
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    # The widget ends beside the scroll bar, and never lies below it.
    widget.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    area.setWidget(widget)
    return area


def form_layout(*rows: tuple[Any, ...]) -> QFormLayout:
    """Return a form layout of labelled widgets that stays readable in a narrow dock.

    Each row is (label, widget) or (label, widget, tooltip of the label), with a widget
    of Qt or magicgui.  An empty label lets the widget span the row; the tooltip is by
    default the widget's.  The label becomes the accessible name of the widget and of
    its children, except check boxes.
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
        for child in (native, *native.findChildren(QWidget)):
            if not isinstance(child, QCheckBox):  # a check box has a text of its own
                child.setAccessibleName(label)
        native.setMinimumWidth(60)
        layout.addRow(caption, native)
    return layout


class ChoiceBox(QComboBox):
    """A combo box whose texts have values, at least ``n_letters`` wide.

    ``on_choice`` is called with the value whenever it changes.
    """

    changed = Signal(object)
    """The chosen value."""

    def __init__(
        self,
        tip: str = "",
        on_choice: Callable[[Any], Any] | None = None,
        n_letters: int = 8,
    ) -> None:
        super().__init__()
        self._listed: list[tuple[str, Any]] = []
        self.setToolTip(tip)
        self.setAccessibleName(tip.partition(".")[0])
        narrow = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.setSizeAdjustPolicy(narrow)
        self.setMinimumContentsLength(n_letters)
        self.currentIndexChanged.connect(lambda _: self.changed.emit(self.value))
        if on_choice is not None:
            self.changed.connect(on_choice)

    @property
    def choices(self) -> list[Any]:
        """The values, from top to bottom."""
        return [value for _, value in self._listed]

    @property
    def value(self) -> Any:
        """The chosen value; None where there are no choices.

        Setting a value that is not among the choices raises a ValueError.
        """
        return self._listed[self.currentIndex()][1] if self._listed else None

    @value.setter
    def value(self, value: Any) -> None:
        self.setCurrentIndex(self.choices.index(value))

    def set_choices(self, choices: Iterable[tuple[str, Any]], *preferred: Any) -> None:
        """Replace the choices, pairs of text and value, without a signal.

        The first of the ``preferred`` values that is among the choices becomes the
        value, else the former value, else that of the first choice.
        """
        listed, preferred = [*choices], (*preferred, self.value)
        with QSignalBlocker(self):
            if listed != self._listed:  # an unchanged list may be open
                self._listed = listed
                self.clear()
                self.addItems([text for text, _ in listed])
            values = self.choices
            indices = [values.index(value) for value in preferred if value in values]
            self.setCurrentIndex(next(iter(indices), 0))


def check_box(
    text: str,
    tip: str,
    on_toggle: Callable[[bool], Any] | None = None,
    is_on: bool = False,
) -> QCheckBox:
    """Return a check box that calls ``on_toggle`` with its new state."""
    box = QCheckBox(text)
    box.setToolTip(tip)
    box.setChecked(is_on)
    if on_toggle is not None:
        box.toggled.connect(on_toggle)
    return box


class FoldingSection(QWidget):
    """A section of rarely used widgets that a button with the title shows or hides."""

    indent, below = 12, 6
    """Margins left of the content and below it, in pixels."""

    def __init__(self, title: str, *content: Any) -> None:
        super().__init__()
        self._title = title
        self.button = push_button("", "", self._toggle_expanded, "fold")
        """The button with the title, which expands and collapses the section."""
        self.button.setMinimumWidth(1)
        self.content = widget_with_layout(
            vertical_box(*content, margins=(self.indent, 0, 0, self.below))
        )
        self.setLayout(vertical_box(self.button, self.content, spacing=2))
        self.set_expanded(False)

    @property
    def is_expanded(self) -> bool:
        """Whether the content is shown."""
        return not self.content.isHidden()

    def set_expanded(self, is_expanded: bool) -> None:
        """Show or hide the content, and update the sign before the title."""
        self.content.setVisible(is_expanded)
        self.set_title(self._title)

    def set_header_hidden(self, is_hidden: bool) -> None:
        """Hide the button and expand the section, or show the button and collapse it.

        Without the button the content has no margins.  A repeated call changes nothing.
        """
        if is_hidden != self.button.isHidden():
            self.button.setVisible(not is_hidden)
            left, below = (0, 0) if is_hidden else (self.indent, self.below)
            self.content.layout().setContentsMargins(left, 0, 0, below)
            self.set_expanded(is_hidden)

    def set_title(self, title: str) -> None:
        """Replace the title, and give the button its new size at once."""
        self._title = title
        self._update_button_text()
        activate_parent_layouts(self.button)

    def _update_button_text(self) -> None:
        """Show sign and title on the button, wrapped to the width of the section."""
        title = self._title
        sign = "▾" if self.is_expanded else "▸"
        text = f"{sign}  {title}"
        wide = self.button.fontMetrics().horizontalAdvance
        # A title that is too wide is broken at its dot first.
        if wide(text) > self.width() - self.indent:
            n_letters = max(self.width() // wide("n"), 1)
            parts = (
                wrap_button_text(part, n_letters) for part in text.split("  ·  ", 1)
            )
            text = "\n    ".join(parts)
        self.button.setText(escape_ampersands(text))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap the title to the new width.

        No parent layout may be activated here: it is being activated already, would
        place the section by its former size, and the content would be cut off.
        """
        self._update_button_text()

    def _toggle_expanded(self) -> None:
        self.set_expanded(not self.is_expanded)


def prevent_accidental_changes(root: QWidget) -> None:
    """Guard all fields below a widget against changes that nobody meant.

    The wheel scrolls the dock and changes only a field that has the focus.  A typed
    number is set when Enter is pressed or the field loses the focus, since "3" would be
    set on the way to "300".  A typed point is the decimal sign also where the system
    uses commas, since Qt would read 0.5 as 5 there.
    """
    for field in root.findChildren(QAbstractSpinBox):
        field.setKeyboardTracking(False)
    event_filter = _WheelAndPointFilter(root)
    for kind in (QComboBox, QAbstractSlider, QAbstractSpinBox):
        for widget in root.findChildren(kind):
            if not isinstance(widget, QScrollBar):  # the wheel must move a scroll bar
                widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
                widget.installEventFilter(event_filter)


def commit_typed_number() -> None:
    """Set the number that is being typed, by taking the focus from its field.

    A click on a button that takes no focus would leave the field in the middle of
    typing.  Another widget keeps the focus.
    """
    field = QApplication.focusWidget()
    if isinstance(field, QAbstractSpinBox):
        field.clearFocus()


class _WheelAndPointFilter(QObject):
    """Ignores the wheel without focus, and replaces a typed "." by the decimal sign."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Ignore the wheel on widgets without focus, and type "." as a decimal point.

        A "." that is typed into a field of decimal numbers becomes the decimal point of
        the field's locale; an ignored wheel goes to the parent.  Returns True if the
        event was one of these, so that the widget does not get it.
        """
        if event.type() == QEvent.Type.Wheel and not watched.hasFocus():
            event.ignore()
            return True
        is_key = event.type() == QEvent.Type.KeyPress
        if is_key and isinstance(watched, QDoubleSpinBox) and event.text() == ".":
            watched.lineEdit().insert(watched.locale().decimalPoint())
            return True
        return False
