"""The timeline under the energy curve: a strip of marks, and the way between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from magicgui.widgets import PushButton
from qtpy.QtCore import (
    QBuffer,
    QEvent,
    QIODevice,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from qtpy.QtGui import (
    QColor,
    QContextMenuEvent,
    QHelpEvent,
    QIcon,
    QImage,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
)
from qtpy.QtWidgets import (
    QHBoxLayout,
    QInputDialog,
    QListView,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QPushButton,
    QToolTip,
    QVBoxLayout,
    QWidget,
    QWidgetAction,
)

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.timeline import Mark
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.comparison_bar import ComparisonBar
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors

if TYPE_CHECKING:
    from napari_embedding_game.core.inspect.quality import MapQuality

LANE, RADIUS, EDGE = 12, 4.0, 8.0
"""Pixels between branches, of a mark, and left free at both ends."""
MOST_LANES = 4
"""Branches that are drawn below each other; older ones share the top lane."""
PICTURE, MOST_DRAWN = 110, 3000
"""Pixels of a side of the small picture, and points that are drawn there."""
BACK, FORWARD = "Alt+Left", "Alt+Right"
"""As in a browser: Ctrl+Z takes back what was done to clusters."""
TILE, COLUMNS, ROWS = (150, 170), 3, 3
"""Pixels of a map that is offered to be compared, and how many are seen at once."""
HINT = (
    "Each mark keeps the map as it was at a pause, a change or the end of a run. "
    "Click one, or use the arrow keys, to see that map again; nothing is lost. "
    "Right-click one to compare, rename, pin or delete it."
)


class Strip(QWidget):
    """Draws the marks, the oldest on the left, each branch in a lane of its own."""

    picked = Signal(int)
    """Number of the mark that is to be shown."""
    rename_requested = Signal(int)
    pin_requested = Signal(int)
    delete_requested = Signal(int)
    """And of one to be renamed, pinned or released, deleted."""
    compare_requested = Signal(int)
    """And of one to be compared with the map on show."""

    def __init__(self) -> None:
        super().__init__()
        self._marks: tuple[Mark, ...] = ()
        self._current: int | None = None
        self._n_thinned = 0
        self._background, self._line = QColor("black"), QColor("white")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Timeline")

    def set_colors(self, background: QColor, line: QColor) -> None:
        """Take on other colours."""
        self._background, self._line = background, line
        self.update()

    def set_marks(
        self, marks: tuple[Mark, ...], current: int | None, n_thinned: int
    ) -> None:
        """Show these marks; ``current`` is the number of the one on show."""
        self._marks, self._current, self._n_thinned = marks, current, n_thinned
        n_lanes = min(MOST_LANES, len({mark.branch for mark in marks}))
        self.setFixedHeight(8 + LANE * max(n_lanes, 1))
        self.update()

    def place(self, number: int) -> QPointF:
        """Return where the mark of this number is drawn."""
        index = [mark.number for mark in self._marks].index(number)
        step = (self.width() - 2 * EDGE) / max(len(self._marks) - 1, 1)
        lanes = sorted({mark.branch for mark in self._marks})
        last = min(MOST_LANES, len(lanes)) - 1
        lane = max(0, lanes.index(self._marks[index].branch) - len(lanes) + 1 + last)
        return QPointF(EDGE + index * min(step, 28.0), 4 + LANE * (lane + 0.5))

    def mark_at(self, position: QPointF) -> Mark | None:
        """Return the mark that is nearest to a place, if it is near."""
        reach = 3 * RADIUS
        near = [
            (abs(p.x() - position.x()) + 0.5 * abs(p.y() - position.y()), mark)
            for mark in self._marks
            for p in (self.place(mark.number),)
        ]
        distance, mark = min(near, key=lambda pair: pair[0], default=(reach, None))
        return mark if distance < reach else None

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw the ways between the marks, then the marks."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), self._background)
        faint = QColor(self._line)
        faint.setAlpha(110)
        painter.setPen(QPen(faint, 1.5))
        known = {mark.number for mark in self._marks}
        for mark in self._marks:
            if mark.parent in known:
                painter.drawLine(self.place(mark.parent), self.place(mark.number))
        for mark in self._marks:
            is_current = mark.number == self._current
            painter.setPen(QPen(self._line, 1.5))
            painter.setBrush(self._line if is_current else self._background)
            size = RADIUS * (1.4 if is_current else 1.0)
            place = self.place(mark.number)
            if mark.kind == "end":  # a square: here something came to its end
                box = QRectF(place.x() - size, place.y() - size, 2 * size, 2 * size)
                painter.drawRect(box)
            else:
                painter.drawEllipse(place, size, size)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(faint, 1))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        """Ask for the mark under the mouse."""
        if event is not None and event.button() == Qt.MouseButton.LeftButton:
            mark = self.mark_at(event.position())
            if mark is not None:
                self.picked.emit(mark.number)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        """Go to the mark on the left or on the right."""
        if event is None:
            return
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        numbers = [mark.number for mark in self._marks]
        if event.key() not in steps or not numbers:
            super().keyPressEvent(event)
            return
        here = numbers.index(self._current) if self._current in numbers else None
        there = len(numbers) - 1 if here is None else here + steps[event.key()]
        if 0 <= there < len(numbers):
            self.picked.emit(numbers[there])

    def event(self, event: QEvent | None) -> bool:
        """Tell of the mark under the mouse what it is of."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            mark = self.mark_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), self.told(mark), self)
            return True
        return bool(super().event(event))

    def told(self, mark: Mark | None) -> str:
        """Return what a tooltip tells of a mark; of the strip where there is none."""
        if mark is None:
            thinned = f"\n{self._n_thinned} older marks were let go to save memory."
            return HINT + (thinned if self._n_thinned else "")
        if mark.name:
            what = f"<b>{escape(mark.name)}</b><br>{escape(mark.label)}"
        else:
            what = f"<b>{escape(mark.label)}</b>"
        when = time.strftime("%H:%M:%S", time.localtime(mark.made_at))
        shot, seed = mark.snapshot, mark.settings.random_state
        share = shot.stretched_share
        far = "" if share != share else f"<br>{share:.1%} of points lie far"
        after = f", after {shot.iteration:,} iterations" if shot.iteration else ""
        return (
            f'<img src="{self._address(shot)}"><br>{what}<br>{when}{after}<br>'
            f"{escape(get_method(mark.settings.method).title)}, seed {seed}{far}"
            f"{_told_quality(mark.quality)}" + ("<br>Pinned" if mark.is_pinned else "")
        )

    def picture(self, snapshot: Snapshot) -> QImage:
        """Return a small picture of a layout."""
        image = QImage(PICTURE, PICTURE, QImage.Format.Format_RGB32)
        image.fill(self._background)
        places = snapshot.embedding[:: max(1, len(snapshot.embedding) // MOST_DRAWN)]
        x, y = places[:, 0], -places[:, min(1, places.shape[1] - 1)]  # y upwards
        low = np.array([x.min(), y.min()])
        scale = (PICTURE - 6) / max(np.ptp(x), np.ptp(y), 1e-12)
        painter = QPainter(image)
        painter.setPen(QPen(self._line, 1.5))
        for a, b in ((np.column_stack([x, y]) - low) * scale + 3).tolist():
            painter.drawPoint(QPointF(a, b))
        painter.end()
        return image

    def _address(self, snapshot: Snapshot) -> str:
        """Return the picture of a layout as the address of an image."""
        data = QBuffer()
        data.open(QIODevice.OpenModeFlag.WriteOnly)
        self.picture(snapshot).save(data, "PNG")
        return f"data:image/png;base64,{bytes(data.data().toBase64()).decode()}"

    def contextMenuEvent(self, event: QContextMenuEvent | None) -> None:
        """Offer what can be done with the mark under the mouse."""
        mark = None if event is None else self.mark_at(QPointF(event.pos()))
        if event is not None and mark is not None:
            menu = self.menu(mark)
            menu.exec(event.globalPos())
            menu.deleteLater()

    def menu(self, mark: Mark) -> QMenu:
        """Return the menu of a mark."""
        menu = QMenu(self)
        pin = "Unpin" if mark.is_pinned else "Pin (keep when memory runs short)"
        for text, signal in (
            ("Show", self.picked),
            ("Compare with the map on show", self.compare_requested),
            ("Rename…", self.rename_requested),
            (pin, self.pin_requested),
            ("Delete", self.delete_requested),
        ):
            action = menu.addAction(text)
            action.triggered.connect(partial(signal.emit, mark.number))
        return menu


def _told_quality(quality: MapQuality | None) -> str:
    """Return the figures of a map as lines of a tooltip; "" where none was measured."""
    if quality is None:
        return ""
    figures = (
        ("Neighbours kept", quality.neighbors_kept),
        ("Trustworthiness", quality.trustworthiness),
        ("Continuity", quality.continuity),
        ("Large picture", quality.triplets),
    )
    return "".join(f"<br>{name} {value:.0%}" for name, value in figures)


class _Gallery(QMenu):
    """The other maps of the timeline, each with a small picture.

    Parameters
    ----------
    button : QPushButton
        Opens it.
    strip : Strip
        Draws the pictures.
    """

    chosen = Signal(int)

    def __init__(self, button: QPushButton, strip: Strip) -> None:
        super().__init__(button)
        self._strip = strip
        self._marks: Sequence[Mark] = ()
        self.pictures = QListWidget()
        self.pictures.setViewMode(QListView.ViewMode.IconMode)
        self.pictures.setMovement(QListView.Movement.Static)
        self.pictures.setIconSize(QSize(PICTURE, PICTURE))
        self.pictures.setGridSize(QSize(*TILE))
        self.pictures.setWordWrap(True)
        self.pictures.setUniformItemSizes(True)
        self.pictures.setAccessibleName("Maps to compare with")
        self.pictures.itemClicked.connect(self._choose)
        self.pictures.itemActivated.connect(self._choose)
        action = QWidgetAction(self)
        action.setDefaultWidget(self.pictures)
        self.addAction(action)
        button.setMenu(self)
        self.aboutToShow.connect(self._fill)

    def set_marks(self, marks: Sequence[Mark]) -> None:
        """Offer these the next time it is opened, the newest first."""
        self._marks = marks

    def _fill(self) -> None:
        self.pictures.clear()
        for mark in reversed(self._marks):
            picture = QPixmap.fromImage(self._strip.picture(mark.snapshot))
            item = QListWidgetItem(QIcon(picture), f"{mark.title}\n{mark.origin}")
            item.setData(Qt.ItemDataRole.UserRole, mark.number)
            item.setToolTip(self._strip.told(mark))
            self.pictures.addItem(item)
        columns = min(COLUMNS, len(self._marks))
        rows = min(ROWS, -(-len(self._marks) // max(columns, 1)))
        width, height = TILE
        self.pictures.setFixedSize(columns * width + 24, rows * height + 8)

    def _choose(self, item: QListWidgetItem) -> None:
        if self.isVisible():  # a click that also activates chooses once
            self.close()
            self.chosen.emit(item.data(Qt.ItemDataRole.UserRole))


class TimelineStrip(QWidget):
    """The strip, and buttons to step back and forth and to continue.

    Parameters
    ----------
    session : Session
    """

    continue_requested = Signal()
    """A run that goes on from the map on show."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.strip = Strip()
        self.back = PushButton(
            text="◀", tooltip=f"Back to the mark before this map ({BACK})."
        )
        self.forward = PushButton(
            text="▶", tooltip=f"Forward to the mark that came next ({FORWARD})."
        )
        # Whoever shows the strip puts it beside the buttons of the run.
        self.go_on = PushButton(
            text="Continue from here",
            tooltip="Play on from the map that you see, with the settings above. What "
            "came after it stays in the timeline as another branch.",
        )
        self.compare = QPushButton("Compare")
        self.compare.setProperty("role", "menu")
        self.compare.setToolTip(
            "Choose another map of the timeline: see which points lie elsewhere on it."
        )
        self.gallery = _Gallery(self.compare, self.strip)
        self.comparison = ComparisonBar(session)
        self.words = text_label()
        for button, keys in ((self.back, BACK), (self.forward, FORWARD)):
            button.native.setShortcut(QKeySequence(keys))
            button.native.setFixedWidth(34)
        self._build()
        self._connections = Connections(self)
        self._connect()
        self.refresh()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.strip.set_colors(colors.foreground, colors.line)

    def refresh(self) -> None:
        """Show the timeline as it is now."""
        session, timeline = self._session, self._session.timeline
        shown = timeline.shown
        current = None if shown is None else shown.number
        self.strip.set_marks(timeline.marks, current, timeline.n_thinned)
        is_moving = session.state in ("preparing", "running")
        self.back.enabled = timeline.before is not None and session.state != "preparing"
        self.forward.enabled = timeline.after is not None
        has_map = session.snapshot is not None
        self.go_on.enabled = has_map and not is_moving
        can_go_on = session.state in ("stopped", "failed") and bool(timeline.marks)
        self.go_on.native.setVisible(can_go_on)
        here = None if session.snapshot is None else session.snapshot.embedding
        others = [m for m in timeline.marks if m.snapshot.embedding is not here]
        self.gallery.set_marks(others)
        self.compare.setEnabled(bool(others) and has_map and not is_moving)
        self.strip.setVisible(bool(timeline.marks))
        self.setVisible(bool(timeline.marks))
        told = ""
        if shown is not None:
            place = timeline.marks.index(shown) + 1
            told = f"{shown.title} (mark {place} of {len(timeline.marks)})"
        show_text(self.words, told)

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        row = QHBoxLayout()
        row.setSpacing(4)
        for button in (self.back, self.forward):
            row.addWidget(button.native)
        row.addWidget(self.compare)
        row.addStretch()
        column.addWidget(self.strip)
        column.addWidget(self.words)
        column.addLayout(row)
        column.addWidget(self.comparison)

    def _connect(self) -> None:
        session = self._session
        self.strip.picked.connect(self._look_back)
        self.strip.rename_requested.connect(self._rename)
        self.strip.pin_requested.connect(self._pin)
        self.strip.delete_requested.connect(self._delete)
        self.strip.compare_requested.connect(self.comparison.begin)
        self.gallery.chosen.connect(self.comparison.begin)
        self.back.changed.connect(lambda: self._step(session.timeline.before))
        self.forward.changed.connect(lambda: self._step(session.timeline.after))
        self.go_on.changed.connect(lambda: self.continue_requested.emit())
        for signal in (session.timeline.changed, session.state_changed):
            self._connections.connect(signal, self._on_change)

    def _on_change(self) -> None:
        self.refresh()

    def _step(self, mark: Mark | None) -> None:
        if mark is not None:
            self._look_back(mark.number)

    def _rename(self, number: int) -> None:
        mark = self._session.timeline.find(number)
        if mark is not None:
            name, is_given = QInputDialog.getText(
                self, "Rename the mark", "Name:", text=mark.title
            )
            if is_given:
                self._session.timeline.rename(number, name)

    def _pin(self, number: int) -> None:
        mark = self._session.timeline.find(number)
        if mark is not None:
            self._session.timeline.pin(number, not mark.is_pinned)

    def _delete(self, number: int) -> None:
        try:
            self._session.timeline.remove(number)
        except DataError as error:
            self._session.say(str(error))

    def _look_back(self, number: int) -> None:
        try:
            self._session.look_back(number)
        except DataError as error:
            self._session.say(str(error))
