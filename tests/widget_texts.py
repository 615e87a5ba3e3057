"""Widgets, layers and plots as lines of text: all that a person can read or set."""

import re

from qtpy.QtCore import Qt
from qtpy.QtGui import QAction
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QGroupBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QProgressBar,
    QScrollBar,
    QTabBar,
    QTableView,
    QWidget,
)

from approved import number, numbers

ROLES = Qt.ItemDataRole
MAX_ROWS = 12
OWN = "napari_embedding_game"


def widget_lines(root):
    """Return a line for each widget that is shown below another one, and its items."""
    lines = []
    _add(root, root, "", lines)
    return lines


def _add(widget, root, indent, lines):
    said = [*_parts(widget)]
    is_own = type(widget).__module__.startswith(OWN)
    if said or is_own:
        name = type(widget).__name__ if is_own else _qt_name(widget)
        lines.append(f"{indent}{name} {'; '.join(said)}".rstrip())
        indent += "  "
    lines += [f"{indent}{line}" for line in _items(widget)]
    if isinstance(widget, (QComboBox, QAbstractSpinBox, QScrollBar)):
        return
    for child in widget.children():
        is_widget = isinstance(child, QWidget) and not isinstance(child, QMenu)
        is_inner = isinstance(child, (QHeaderView, QScrollBar)) and not _is_ours(child)
        is_part = is_widget and not is_inner and not child.isWindow()
        if is_part and child.isVisibleTo(root):
            _add(child, root, indent, lines)


def _is_ours(widget):
    return type(widget).__module__.startswith(OWN)


def _qt_name(widget):
    return widget.metaObject().className()


def _parts(widget):
    """Yield what is particular about a widget."""
    if isinstance(widget, (QLabel, QAbstractButton)) and widget.text():
        yield repr(_plain(widget.text()))
    if isinstance(widget, QGroupBox) and widget.title():
        yield repr(widget.title())
    if isinstance(widget, QLineEdit):
        yield repr(widget.text())
        if widget.placeholderText():
            yield f"placeholder {widget.placeholderText()!r}"
        if widget.isReadOnly():
            yield "read only"
    if isinstance(widget, QAbstractButton) and widget.isCheckable():
        yield "checked" if widget.isChecked() else "unchecked"
    if isinstance(widget, QComboBox):
        yield f"{widget.currentText()!r} of {widget.count()}"
    if isinstance(widget, QAbstractSpinBox):
        yield repr(widget.text())
        if hasattr(widget, "minimum") and hasattr(widget, "value"):
            ends = number(widget.minimum(), 6), number(widget.maximum(), 6)
            yield f"{ends[0]} to {ends[1]} by {number(widget.singleStep())}"
        if not widget.keyboardTracking():
            yield "on Enter"
    if isinstance(widget, QAbstractSlider) and not isinstance(widget, QScrollBar):
        ends = number(widget.minimum()), number(widget.maximum())
        yield f"{_value(widget.value())} in {ends[0]} to {ends[1]}"
        yield f"steps {number(widget.singleStep())}, {number(widget.pageStep())}"
    if isinstance(widget, QProgressBar):
        yield f"{widget.value()} of {widget.maximum()}"
    if not widget.isEnabled():
        yield "off"
    if widget.property("role"):
        yield f"role {widget.property('role')}"
    if widget.toolTip():
        yield f"tip {_plain(widget.toolTip())!r}"
    if widget.accessibleName():
        yield f"accessible as {_plain(widget.accessibleName())!r}"
    if isinstance(widget, QAbstractButton) and not widget.icon().isNull():
        yield "icon"


def _plain(text):
    text = re.sub(r"\d\d:\d\d(:\d\d)?", "HH:MM", text).replace("Cmd", "Ctrl")
    return re.sub(r"/\S*/(?=[^/\s]+\.\w+)", "", text)


def _items(widget):
    """Yield the items of a list of choices, a table, tabs or a menu."""
    if isinstance(widget, QComboBox):
        tips = [widget.itemData(i, ROLES.ToolTipRole) for i in range(widget.count())]
        texts = [widget.itemText(i) for i in range(widget.count())]
        for text, tip in list(zip(texts, tips, strict=True))[: 3 * MAX_ROWS]:
            yield f"| {text}" + (f" (tip {_plain(tip)!r})" if tip else "")
    elif isinstance(widget, QTabBar):
        for i in range(widget.count()):
            marks = " <" * (i == widget.currentIndex())
            marks += " off" * (not widget.isTabEnabled(i))
            yield f"| {widget.tabText(i)}{marks} {widget.tabToolTip(i)}"
    elif isinstance(widget, QAbstractItemView) and widget.model() is not None:
        yield from _rows(widget)
    yield from map(_action, filter(QAction.isVisible, widget.actions()))
    menu = widget.menu() if hasattr(widget, "menu") else None
    if isinstance(menu, QMenu):
        menu.aboutToShow.emit()
        yield from map(_action, filter(QAction.isVisible, menu.actions()))


