"""Earlier maps as thumbnails: a click looks back at one; two maps can be compared."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPoint, QSignalBlocker, QSize, Qt
from qtpy.QtGui import QColor, QIcon, QImage, QPixmap
from qtpy.QtWidgets import QInputDialog, QListView, QListWidget, QListWidgetItem, QMenu

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.data.columns import count_text, share_text
from napari_embedding_game.session.quality import make_comparison_job
from napari_embedding_game.session.session import Session, error_text
from napari_embedding_game.session.timeline import Mark
from napari_embedding_game.session.timeline_comparison import TimelineComparison
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.style.form_widgets import TextLabel
from napari_embedding_game.ui.style.layouts import (
    add_menu_entries,
    escape_tooltip,
    horizontal_box,
    push_button,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.errors import call_or_show_error
from napari_embedding_game.ui.tasks.worker import JobRunner

THUMBNAIL, MAX_PAINTED = 48, 2000
"""Pixels of a side of a thumbnail, and points that are painted in it, about."""
HINT = "Earlier maps: click to go back."
THINNED = "{} without a name left out to save memory. Rename a map to keep it."
TIP = "Right-click to rename or delete. A named map stays when memory runs short."
COMPARE_TIP = "See which points lie elsewhere on another map."


class TimelineControls(Listener):
    """Lists the marks of the session, and compares the shown map with a mark."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._call_or_show_message = partial(call_or_show_error, session.show_message)
        self._colors = QColor("black"), QColor("white")
        self._listed_marks: tuple[Mark, ...] = ()
        """The marks whose thumbnails are in the list."""
        self.marks = QListWidget()
        self.marks.setViewMode(QListView.ViewMode.IconMode)
        self.marks.setMovement(QListView.Movement.Static)
        self.marks.setWrapping(False)
        self.marks.setIconSize(QSize(THUMBNAIL, THUMBNAIL))
        self.marks.setFixedHeight(THUMBNAIL + 30)
        self.marks.setMinimumWidth(1)
        self.marks.setAccessibleName("Earlier maps")
        self.marks.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.marks.customContextMenuRequested.connect(self._on_menu_requested)
        # Not the current row, which Qt sets when Tab enters the list.
        self.marks.itemSelectionChanged.connect(self._on_mark_selected)
        self.compare = push_button("Compare", COMPARE_TIP, role="menu")
        self.others = QMenu(self.compare)
        self.others.aboutToShow.connect(self._fill_compare_menu)
        self.compare.setMenu(self.others)
        self._comparison_jobs = JobRunner(
            self, self._on_maps_compared, self._on_comparison_failed
        )
        self.end = push_button("End comparison", "", self._end_comparison)
        self.marks.setToolTip(TIP)
        self.words = TextLabel()
        """The title of the shown map, or its differences from the compared map."""
        under = horizontal_box(self.words, self.compare, stretched=(self.words,))
        self.thinned = TextLabel()
        """How many marks are no longer kept; hidden where there are none."""
        parts = TextLabel(HINT), self.marks, self.thinned, under, self.end
        self._content = widget_with_layout(vertical_box(*parts, spacing=3))
        self.setLayout(vertical_box(self._content))
        view = session.view
        self._connections.add_cleanup(partial(view.set_comparison, None))
        self.connect_while_open(
            self.update_view, session.timeline.changed, session.state_changed
        )
        self.connect_while_open(
            self.update_view, view.comparison_changed, view.panels_changed
        )

    def set_theme(self, colors: ThemeColors) -> None:
        """Set the colours of the thumbnails, and paint them again once this is open."""
        self._colors, self._listed_marks = (colors.foreground, colors.line), ()
        self._is_outdated = True
        if self.is_open():
            self.update_view_if_outdated()

    def update_view(self) -> None:
        """List the present marks, and show the state of the comparison.

        Only changed marks get a new thumbnail.  Without marks the content is hidden.
        Compare is shown for resting points while there are other maps and no
        comparison.
        """
        session, timeline = self._session, self._session.timeline
        marks, current = timeline.marks, timeline.current
        n_thinned = timeline.state.n_thinned
        left_out = count_text(n_thinned, "earlier map")
        self.thinned.show_text(THINNED.format(left_out) if n_thinned else "")
        with QSignalBlocker(self.marks):
            while self.marks.count() > len(marks):
                self.marks.takeItem(self.marks.count() - 1)
            while self.marks.count() < len(marks):
                self.marks.addItem(QListWidgetItem())
            previous = dict(enumerate(self._listed_marks))
            for number, mark in enumerate(marks):
                if mark is not previous.get(number):
                    item = self.marks.item(number)
                    item.setIcon(self._make_thumbnail_icon(mark))
                    item.setToolTip(escape_tooltip(describe_mark(mark)))
                    item.setData(Qt.ItemDataRole.AccessibleTextRole, mark.title)
            self._listed_marks = marks
            self.marks.setCurrentRow(-1 if current is None else marks.index(current))
        self._content.setVisible(bool(marks))
        compared, is_busy = session.view.comparison, self._comparison_jobs.is_busy
        words = current.title if current else ""
        if is_busy:
            words = "Comparing the two maps …"
        elif compared is not None:
            words = compared.describe_difference()
        self.words.show_text(words)
        self.end.setVisible(is_busy or compared is not None)
        can_compare = bool(self._list_comparable_marks()) and not session.is_moving
        self.compare.setVisible(can_compare and self.end.isHidden())

    def make_mark_menu(self, mark: Mark) -> QMenu:
        """Return a new menu to rename or delete a mark."""
        menu, number, timeline = QMenu(self), mark.number, self._session.timeline
        remove = partial(self._call_or_show_message, timeline.remove_mark, number)
        rename = "Rename…", partial(self._ask_and_rename, mark), ""
        add_menu_entries(menu, [rename, ("Delete", remove, "")])
        return menu

    def begin_comparison(self, number: int) -> None:
        """Start comparing the shown map with the mark ``number``, in the background.

        Raises
        ------
        DataError
            Points are moving, there is no map, or the mark was removed.
        """
        self._comparison_jobs.submit(make_comparison_job(self._session, number))
        self.update_view()

    # Inside

    def _on_maps_compared(self, compared: TimelineComparison) -> None:
        """Show the comparison on the map, and its text here."""
        self._session.view.set_comparison(compared)
        self.update_view()

    def _on_comparison_failed(self, error: BaseException) -> None:
        """Show the error as the session's message, and end the busy text."""
        self._session.show_message(error_text(error))
        self.update_view()

    def _end_comparison(self) -> None:
        """Stop a running comparison and hide a finished one."""
        self._comparison_jobs.stop()
        self._session.view.set_comparison(None)
        self.update_view()

    def _make_thumbnail_icon(self, mark: Mark) -> QIcon:
        """Return a thumbnail of a mark in the colours of the theme."""
        image = render_thumbnail(mark.snapshot.embedding, *self._colors)
        return QIcon(QPixmap.fromImage(image))

    def _list_comparable_marks(self) -> list[Mark]:
        """Return the marks of other maps than the shown map, newest first.

        Returns [] where no map is shown.
        """
        current, marks = self._session.snapshot, self._session.timeline.marks
        if current is None:
            return []
        return [m for m in marks[::-1] if m.snapshot.embedding is not current.embedding]

    def _fill_compare_menu(self) -> None:
        """Fill the menu with an entry for each map that can be compared.

        An entry starts the comparison; a refusal is the session's message.
        """
        self.others.clear()
        for mark in self._list_comparable_marks():
            compare = partial(
                self._call_or_show_message, self.begin_comparison, mark.number
            )
            entry = f"{mark.title}, {mark.origin}", compare, ""
            for action in add_menu_entries(self.others, [entry]):
                action.setIcon(self._make_thumbnail_icon(mark))

    def _on_mark_selected(self) -> None:
        """Show the map of the selected mark; a refusal is the session's message."""
        for item in self.marks.selectedItems():
            mark = self._session.timeline.marks[self.marks.row(item)]
            self._call_or_show_message(self._session.show_mark, mark.number)

    def _on_menu_requested(self, point: QPoint) -> None:
        """Show the menu of the mark, if any, at a point of the list, in pixels."""
        number = self.marks.indexAt(point).row()
        if number >= 0:
            menu = self.make_mark_menu(self._session.timeline.marks[number])
            menu.exec(self.marks.viewport().mapToGlobal(point))
            menu.deleteLater()

    def _ask_and_rename(self, mark: Mark) -> None:
        """Ask for a name of a mark and rename the mark.

        Nothing is renamed if the dialog is cancelled, or other data have come
        meanwhile.
        """
        dataset = self._session.dataset
        name, is_given = QInputDialog.getText(
            self, "Rename the map", "Name:", text=mark.title
        )
        if is_given and self._session.shows_dataset(dataset):
            self._session.timeline.rename_mark(mark.number, name)


