"""Who the selected points are: name, numbers, composition, pictures, markers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from magicgui.widgets import ComboBox, PushButton
from numpy.typing import NDArray
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QLineEdit, QTabWidget, QVBoxLayout, QWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import ClusterReport, has_contrasts
from napari_embedding_game.ui.images.linked_layers import Linked
from napari_embedding_game.ui.images.picture_grid import PictureGrid
from napari_embedding_game.ui.images.row_pictures import (
    AppearanceWatch,
    pictures_of,
    size_of,
)
from napari_embedding_game.ui.inspector.bar_charts import CompositionBars
from napari_embedding_game.ui.inspector.differences_pane import DifferencesPane
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane
from napari_embedding_game.ui.inspector.text_list import TextList
from napari_embedding_game.ui.style.form_widgets import (
    let_be_narrow,
    scrolled,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.texts import share_text
from napari_embedding_game.ui.style.theme import ThemeColors

N_TEXTS = 200
MOST_BARS_HIGH = 150
"""Pixels of the composition at most; it scrolls."""
RENAME_TIP = "Type a name and press Enter (F2)."


class DetailsPane(QWidget):
    """Shows a report on clusters, with pictures, texts and markers of their points.

    Parameters
    ----------
    markers : MarkersPane
    on_pick : callable
        Receives the rows of the points whose pictures or texts were clicked.
    """

    named = Signal(str)
    """A name for the selected cluster."""

    def __init__(
        self, markers: MarkersPane, on_pick: Callable[[NDArray[np.intp]], None]
    ) -> None:
        super().__init__()
        self._dataset: Dataset | None = None
        self._linked: Linked | None = None
        self.hint = text_label()
        self.title = QLineEdit()
        self.numbers = text_label()
        self.note = text_label(role="plain")
        self.actions = QVBoxLayout()
        """Where the buttons that act on the selection go."""
        self.column = ComboBox(
            choices=[],
            tooltip="Column that the composition is of; the card beside the mouse has "
            "it first.",
        )
        self.another = PushButton(
            text="Shuffle", tooltip="Show these pictures or texts in another order."
        )
        self.composition = CompositionBars()
        self.differences = DifferencesPane()
        self.markers = markers
        self.thumbnails = PictureGrid(on_pick)
        self.texts = TextList(on_pick)
        self.tabs = QTabWidget()
        self._looks = AppearanceWatch(self, self._on_looks)
        self._build()
        self.title.editingFinished.connect(self._on_name)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        for view in (self.composition, self.differences, self.markers):
            view.set_theme(colors)

    def offer_columns(self, columns: list[str]) -> None:
        """Let a person choose among these metadata columns."""
        with self.column.changed.blocked():
            self.column.choices = columns
        self.markers.offer_columns(columns)

    def set_source(self, dataset: Dataset | None, linked: Linked | None) -> None:
        """Offer a tab for each kind of thing that is known of the rows."""
        self._dataset, self._linked = dataset, linked
        self.differences.set_dataset(dataset)
        self._looks.watch(linked)
        pictures = pictures_of(dataset, linked)
        self.thumbnails.pictures.set_pictures(pictures)
        self.thumbnails.tell_size(size_of(dataset, linked))
        if dataset is not None:
            names = dataset.obs.index
            self.thumbnails.pictures.row_name = lambda row: str(names[row])
        self.tabs.clear()
        if pictures is not None:
            self.tabs.addTab(self.thumbnails, "Pictures")
        if dataset is not None and dataset.texts is not None:
            self.tabs.addTab(self.texts, "Texts")
        if dataset is None or dataset.images is None:  # single pixels tell nothing
            self.tabs.addTab(self.markers, "Markers")
            if dataset is not None and has_contrasts(dataset):
                self.tabs.addTab(self.differences, "Differences")
        is_measured = dataset is not None and dataset.word == "measure"
        if is_measured and not dataset.has_expression:
            self.tabs.setCurrentWidget(self.differences)
        self._offer_another()

    def say(self, hint: str) -> None:
        """Show a sentence in place of what is known of a selection."""
        show_text(self.hint, hint)
        self._report.hide()

    def name(self, title: str, note: str, *, can_rename: bool = False) -> None:
        """Show what the clusters are called, and what was noted on them."""
        if not self.title.hasFocus():
            self.title.setText(title)
            self.title.setReadOnly(not can_rename)
            self.title.setToolTip(RENAME_TIP if can_rename else "")
        show_text(self.note, note)

    def edit_name(self) -> None:
        """Put the cursor into the name."""
        self.title.setFocus()
        self.title.selectAll()

    def show_report(self, report: ClusterReport, clusters: tuple[int, ...]) -> None:
        """Show what is inside these clusters; inside of selected points if none."""
        show_text(self.hint, "")
        show_text(self.numbers, _numbers(report))
        self.composition.set_shares(report.composition)
        self.thumbnails.set_rows(self._with_picture(report.draw))
        texts = None if self._dataset is None else self._dataset.texts
        if texts is not None:
            rows = report.draw[:N_TEXTS]
            self.texts.set_texts(rows, [texts[row] for row in rows])
        height = min(self.composition.sizeHint().height(), MOST_BARS_HIGH)
        self._bars.setFixedHeight(height)
        self._report.show()
        self.differences.set_rows(report.draw, clusters)

    def holds(self, row: int) -> bool:
        """Return whether the picture or the text of a row is among those shown."""
        has_pictures = self.tabs.indexOf(self.thumbnails) >= 0
        rows = np.array([row])
        if has_pictures and self.thumbnails.pictures.places(rows):
            return True
        return self.tabs.indexOf(self.texts) >= 0 and self.texts.holds(row)

    def follow(self, rows: NDArray[np.intp]) -> None:
        """Mark the pictures and texts of these rows."""
        self.thumbnails.follow(rows)
        self.texts.follow(rows)

    # Inside

    def _with_picture(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Leave out rows that are no object of the image."""
        objects = None if self._dataset is None else self._dataset.objects
        return rows if objects is None else rows[objects.present[rows]]

    def _on_looks(self) -> None:
        """Cut the pictures anew: an image layer has other colours now."""
        model = self.thumbnails.pictures
        rows = model.rows
        model.set_pictures(pictures_of(self._dataset, self._linked))
        self.thumbnails.set_rows(rows)

    def _on_name(self) -> None:
        if self.title.isModified() and not self.title.isReadOnly():
            self.title.setModified(False)
            self.title.clearFocus()
            self.named.emit(self.title.text())

    def _offer_another(self) -> None:
        """Offer another draw beside what is drawn at random."""
        is_drawn = self.tabs.currentWidget() in (self.thumbnails, self.texts)
        self.another.native.setVisible(is_drawn)

    def _build(self) -> None:
        self.title.setProperty("role", "title")
        self.title.setFrame(False)
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.another.native.setProperty("role", "corner")
        self.tabs.setCornerWidget(self.another.native)
        self.tabs.currentChanged.connect(self._offer_another)
        for page in (self.thumbnails, self.texts, self.markers, self.differences):
            page.setParent(self.tabs)  # one without a parent outlives the window
            page.hide()
        let_be_narrow(self.column.native, 8)
        self._bars = scrolled(self.composition)
        self._report = QWidget()
        report = QVBoxLayout(self._report)
        report.setContentsMargins(0, 0, 0, 0)
        report.setSpacing(4)
        for part in (self.title, self.numbers, self.note):
            report.addWidget(part)
        report.addLayout(self.actions)
        report.addWidget(self.column.native)
        report.addWidget(self._bars)
        report.addWidget(self.tabs, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 4)
        layout.addWidget(self.hint)
        layout.addWidget(self._report, 1)
        layout.setAlignment(self.hint, Qt.AlignmentFlag.AlignTop)


def _numbers(report: ClusterReport) -> str:
    words = f"{_count(report.size)}  ·  {report.share:.1%} of all"
    if report.stretched_share > 0:
        words += f"  ·  {share_text(report.stretched_share)} misplaced"
    if report.unlike_count:
        words += f"  ·  {report.unlike_count:,} outliers"
    if report.has_pressure:
        words += f"  ·  {report.pressured_share:.0%} crowded"
    return words


def _count(size: int) -> str:
    return "1 point" if size == 1 else f"{size:,} points"