def _action(action: QAction):
    marks = " off" * (not action.isEnabled()) + " checked" * action.isChecked()
    keys = action.shortcut().toString()
    keys = f" [{keys}]" if keys else ""
    more = " ..." * (action.menu() is not None)
    tip = action.toolTip()
    tip = f" tip {_plain(tip)!r}" if tip.strip("…") != action.text().strip("…") else ""
    text = _plain(action.text()) or "-" * 5
    return f"> {text}{keys}{marks}{more}{tip}"


def _rows(view):
    model = view.model()
    is_table = isinstance(view, QTableView)
    columns = [
        i
        for i in range(model.columnCount() if is_table else 1)
        if not (is_table and view.isColumnHidden(i))
    ]
    if is_table and not view.horizontalHeader().isHidden():
        for i in columns:
            tip = model.headerData(i, Qt.Orientation.Horizontal, ROLES.ToolTipRole)
            name = model.headerData(i, Qt.Orientation.Horizontal)
            yield f"# {name!r} {tip or ''}".rstrip()
    chosen = {index.row() for index in view.selectionModel().selectedIndexes()}
    for row in range(min(model.rowCount(), MAX_ROWS)):
        cells = " | ".join(_cell(model.index(row, i)) for i in columns)
        yield f"| {cells}{' <' * (row in chosen)}"
    if model.rowCount() > MAX_ROWS:
        yield f"| ... {model.rowCount()} rows"


def _cell(index):
    parts = [str("" if index.data() is None else index.data())]
    tip, ground = index.data(ROLES.ToolTipRole), index.data(ROLES.ForegroundRole)
    if tip and _plain(tip) != parts[0]:
        parts.append(f"(tip {_plain(tip)!r})")
    if ground is not None:
        parts.append("(warned)")
    if index.flags() & Qt.ItemFlag.ItemIsEditable:
        parts.append("(editable)")
    state = index.data(ROLES.CheckStateRole)
    if state is not None:
        parts.append(f"(check {getattr(state, 'value', state)})")
    for place in range(4):
        own = index.data(ROLES.UserRole + place)
        if own is not None:
            parts.append(f"({_value(own)})")
    return " ".join(parts)


def _value(own):
    if isinstance(own, tuple):
        return ", ".join(map(_value, own))
    return number(own) if isinstance(own, (int, float)) else str(own)


def layer_lines(viewer):
    """Return lines of the layers of a viewer, and of where its camera looks."""
    lines, camera = [], viewer.scene.camera
    lines.append(f"camera {numbers(camera.center)} zoom {number(camera.zoom)}")
    lines.append(f"  angles {numbers(camera.angles)}, {viewer.dims.ndisplay} axes")
    for layer in viewer.layers:
        active = " <" * (layer is viewer.layers.selection.active)
        lines.append(f"{type(layer).__name__} {layer.name!r}{active}")
        shown = "visible" if layer.visible else "hidden"
        lines.append(
            f"  {shown}, {layer.mode}, editable {layer.editable}, opacity "
            f"{number(layer.opacity)}, {layer.blending}, units {layer.units}"
        )
        told = "" if layer.help.startswith("use <") else layer.help  # napari's own
        lines.append(f"  help {told!r}, keys {sorted(map(str, layer.keymap))}")
        lines.append(f"  scale {numbers(layer.scale)}, at {numbers(layer.translate)}")
        lines.append(f"  metadata {sorted(layer.metadata)}")
        if hasattr(layer, "features"):
            for name, values in layer.features.items():
                some = values.iloc[:3]
                said = numbers(some) if some.dtype.kind in "fiu" else [*some]
                kind = " category" * (values.dtype == "category")
                lines.append(f"  {name!r}{kind} {said}")
        if type(layer).__name__ == "Points":
            lines += [f"  {line}" for line in _point_lines(layer)]
    return lines


def _point_lines(layer):
    yield f"at {len(layer.data)}: {numbers(layer.data.ravel())}"
    yield f"sizes {numbers(layer.size)} faces {numbers(layer.face_color.ravel())}"
    yield f"borders {numbers(layer.border_width)} {numbers(layer.border_color.ravel())}"
    yield f"symbols {sorted({str(one) for one in layer.symbol})}"
    yield f"shown {int(layer.shown.sum())}, {layer.shading}, {layer.canvas_size_limits}"