def describe_mark(mark: Mark) -> str:
    """Return a tooltip on a mark: plain text of up to six lines.

    The lines are: title; label, if the mark has a name of its own; time and iterations;
    method and seed; first digits of the map's hash; share of misplaced points, if
    known.
    """
    snapshot = mark.snapshot
    after = f", after {snapshot.iteration:,} iterations" if snapshot.iteration else ""
    when = time.strftime("%H:%M:%S", time.localtime(mark.made_at))
    method, seed = get_method(mark.settings.method).title, mark.settings.random_state
    lines = [
        mark.title,
        *([mark.label] if mark.name else []),
        f"{when}{after}",
        f"{method}, seed {seed}",
        f"Map {snapshot.map_hash[:4]}: the same digits mean the same map, bit by bit.",
    ]
    if snapshot.stretched_share == snapshot.stretched_share:
        lines.append(f"{share_text(snapshot.stretched_share)} of points misplaced")
    return "\n".join(lines)


def render_thumbnail(
    embedding: NDArray[np.floating], background: QColor, line: QColor
) -> QImage:
    """Return a square thumbnail of a map (N, d): a pixel for each sampled point.

    About MAX_PAINTED points, at equal steps of the rows, are painted in the colour
    ``line``.  The first two coordinates are shown, the second upwards.
    """
    positions = embedding[:: max(1, len(embedding) // MAX_PAINTED)]
    x, y = positions[:, 0], -positions[:, min(1, positions.shape[1] - 1)]  # y upwards
    scale = (THUMBNAIL - 5) / max(np.ptp(x), np.ptp(y), 1e-12)
    columns, rows = ((axis - axis.min()) * scale + 2 for axis in (x, y))
    pixels = np.empty((THUMBNAIL, THUMBNAIL, 4), np.uint8)
    pixels[:] = background.getRgb()
    pixels[rows.astype(int), columns.astype(int)] = line.getRgb()
    form = QImage.Format.Format_RGBA8888
    return QImage(pixels.tobytes(), THUMBNAIL, THUMBNAIL, 4 * THUMBNAIL, form).copy()
